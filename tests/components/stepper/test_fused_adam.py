"""Adam's move as one kernel is Keras's own move."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_games import TOYS, require_close, trained

from components.interfaces import Losses, Player, Update
from components.loss_library import adversarial
from components.objectives import gan
from components.stepper.fused_adam import fuse


def fused(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    fuse(optimizer)
    return optimizer


def moved(optimizer: keras.optimizers.Optimizer, gradients) -> list[np.ndarray]:
    """Return a variable and all that the optimizer keeps after a move by each gradient."""
    variable = keras.Variable(np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3), name="w")
    optimizer.build([variable])
    move = tf.function(lambda gradient: optimizer.apply([gradient], [variable]))
    for gradient in gradients:
        move(tf.constant(gradient, tf.float32))
    return [np.asarray(v) for v in (variable, *optimizer.variables)]


def test_first_move_by_hand() -> None:
    # m = .1 g and v = .001 g^2, so the move is lr g / (|g| + epsilon / sqrt(.001)).
    optimizer = fused(keras.optimizers.Adam(0.5, beta_1=0.9, beta_2=0.999, epsilon=0.01))
    variable = moved(optimizer, [np.full((2, 3), 2.0)])[0]
    expected = np.linspace(-1, 1, 6).reshape(2, 3) - 0.5 * 2.0 / (2.0 + 0.01 / math.sqrt(0.001))
    np.testing.assert_allclose(variable, expected, rtol=1e-5)


MADE = {
    "adam": lambda: keras.optimizers.Adam(0.1, beta_1=0.5, epsilon=1e-3),
    "no_momentum": lambda: keras.optimizers.Adam(0.1, beta_1=0.0, beta_2=0.9),
    "weight_decay": lambda: keras.optimizers.AdamW(0.1, weight_decay=0.3),
    "schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
    "clipped": lambda: keras.optimizers.Adam(0.1, global_clipnorm=0.2),
    "amsgrad": lambda: keras.optimizers.Adam(0.1, amsgrad=True),
    "scaled": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1), initial_scale=4.0),
}


@pytest.mark.parametrize("name", MADE)
def test_moves_and_state_are_those_of_keras(name) -> None:
    gradients = np.random.default_rng(0).normal(size=(5, 2, 3))
    for left, right in zip(moved(MADE[name](), gradients), moved(fused(MADE[name]()), gradients), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [keras.optimizers.SGD, keras.optimizers.Nadam, MADE["amsgrad"]])
def test_other_optimizers_are_left_alone(make) -> None:
    assert "update_step" not in vars(fused(make()))


class Table(keras.Model):
    """A number for each label: looked up, or by a product with one-hot rows."""

    def __init__(self, looks_up: bool) -> None:
        super().__init__()
        self.looks_up = looks_up
        self.table = self.add_weight(shape=(2, 1), initializer="ones", name="table")
        self.built = True

    def call(self, labels):
        if self.looks_up:
            return keras.ops.take(self.table, labels, axis=0)[:, 0]
        return keras.ops.matmul(keras.ops.one_hot(labels, 2), self.table)[:, 0]


def read(networks, batch, *, random):
    return Losses({"only": networks["only"](batch["label"]) * tf.reduce_mean(batch["image"], axis=[1, 2, 3])})


@pytest.mark.parametrize("hardware", ["one_device", pytest.param("cpu:2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [keras.optimizers.Adam, keras.optimizers.AdamW, keras.optimizers.RMSprop])
def test_row_of_a_table_moves_by_the_sum_of_its_look_ups(make, hardware) -> None:
    update = Update(objective=read, players={"only": Player(optimizer=lambda: make(0.1))})
    looked_up, multiplied = (
        trained(hardware, {"only": lambda spec, looks_up=looks_up: Table(looks_up)}, [update], steps=3)
        for looks_up in (True, False)
    )
    require_close(looked_up, multiplied)


@pytest.mark.parametrize("hardware", ["cpu:2", pytest.param("cpu:8", marks=pytest.mark.slow)])
def test_replicas_move_by_the_sum_of_their_gradients(hardware) -> None:
    # epsilon is large: Adam divides by the size of a gradient, so that rounding alone moves weights of none.
    player = Player(optimizer=lambda: keras.optimizers.Adam(1e-2, epsilon=1e-2))
    updates = gan.simultaneous(loss=adversarial.non_saturating, generator=player, discriminator=player)
    require_close(trained("one_device", TOYS, updates), trained(hardware, TOYS, updates))
