"""Penalties at critics whose slope is known."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from components.loss_library import penalties
from components.stepper.randomness import ReplicaRandom

SHAPE = (4, 2, 2, 1)
EVERY = [
    function
    for _, function in inspect.getmembers(penalties, inspect.isfunction)
    if function.__module__ == penalties.__name__ and not function.__name__.startswith("_")
]


def random_of(step: int = 0) -> ReplicaRandom:
    return ReplicaRandom(seed=1, stream="0", step=tf.constant(step, tf.int64), repeat=0, per_replica_batch_size=4)


def linear(slope: float):
    """Return a critic whose gradient at every pixel is `slope`: its norm is slope * sqrt(4) = 2 slope."""
    return lambda images: slope * tf.reduce_sum(images, axis=[1, 2, 3])


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
    value = penalty(linear(slope), images(1), images(2), random=random_of())
    np.testing.assert_allclose(value, np.full(4, expected), rtol=1e-5, atol=1e-5)


def test_wgan_gp_one_sided_forgives_small_slopes_only() -> None:
    flat = penalties.wgan_gp(linear(0.1), images(1), images(2), random=random_of(), one_sided=True)
    steep = penalties.wgan_gp(linear(1.0), images(1), images(2), random=random_of(), one_sided=True)
    np.testing.assert_allclose(flat, np.zeros(4))
    np.testing.assert_allclose(steep, np.full(4, 10.0), rtol=1e-5)


def test_r1_looks_at_real_images_and_r2_at_generated_ones() -> None:
    def square(x: tf.Tensor) -> tf.Tensor:
        return 0.5 * tf.reduce_sum(tf.square(x), axis=[1, 2, 3])  # its gradient at x is x

    real, fake = images(1), images(2)
    expected = [5.0 * np.square(x).sum(axis=(1, 2, 3)) for x in (real, fake)]
    np.testing.assert_allclose(penalties.r1(square, real, fake, random=random_of()), expected[0], rtol=1e-5)
    np.testing.assert_allclose(penalties.r2(square, real, fake, random=random_of()), expected[1], rtol=1e-5)


@pytest.mark.parametrize("penalty", EVERY)
def test_penalty_is_per_example_and_finite_where_the_critic_is_flat(penalty) -> None:
    weight = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        value = penalty(lambda x: weight * tf.reduce_sum(x, axis=[1, 2, 3]), images(1), images(2), random=random_of())
    assert value.shape == (4,) and value.dtype == tf.float32
    assert np.isfinite(value).all() and np.isfinite(tape.gradient(value, weight))


@pytest.mark.parametrize("penalty", EVERY)
def test_penalty_of_one_example_ignores_the_others(penalty) -> None:
    def critic(x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(x**3, axis=[1, 2, 3])

    real, fake = images(1), images(2)
    changed = tf.concat([real[:1], images(3)[1:]], axis=0)
    first = penalty(critic, real, fake, random=random_of())[0]
    again = penalty(critic, changed, fake, random=random_of())[0]
    np.testing.assert_allclose(first, again, rtol=1e-6)


@pytest.mark.parametrize("penalty", EVERY)
def test_penalty_is_the_same_in_a_graph_and_scales_with_its_weight(penalty) -> None:
    def critic(x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(x**3, axis=[1, 2, 3])

    eager = penalty(critic, images(1), images(2), random=random_of(), weight=2.0)
    graph = tf.function(lambda: penalty(critic, images(1), images(2), random=random_of(), weight=4.0))()
    np.testing.assert_allclose(2 * eager, graph, rtol=1e-5)
