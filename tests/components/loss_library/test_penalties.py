"""Penalties at critics whose slope is known."""

import inspect

import numpy as np
import pytest
import tensorflow as tf
from toy_parts import ToyCritic, ToyMemory, in_a_move, toy_random

from components.augmentation import consistency
from components.loss_library import penalties, regularizers

SHAPE = (4, 2, 2, 1)
EVERY = [
    function
    for module in (penalties, regularizers, consistency)
    for _, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__ and not function.__name__.startswith("_")
]


def linear(images: tf.Tensor, slope: float = 1.0) -> tf.Tensor:
    """A critic whose gradient at every pixel is `slope`: its norm is slope * sqrt(4) = 2 slope."""
    return slope * tf.reduce_sum(images, axis=[1, 2, 3])


def cubic(images: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(images**3, axis=[1, 2, 3])


def same(images: tf.Tensor, *, random) -> tf.Tensor:
    return images


def of(penalty, function, real=None, fake=None, step=0, **bindings):
    """Return the penalty of a critic, inside a move; a penalty that augments gets an augmentation that does nothing."""
    real, fake = images(1) if real is None else real, images(2) if fake is None else fake
    if "augmentations" in inspect.signature(penalty).parameters:
        bindings.setdefault("augmentations", [same])
    random = toy_random(step)
    with in_a_move(random):
        return penalty(ToyCritic(function, real, fake), real, fake, random=random, **bindings)


def images(seed: int) -> tf.Tensor:
    return tf.random.stateless_uniform(SHAPE, [seed, 0], -1, 1)


@pytest.mark.parametrize(
    ("penalty", "slope", "expected"),
    [
        (penalties.wgan_gp, 0.5, 0.0),  # norm 1 costs nothing
        (penalties.wgan_gp, 1.5, 10.0 * 2.0**2),  # norm 3
        (penalties.wgan_gp, 0.0, 10.0),  # norm 0
        (penalties.dragan, 0.5, 0.0),
        (penalties.dragan, 1.0, 10.0 * 1.0**2),  # norm 2
        (penalties.r1, 0.0, 0.0),
        (penalties.r1, 1.0, 5.0 * 4.0),  # squared norm 4
        (penalties.r2, 2.0, 5.0 * 16.0),
    ],
)
def test_penalty_of_linear_critic_is_the_hand_computed_value(penalty, slope, expected) -> None:
    value = of(penalty, lambda x: linear(x, slope))
    np.testing.assert_allclose(value, np.full(4, expected), rtol=1e-5, atol=1e-5)


def test_wgan_gp_one_sided_forgives_small_slopes_only() -> None:
    np.testing.assert_allclose(of(penalties.wgan_gp, lambda x: linear(x, 0.1), one_sided=True), np.zeros(4))
    np.testing.assert_allclose(of(penalties.wgan_gp, linear, one_sided=True), np.full(4, 10.0), rtol=1e-5)


def test_r1_looks_at_real_images_and_r2_at_generated_ones() -> None:
    def square(x: tf.Tensor) -> tf.Tensor:
        return 0.5 * tf.reduce_sum(tf.square(x), axis=[1, 2, 3])  # its gradient at x is x

    for penalty, looked_at in ((penalties.r1, images(1)), (penalties.r2, images(2))):
        expected = 5.0 * np.square(looked_at).sum(axis=(1, 2, 3))
        np.testing.assert_allclose(of(penalty, square), expected, rtol=1e-5)


def test_what_is_judged_as_generated_is_judged_with_the_labels_of_the_generated() -> None:
    asked = []

    class Asked(ToyCritic):
        def __call__(self, images, *, labels_of="real"):
            asked.append(labels_of)
            return cubic(images)

    for penalty, expected in ((penalties.r1, ["real"]), (penalties.r2, ["fake"])):
        asked.clear()
        penalty(Asked(cubic, images(1), images(2)), images(1), images(2), random=toy_random())
        assert asked == expected


def test_lecam_is_the_distance_to_what_was_said_of_the_other_kind() -> None:
    real, fake = tf.ones(SHAPE), -tf.ones(SHAPE)  # logits 4 and -4
    memory = ToyMemory(real_logits=3.0, fake_logits=-1.0)
    random = toy_random(step=10_000)
    with in_a_move(random, memory):
        value = regularizers.lecam(ToyCritic(linear, real, fake), real, fake, random=random, weight=0.5)
    np.testing.assert_allclose(value, np.full(4, 0.5 * ((4 + 1) ** 2 + (-4 - 3) ** 2)))
    assert memory.followed["lecam/real_logits"][1] == pytest.approx(0.99)
    np.testing.assert_array_equal(memory.followed["lecam/fake_logits"][0], np.full(4, -4.0))


def test_lecam_follows_fast_at_first() -> None:
    memory = ToyMemory()
    for step, expected in ((0, 0.1), (8, 0.5)):
        random = toy_random(step)
        with in_a_move(random, memory):
            regularizers.lecam(ToyCritic(linear, images(1), images(2)), images(1), images(2), random=random)
        assert memory.followed["lecam/real_logits"][1] == pytest.approx(expected)


def test_balanced_consistency_is_the_squared_change_of_both_logits() -> None:
    def brighter(x: tf.Tensor, *, random) -> tf.Tensor:
        return x + 0.5  # the linear critic's logit rises by 2

    value = of(consistency.balanced_consistency, linear, augmentations=[brighter], real_weight=3.0, fake_weight=5.0)
    np.testing.assert_allclose(value, np.full(4, (3 + 5) * 2.0**2), rtol=1e-5)
    np.testing.assert_allclose(of(consistency.balanced_consistency, linear), np.zeros(4))


@pytest.mark.parametrize("penalty", EVERY)
def test_penalty_is_per_example_and_finite_where_the_critic_is_flat(penalty) -> None:
    weight = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        value = of(penalty, lambda x: weight * tf.reduce_sum(x, axis=[1, 2, 3]))
    assert value.shape == (4,) and value.dtype == tf.float32
    assert np.isfinite(value).all() and np.isfinite(tape.gradient(value, weight))


@pytest.mark.parametrize("penalty", EVERY)
def test_penalty_of_one_example_ignores_the_others(penalty) -> None:
    changed = tf.concat([images(1)[:1], images(3)[1:]], axis=0)
    first, again = (of(penalty, cubic, real)[0] for real in (images(1), changed))
    np.testing.assert_allclose(first, again, rtol=1e-6)


@pytest.mark.parametrize("penalty", EVERY)
def test_penalty_is_the_same_in_a_graph_and_scales_with_its_weights(penalty) -> None:
    def shifted(x: tf.Tensor, *, random) -> tf.Tensor:
        return x + 0.1

    weights = [name for name in inspect.signature(penalty).parameters if name.endswith("weight")]
    extra = {"augmentations": [shifted]} if penalty is consistency.balanced_consistency else {}
    assert weights
    eager = of(penalty, cubic, **dict.fromkeys(weights, 2.0), **extra)
    graph = tf.function(lambda: of(penalty, cubic, **dict.fromkeys(weights, 4.0), **extra))()
    assert np.all(np.asarray(eager) > 0)
    np.testing.assert_allclose(2 * eager, graph, rtol=1e-5)
