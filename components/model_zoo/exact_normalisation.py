"""Keras's normalisations with a variance whose second derivative is right, as penalties on gradients need it.

Keras takes the mean out of the variance's gradient: the first derivative does not change by it, the second one does,
and with it what a gradient penalty teaches a critic. The names are Keras's own, so that weights keep their paths.
"""

from collections.abc import Sequence
from typing import ClassVar

import keras
from keras import layers, ops


class _WithPlainTwin:
    """A layer that in inference is one of Keras's; see `interfaces.Portable`."""

    _of_keras: ClassVar[type[layers.Layer]]

    def as_plain(self, inputs):
        """Return the same by Keras's layer."""
        twin = self._of_keras.from_config(self.get_config())  # type: ignore[attr-defined]
        outputs = twin(inputs)
        twin.set_weights(self.get_weights())  # type: ignore[attr-defined]
        return outputs


@keras.saving.register_keras_serializable("gantry")
class LayerNormalization(_WithPlainTwin, layers.LayerNormalization):
    """Normalisation over all numbers of an example, with a gain and a bias for each.

    Reference: Ba et al., 2016, arXiv:1607.06450, equation 3.
    """

    _of_keras = layers.LayerNormalization

    def call(self, inputs):
        """Return float[B, ...] of float[B, ...]; `axis` is every axis but the first."""
        mean, variance = moments(x := _at_least_float32(inputs), range(1, len(inputs.shape)))
        normalised = (x - mean) * ops.rsqrt(variance + self.epsilon)
        return ops.cast(normalised * self.gamma + self.beta, self.compute_dtype)


@keras.saving.register_keras_serializable("gantry")
class GroupNormalization(_WithPlainTwin, layers.GroupNormalization):
    """Normalisation over groups of an example's channels, the last axis, with a gain and a bias for each channel.

    Reference: Wu and He, 2018, arXiv:1803.08494, equations 1, 2 and 7.
    """

    _of_keras = layers.GroupNormalization

    def call(self, inputs):
        """Return float[B, ..., C] of float[B, ..., C]."""
        *others, channels = inputs.shape[1:]
        x = ops.reshape(_at_least_float32(inputs), (-1, *others, self.groups, channels // self.groups))
        mean, variance = moments(x, [*range(1, len(others) + 1), len(others) + 2])
        normalised = ops.reshape((x - mean) * ops.rsqrt(variance + self.epsilon), (-1, *others, channels))
        return ops.cast(normalised * self.gamma + self.beta, self.compute_dtype)


@keras.saving.register_keras_serializable("gantry")
class BatchNormalization(_WithPlainTwin, layers.BatchNormalization):
    """Normalisation over the rows of a replica; Keras's own is right where `synchronized`.

    Reference: Ioffe and Szegedy, 2015, arXiv:1502.03167, algorithm 1.
    """

    _of_keras = layers.BatchNormalization

    def _moments(self, inputs, mask):
        if mask is not None or self.synchronized:
            return super()._moments(inputs, mask)
        mean, variance = moments(inputs, self._reduction_axes)
        return ops.squeeze(mean, self._reduction_axes), ops.squeeze(variance, self._reduction_axes)


def moments(x, axes: Sequence[int]):
    """Return mean and variance over some axes, which stay, of size 1."""
    mean = ops.mean(x, list(axes), keepdims=True)
    return mean, ops.mean(ops.square(x - mean), list(axes), keepdims=True)


def _at_least_float32(x):
    return ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
