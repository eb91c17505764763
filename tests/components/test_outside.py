"""What is asked outside knows nothing of where it is asked from."""

import pytest
import tensorflow as tf

from components.outside import outside


def _gradient() -> tf.Tensor | None:
    variable = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        square = variable * variable
    return tape.gradient(square, variable)


def test_gradient_is_taken_within_a_graph_a_tape_and_a_replica() -> None:
    found = []

    def ask() -> None:
        assert not tf.executing_eagerly()
        found.append(float(outside(_gradient)))
        with tf.GradientTape():
            found.append(float(outside(_gradient)))

    tf.function(ask, autograph=False).get_concrete_function()
    with tf.init_scope():
        assert _gradient() is None, "the reason for `outside`"
        found.append(float(outside(_gradient)))
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    tf.function(lambda: strategy.run(ask), autograph=False).get_concrete_function()
    assert found == [6.0] * 7


def test_what_is_raised_outside_arrives() -> None:
    with pytest.raises(ZeroDivisionError):
        outside(lambda: 1 / 0)
