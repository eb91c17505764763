"""Adam's move of a variable as one kernel of TensorFlow's, in place of some thirty small operations."""

import functools

import keras
import tensorflow as tf


def fuse(optimizer: keras.optimizers.Optimizer) -> None:
    """Let each variable of an optimizer move in one kernel, where it is Keras's Adam or AdamW.

        m = m + (1 - beta_1) (g - m),  v = v + (1 - beta_2) (g^2 - v)
        w = w - lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon)

    as Keras computes it, in the same order; its state, its settings and its checkpoints stay the same. A graph of a
    step is traced and optimised sooner, and a step on a CPU is a few percent shorter.

    Reference: Kingma and Ba, 2015, arXiv:1412.6980, the form at the end of section 2 (there epsilon is "hat").
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    adam = keras.optimizers.Adam
    moves_as_adam = isinstance(inner, adam) and type(inner).update_step is adam.update_step
    if moves_as_adam and not inner.amsgrad:
        inner.update_step = functools.partial(_update_step, inner)


def _update_step(adam: keras.optimizers.Adam, gradient: tf.Tensor, variable: tf.Variable, learning_rate) -> None:
    """Move one variable on one device, as `keras.optimizers.Adam.update_step` does."""
    dtype, place = variable.dtype, adam._get_variable_index(variable)
    moves = tf.cast(adam.iterations + 1, dtype)
    beta_1, beta_2 = tf.constant(adam.beta_1, dtype), tf.constant(adam.beta_2, dtype)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=adam._momentums[place].value.handle,
        v=adam._velocities[place].value.handle,
        beta1_power=tf.pow(beta_1, moves),
        beta2_power=tf.pow(beta_2, moves),
        lr=tf.cast(learning_rate, dtype),
        beta1=beta_1,
        beta2=beta_2,
        epsilon=tf.constant(adam.epsilon, dtype),
        grad=tf.cast(gradient, dtype),
    )
