"""Stateless draws, and dropout made of them."""

import numpy as np
import pytest
import tensorflow as tf

from components import draws
from components.interfaces import Moment, UserError, happening_at
from components.model_zoo.layers import StatelessDropout
from components.stepper.randomness import ReplicaRandom


def random_of(*, seed=1, stream="0", step=0, repeat=0, rows=6, replica=0, replicas=1):
    return ReplicaRandom(
        seed=seed,
        stream=stream,
        step=tf.cast(step, tf.int64),
        repeat=repeat,
        per_replica_batch_size=rows,
        replica=replica,
        num_replicas=replicas,
    )


DRAWS = {
    "normal": lambda r: r.normal("x", [3]),
    "uniform": lambda r: r.uniform("x", [3]),
    "integers": lambda r: r.integers("x", 1000, [3]),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_draw_is_a_function_of_its_key_and_of_every_part_of_it(draw) -> None:
    first = draw(random_of()).numpy()
    np.testing.assert_array_equal(first, draw(random_of()))
    others = [random_of(seed=2), random_of(stream="1"), random_of(step=1), random_of(repeat=1), random_of().shared]
    for other in others:
        assert not np.array_equal(first, draw(other))
    assert not np.array_equal(random_of().normal("x", [3]), random_of().normal("y", [3]))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_rows_of_the_replicas_are_those_of_one(draw) -> None:
    whole = draw(random_of(rows=6)).numpy()
    parts = [draw(random_of(rows=2, replica=replica, replicas=3)).numpy() for replica in range(3)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_draw_in_a_graph_is_the_eager_one(draw, jit_compile) -> None:
    # The step is an argument, as in training: a draw of constants is folded, and never meets XLA's generator.
    graph = tf.function(lambda step: draw(random_of(step=step)), jit_compile=jit_compile, autograph=False)
    for step in (0, 7):
        wanted = draw(random_of(step=step))
        np.testing.assert_allclose(wanted, graph(tf.constant(step, tf.int64)), rtol=1e-5, atol=1e-6)


def test_draws_have_their_distributions() -> None:
    many = random_of(rows=20000)
    normal, uniform, integers = many.normal("x").numpy(), many.uniform("x").numpy(), many.integers("x", 4).numpy()
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.01
    # Normal in the tails too: the share beyond 2 standard deviations is 4.55 %, the fourth moment is 3.
    assert abs(np.mean(np.abs(normal) > 2) - 0.0455) < 0.006 and abs(np.mean(normal**4) - 3) < 0.3
    np.testing.assert_allclose(np.bincount(integers) / 20000, [0.25] * 4, atol=0.02)


@pytest.mark.parametrize("seed", [-1, 2**31, 2**80, 0])
def test_any_whole_number_is_a_seed(seed) -> None:
    assert np.isfinite(random_of(seed=seed).normal("x")).all()


def test_dropout_keeps_its_share_scales_it_and_differs_from_call_to_call() -> None:
    layer, ones = StatelessDropout(0.25), tf.ones([6, 4000])
    with happening_at(Moment(random_of(), None)):
        first, second = layer(ones, training=True).numpy(), layer(ones, training=True).numpy()
    with happening_at(Moment(random_of(), None)):
        again = layer(ones, training=True).numpy()
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)
    np.testing.assert_allclose(np.unique(first), [0.0, 1 / 0.75], rtol=1e-6)
    assert abs((first == 0).mean() - 0.25) < 0.01
    np.testing.assert_array_equal(layer(ones, training=False), ones)


def test_dropout_outside_of_an_update_and_of_a_wrong_rate_is_refused() -> None:
    with pytest.raises(RuntimeError, match="inside an update"):
        StatelessDropout(0.5)(tf.ones([1, 2]), training=True)
    with pytest.raises(UserError, match="Received 1.0"):
        StatelessDropout(1.0)


@pytest.mark.parametrize("bits", [0, 2**32 - 1])
def test_normal_number_of_the_rarest_bits_is_finite(bits, monkeypatch) -> None:
    monkeypatch.setattr(draws, "bits", lambda shape, _: tf.fill(shape, tf.constant(bits, tf.uint32)))
    assert np.all(np.abs(random_of().normal("x", [3])) < 5.5)
    assert np.all((random_of().uniform("x", [3]) >= 0) & (random_of().uniform("x", [3]) < 1))
