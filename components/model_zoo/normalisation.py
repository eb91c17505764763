"""Normalisation of maps, chosen by name, and the one that carries a class."""

import math
from collections.abc import Callable
from typing import Literal

import keras
from keras import layers

from components import class_mixture
from components.interfaces import UserError
from components.model_zoo import exact_normalisation
from components.model_zoo.layers import batch_norm

Normalisation = Literal["batch", "batch_per_replica", "layer", "group", "none"]
Normaliser = Callable[[keras.KerasTensor], keras.KerasTensor]

_MOST_GROUPS = 32


@keras.saving.register_keras_serializable("gantry")
class ConditionalBatchNorm(layers.Layer):
    """Batch normalisation with a gain and a bias for every class: gain[label] * normalised + bias[label].

    Args:
      num_classes: K.
      momentum: of the moving statistics, which only inference uses.
      synchronized: whether the statistics are those of the global batch, or of each replica's rows.

    Reference: de Vries et al., 2017, arXiv:1707.00683; in generators: Miyato and Koyama, 2018, arXiv:1802.05637.
    Deviation from the former: gain and bias are learnt directly, not as changes that a
    small network computes.
    """

    def __init__(self, num_classes: int, *, momentum: float = 0.99, synchronized: bool = True, **kwargs) -> None:
        """Hold the sizes."""
        super().__init__(**kwargs)
        self.num_classes, self.momentum, self.synchronized = num_classes, momentum, synchronized
        self.norm = exact_normalisation.BatchNormalization(
            momentum=momentum, synchronized=synchronized, center=False, scale=False, dtype=self.dtype_policy
        )

    def build(self, input_shape) -> None:
        """Make a gain of 1 and a bias of 0 for every class and channel."""
        maps, _ = input_shape
        self.norm.build(maps)
        shape = (self.num_classes, maps[-1])
        self.gain = self.add_weight(shape=shape, initializer="ones", name="gain")
        self.bias = self.add_weight(shape=shape, initializer="zeros", name="bias")

    def call(self, inputs, training: bool = False):
        """Return float[B, ..., C] of [maps float[B, ..., C], labels int32[B]]."""
        maps, labels = inputs
        # A product with one-hot rows and no look-up: its gradient is dense, and the same on every device.
        rows = class_mixture.rows(labels, self.num_classes, self.compute_dtype)
        shape = (-1, *(1,) * (len(maps.shape) - 2), maps.shape[-1])
        gain = keras.ops.reshape(keras.ops.matmul(rows, self.gain), shape)
        bias = keras.ops.reshape(keras.ops.matmul(rows, self.bias), shape)
        return gain * self.norm(maps, training=training) + bias

    def compute_output_shape(self, input_shape):
        """Return the maps' shape."""
        return input_shape[0]

    def as_plain(self, inputs):
        """Return the same by look-ups of gain and bias; see `interfaces.Portable`."""
        maps, labels = inputs
        norm = layers.BatchNormalization.from_config(self.norm.get_config())
        normalised = norm(maps)
        norm.set_weights(self.norm.get_weights())
        scaled = layers.Multiply(dtype=self.dtype_policy)([normalised, self._of_class(self.gain, maps, labels)])
        return layers.Add(dtype=self.dtype_policy)([scaled, self._of_class(self.bias, maps, labels)])

    def _of_class(self, table, maps: keras.KerasTensor, labels: keras.KerasTensor) -> keras.KerasTensor:
        """Return the rows of `table` float[K, C] as float[B, 1, ..., C]."""
        look_up = layers.Embedding(*table.shape, dtype=self.dtype_policy)
        rows = look_up(labels)
        look_up.set_weights([table.numpy()])
        shape = (*(1,) * (len(maps.shape) - 2), maps.shape[-1])
        return layers.Reshape(shape, dtype=self.dtype_policy)(rows)

    def get_config(self) -> dict:
        """Return what makes an equal layer."""
        settings = {name: getattr(self, name) for name in ("num_classes", "momentum", "synchronized")}
        return {**super().get_config(), **settings}


def normaliser(
    normalisation: Normalisation,
    *,
    momentum: float = 0.99,
    labels: keras.KerasTensor | None = None,
    num_classes: int = 0,
) -> Normaliser:
    """Return what normalises maps float[B, H, W, C] or units float[B, F], each time with a new layer.

    Args:
      normalisation: over what the mean and the variance are taken: "batch": the global batch, a channel at a time;
        "batch_per_replica": the rows of a replica, so that N replicas take another step than one; "layer": all numbers
        of an example (Ba et al., 2016, arXiv:1607.06450), with a gain and a bias for each; "group": groups of an
        example's channels, as many as divide them, at most 32 (Wu and He, 2018, arXiv:1803.08494); "none": nothing.
      momentum: of the moving statistics of both batch normalisations.
      labels: int32[B]; where given, gain and bias are those of the class.
      num_classes: K of the labels.

    Raises:
      UserError: a class for a normalisation other than that of a batch.
    """
    synchronized = normalisation == "batch"
    if labels is not None:
        require_batch_norm(normalisation, "a network")
        return lambda x: ConditionalBatchNorm(num_classes, momentum=momentum, synchronized=synchronized)([x, labels])
    if normalisation in ("batch", "batch_per_replica"):
        return lambda x: batch_norm(momentum=momentum, synchronized=synchronized)(x)
    if normalisation == "layer":
        return lambda x: exact_normalisation.LayerNormalization(axis=list(range(1, len(x.shape))))(x)
    if normalisation == "group":
        return lambda x: exact_normalisation.GroupNormalization(math.gcd(_MOST_GROUPS, x.shape[-1]))(x)
    return lambda x: x


def first_map(
    units: keras.KerasTensor,
    shape: tuple[int, int, int],
    normalisation: Normalisation,
    normalised: Normaliser,
    slope: float,
) -> keras.KerasTensor:
    """Return units float[B, H * W * C] as a map float[B, H, W, C], normalised, after a leaky ReLU.

    Units are normalised one by one, as the articles do it, except in groups: those are of channels.
    """
    reshaped = layers.Reshape(shape)
    if normalisation == "group":
        return layers.LeakyReLU(slope)(normalised(reshaped(units)))
    return reshaped(layers.LeakyReLU(slope)(normalised(units)))


def require_batch_norm(normalisation: Normalisation, network: str) -> None:
    """Raise UserError where `network` has no batch normalisation that could carry the class."""
    if normalisation not in ("batch", "batch_per_replica"):
        raise UserError(
            f"Conditional batch normalisation needs a network with batch normalisation. Received `{network}` with "
            f"normalisation={normalisation!r} and conditioning='batch_norm'. Bind `normalisation = 'batch'`, or "
            "`conditioning = 'one_hot'`, 'embedding' or 'none'."
        )
