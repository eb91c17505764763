"""Adversarial losses: values by hand, the properties that name each, and what holds for every one found here."""

import inspect
import math

import numpy as np
import pytest
import tensorflow as tf

from components.interfaces import PlayerLosses
from components.loss_library import adversarial

EVERY = [
    function
    for _, function in inspect.getmembers(adversarial, inspect.isfunction)
    if function.__module__ == adversarial.__name__ and not function.__name__.startswith("_")
]
RELATIVISTIC = {adversarial.relativistic_average, adversarial.relativistic_pairing}
LOG2 = math.log(2.0)


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def losses(loss, real, fake, **bindings) -> tuple[np.ndarray, np.ndarray]:
    value = loss(tf.constant(real, tf.float32), tf.constant(fake, tf.float32), **bindings)
    return value.generator.numpy(), value.discriminator.numpy()


# (loss, generator's and discriminator's at (0, 0), the same at real = 2, fake = -1), each from its formula.
BY_HAND = [
    (adversarial.non_saturating, (LOG2, 2 * LOG2), (softplus(1), softplus(-2) + softplus(-1))),
    (adversarial.minimax, (-LOG2, 2 * LOG2), (-softplus(-1), softplus(-2) + softplus(-1))),
    (adversarial.wasserstein, (0.0, 0.0), (1.0, -3.0)),
    (adversarial.hinge, (0.0, 2.0), (1.0, 0.0)),
    (adversarial.least_squares, (0.5, 0.5), (2.0, 1.0)),
    (adversarial.relativistic_pairing, (LOG2, LOG2), (softplus(3), softplus(-3))),
    (adversarial.relativistic_average, (2 * LOG2, 2 * LOG2), (2 * softplus(3), 2 * softplus(-3))),
]


def test_every_loss_has_a_value_by_hand() -> None:
    assert {row[0] for row in BY_HAND} == set(EVERY)


@pytest.mark.parametrize(("loss", "at_zero", "apart"), BY_HAND)
def test_loss_is_the_hand_computed_value(loss, at_zero, apart) -> None:
    for logits, expected in (((0.0, 0.0), at_zero), ((2.0, -1.0), apart)):
        generator, discriminator = losses(loss, [logits[0]] * 3, [logits[1]] * 3)
        np.testing.assert_allclose(generator, [expected[0]] * 3, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(discriminator, [expected[1]] * 3, rtol=1e-5, atol=1e-6)


def test_hinge_is_0_beyond_its_margin_and_2_within() -> None:
    np.testing.assert_array_equal(losses(adversarial.hinge, [1.0, 5.0], [-1.0, -7.0])[1], [0.0, 0.0])
    np.testing.assert_array_equal(losses(adversarial.hinge, [0.5], [-0.5])[1], [1.0])


@pytest.mark.parametrize("loss", EVERY)
def test_only_relativistic_losses_and_the_wasserstein_critic_ignore_a_common_shift(loss) -> None:
    real, fake = np.float32([0.3, -0.2, 1.1]), np.float32([-0.4, 0.6, 0.1])
    here, there = losses(loss, real, fake), losses(loss, real + 2.5, fake + 2.5)
    assert np.allclose(here[0], there[0], atol=1e-5) == (loss in RELATIVISTIC)
    assert np.allclose(here[1], there[1], atol=1e-5) == (loss in RELATIVISTIC | {adversarial.wasserstein})


@pytest.mark.parametrize("loss", EVERY)
def test_each_player_pulls_its_way(loss) -> None:
    real, fake = tf.constant([0.1, -0.3]), tf.constant([0.2, 0.4])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([real, fake])
        value = loss(real, fake)
    assert np.all(tape.gradient(value.generator, fake) < 0), "the generator wants its logits higher"
    assert np.all(tape.gradient(value.discriminator, fake) > 0), "the discriminator wants them lower"
    assert np.all(tape.gradient(value.discriminator, real) < 0), "and those of real images higher"


@pytest.mark.parametrize("loss", EVERY)
def test_loss_is_float32_per_example_alike_in_a_graph_and_finite_far_out(loss) -> None:
    real, fake = tf.constant([80.0, -80.0, 0.0]), tf.constant([-80.0, 80.0, 0.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([real, fake])
        eager = loss(real, fake)
    graph = tf.function(lambda: loss(real, fake))()
    assert isinstance(eager, PlayerLosses)
    for value, again in zip(eager, graph, strict=True):
        assert value.shape == (3,) and value.dtype == tf.float32 and np.isfinite(value).all()
        np.testing.assert_allclose(value, again, rtol=1e-6)
        assert np.isfinite(tape.gradient(value, fake)).all()


@pytest.mark.parametrize("loss", [loss for loss in EVERY if loss is not adversarial.relativistic_average])
def test_loss_of_one_example_ignores_the_others(loss) -> None:
    real, fake = np.float32([0.3, -0.2]), np.float32([-0.4, 0.6])
    first, again = losses(loss, real, fake), losses(loss, real * [1, 9], fake * [1, 9])
    np.testing.assert_array_equal([one[0] for one in first], [one[0] for one in again])


@pytest.mark.parametrize("loss", [adversarial.non_saturating, adversarial.minimax])
def test_smoothing_moves_the_target_of_real_images_alone(loss) -> None:
    logit = 1.5
    probability = 1 / (1 + math.exp(-logit))
    by_hand = -0.9 * math.log(probability) - 0.1 * math.log(1 - probability) + LOG2
    generator, discriminator = losses(loss, [logit], [0.0], label_smoothing=0.1)
    np.testing.assert_allclose(discriminator, [by_hand], rtol=1e-5)
    np.testing.assert_array_equal(generator, losses(loss, [logit], [0.0])[0])


def test_relativistic_average_compares_with_the_mean_of_the_others() -> None:
    generator, discriminator = losses(adversarial.relativistic_average, [1.0, 3.0], [0.0, -2.0])  # means 2 and -1
    np.testing.assert_allclose(discriminator, [softplus(-2) + softplus(-2), softplus(-4) + softplus(-4)], rtol=1e-5)
    np.testing.assert_allclose(generator, [softplus(2) + softplus(2), softplus(4) + softplus(4)], rtol=1e-5)
