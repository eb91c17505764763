"""Layers that Keras lacks, or whose defaults here differ."""

import keras
import tensorflow as tf

from components.interfaces import UserError, current_random
from components.model_zoo import exact_normalisation


def batch_norm(*, momentum: float = 0.99, synchronized: bool = True) -> keras.layers.Layer:
    """Return batch normalisation whose statistics are those of the global batch, however many replicas share it.

    Args:
      momentum: of the moving statistics, which only inference uses.
      synchronized: False: each replica uses its own rows; N replicas then take another step than one.
    """
    kind = keras.layers.BatchNormalization if synchronized else exact_normalisation.BatchNormalization
    return kind(momentum=momentum, synchronized=synchronized)


@keras.saving.register_keras_serializable("gantry")
class StatelessDropout(keras.layers.Layer):
    """Dropout whose mask is a function of (seed, update, step, row) instead of hidden generator state.

    Keras's own layer draws the same mask on every replica and keeps its state out of checkpoints.

    Args:
      rate: in [0, 1), the share of inputs set to 0; the others are scaled by 1 / (1 - rate).

    Reference: Srivastava et al., 2014, JMLR 15, section 4 (with the scaling moved to training).
    """

    def __init__(self, rate: float, **kwargs) -> None:
        """Hold the rate."""
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise UserError(f"`StatelessDropout.rate` must be in [0, 1). Received {rate}.")
        self.rate = rate

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Return `inputs` float[B, ...], in training with a mask drawn from the current update's `Random`."""
        if not training or self.rate == 0:
            return inputs
        random = current_random()
        kept = random.uniform(random.occasion("dropout"), inputs.shape[1:]) >= self.rate
        return tf.where(kept, inputs / (1.0 - self.rate), tf.zeros_like(inputs))

    def compute_output_shape(self, input_shape):
        """Return the input's shape."""
        return input_shape

    def get_config(self) -> dict:
        """Return what makes an equal layer."""
        return {**super().get_config(), "rate": self.rate}
