"""Bits against Philox by its definition; normal numbers within a bound against the distribution's own formulas.

`normal` itself is tested as `Random`.
"""

import math

import numpy as np
import pytest
import tensorflow as tf

from components import draws

KEY = tf.constant([3, 5], tf.int64)


def philox(key: int, when: int, block: int) -> list[int]:
    """Philox4x32-10 of Salmon et al. (2011), with the paper's multipliers and Weyl constants."""
    low, word = (key & 2**64 - 1) & 2**32 - 1, (key & 2**64 - 1) >> 32
    one, two, three, four = block & 2**32 - 1, block >> 32, when & 2**32 - 1, (when & 2**64 - 1) >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * one, 0xCD9E8D57 * three
        one, two, three, four = (
            (second >> 32) ^ two ^ low,
            second & 2**32 - 1,
            (first >> 32) ^ four ^ word,
            first & (2**32 - 1),
        )
        low, word = (low + 0x9E3779B9) & 2**32 - 1, (word + 0xBB67AE85) & 2**32 - 1
    return [one, two, three, four]


def test_philox_of_the_tests_gives_the_known_answer_of_its_authors() -> None:
    assert philox(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("key", [0, 7, -5, 2**62 + 11])
@pytest.mark.parametrize("when", [0, 1, 2**40 + 3])
def test_bits_are_those_of_philox_block_after_block(key, when) -> None:
    bits = draws.bits([12], tf.constant([key, when], tf.int64)).numpy().tolist()
    assert bits == [word for block in range(3) for word in philox(key, when, block)]


def test_draws_of_neighbouring_moments_have_nothing_in_common() -> None:
    whole = np.stack([draws.normal([4096], tf.constant([1, when], tf.int64)) for when in range(20)])
    correlations = np.corrcoef(whole) - np.eye(20)
    assert np.abs(correlations).max() < 5 / math.sqrt(4096)


@pytest.mark.parametrize("threshold", [0.04, 0.5, 1.0, 2.0])
def test_truncated_normal_keeps_its_bound_and_has_the_moments_of_its_distribution(threshold) -> None:
    found = draws.truncated_normal([200000], KEY, threshold).numpy().astype(np.float64)
    assert np.abs(found).max() <= threshold
    # Var = 1 - 2 t phi(t) / (2 Phi(t) - 1), in the textbook form for symmetric bounds.
    density = math.exp(-(threshold**2) / 2) / math.sqrt(2 * math.pi)
    variance = 1 - 2 * threshold * density / math.erf(threshold / math.sqrt(2))
    assert found.var() == pytest.approx(variance, rel=0.02) and abs(found.mean()) < 0.01 * threshold
    assert np.mean(found < threshold / 2) == pytest.approx(
        0.5 + 0.5 * math.erf(threshold / 2 / math.sqrt(2)) / math.erf(threshold / math.sqrt(2)), abs=0.005
    )


def test_truncated_normal_is_on_the_side_of_the_normal_number_and_nearer_to_zero() -> None:
    whole = draws.normal([5000], KEY).numpy()
    near, far = (draws.truncated_normal([5000], KEY, threshold).numpy() for threshold in (0.7, 2.0))
    assert (np.sign(near) == np.sign(whole)).all()
    assert (np.abs(near) < np.abs(far)).all() and (np.abs(far) < np.abs(whole)).all()


def test_truncated_normal_of_a_bound_that_no_number_reaches_is_the_normal_number() -> None:
    np.testing.assert_allclose(
        draws.truncated_normal([5000], KEY, 20.0), draws.normal([5000], KEY), rtol=2e-3, atol=1e-5
    )


@pytest.mark.parametrize("draw", [draws.normal, lambda shape, key: draws.truncated_normal(shape, key, 0.5)])
def test_draw_under_xla_is_the_eager_one(draw) -> None:
    compiled = tf.function(lambda key: draw([64, 3], key), jit_compile=True, autograph=False)
    np.testing.assert_allclose(compiled(KEY), draw([64, 3], KEY), rtol=1e-5, atol=1e-6)
