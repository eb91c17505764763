"""Spectral normalisation: a layer whose weight matrix has the largest singular value 1."""

import keras
import tensorflow as tf

_LEAST = 1e-12  # below it a norm counts as 0: a weight of zeros stays one


@keras.saving.register_keras_serializable("gantry")
class SpectralNorm(keras.layers.Wrapper):
    """A layer with W / sigma(W) in place of its kernel W; sigma(W) is the largest singular value.

    W is the kernel as a matrix of (all inputs of an output, outputs). Every call makes one step of power iteration,

        v = W u / |W u|,  u' = W^T v / |W^T v|,  sigma = v^T W u',

    in float32 whatever the precision; a call in training keeps u' for the next one. The gradient goes through sigma,
    with u' and v constant (equation 12): along the leading singular vectors it is 0, since scaling W changes nothing.

    Keras's layer of this kind assigns W / sigma to the trainable kernel in the forward pass. A discriminator would
    then change its weights whenever it only judges, as in the generator's update; the optimizer's moments would belong
    to weights that are no more; and the gradient would not go through sigma. Here the kernel is only read.

    Args:
      layer: has a kernel, as Dense and Conv2D, or is an Embedding; its kernel is linear in the output.

    Reference: Miyato et al., 2018, arXiv:1802.05957, equations 6, 8 and 12, algorithm 1.
    """

    def __init__(self, layer: keras.layers.Layer, *, dtype="float32", **kwargs) -> None:
        """Hold the layer, which keeps its own precision."""
        super().__init__(layer, dtype=dtype, **kwargs)

    def build(self, input_shape) -> None:
        """Make the layer's weights and the vector u, a random direction."""
        super().build(input_shape)
        self.u = self.add_weight(
            shape=(self._kernel.shape[-1],),
            initializer=keras.initializers.RandomNormal(stddev=1.0),
            trainable=False,
            autocast=False,
            # All replicas compute the same from the same kernel; saying so keeps it so.
            aggregation="only_first_replica",
            name="u",
        )

    def call(self, inputs, training: bool = False):
        """Return what the layer makes of `inputs` with the normalised kernel; its bias is added as it is."""
        u, sigma = self._power_step()
        if training:
            self.u.assign(u)
        kernel = tf.convert_to_tensor(self._kernel) / tf.maximum(sigma, _LEAST)
        # Within the scope the layer reads these values as its weights, and nothing is assigned.
        values = [(weight, kernel if weight is self._kernel else weight) for weight in self.layer.weights]
        with keras.StatelessScope(values):
            return self.layer(inputs)

    def sigma(self) -> tf.Tensor:
        """Return the estimate float32[] of the largest singular value, after one more step than is kept."""
        return self._power_step()[1]

    def as_plain(self, inputs):
        """Return what a layer of the same kind makes of `inputs`, with the normalised kernel as its own.

        See `interfaces.Portable`.
        """
        layer = type(self.layer).from_config(self.layer.get_config())
        outputs = layer(inputs)
        kernel = (tf.convert_to_tensor(self._kernel) / tf.maximum(self.sigma(), _LEAST)).numpy()
        layer.set_weights([kernel if weight is self._kernel else weight.numpy() for weight in self.layer.weights])
        return outputs

    def compute_output_shape(self, input_shape):
        """Return the layer's."""
        return self.layer.compute_output_shape(input_shape)

    @property
    def _kernel(self) -> keras.Variable:
        return self.layer.embeddings if isinstance(self.layer, keras.layers.Embedding) else self.layer.kernel

    def _power_step(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the next u float32[outputs], a constant, and sigma float32[]."""
        matrix = tf.reshape(tf.convert_to_tensor(self._kernel), [-1, self._kernel.shape[-1]])
        fixed = tf.stop_gradient(matrix)
        v = tf.math.l2_normalize(tf.linalg.matvec(fixed, tf.convert_to_tensor(self.u)), epsilon=_LEAST**2)
        u = tf.math.l2_normalize(tf.linalg.matvec(fixed, v, transpose_a=True), epsilon=_LEAST**2)
        return u, tf.tensordot(v, tf.linalg.matvec(matrix, u), 1)


def constrained(layer: keras.layers.Layer, spectral_norm: bool) -> keras.layers.Layer:
    """Return `layer`, spectrally normalised where that is asked for."""
    return SpectralNorm(layer) if spectral_norm else layer
