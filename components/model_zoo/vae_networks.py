"""The single-graph variational autoencoder: one model trains, reconstructs and samples, so no weights are shared.

`dense` is the article's, `convolutional` the same with convolutions in both halves; each is conditional where it is
bound so: the label, as a one-hot vector, then enters encoder and decoder, and the latents need not tell the class.

Reference: Kingma and Welling, 2013, arXiv:1312.6114. Conditional: Kingma et al., 2014, arXiv:1406.5298, section 2.1,
model M2 with observed labels; Sohn et al., 2015 (NIPS 28), section 4.1, with a prior that does not depend on the label.
"""

import math
from collections.abc import Callable

import keras
import tensorflow as tf
from keras import layers

from components.interfaces import DataSpec, Positive
from components.model_zoo.conditioning import OneHot, network_inputs, require_classes
from components.model_zoo.sizes import Widths, smallest_map

Stage = Callable[[keras.KerasTensor], keras.KerasTensor]


@keras.saving.register_keras_serializable("gantry")
class SingleGraphVAE(keras.Model):
    """([images float32[B, H, W, C] in [0, 1], random float32[B, Z]]) -> float32[B, H * W * C + 1].

    The output is the pixels in [0, 1] and, last, the divergence in nats. A conditional model has a third input, labels
    int32[B] in [0, K). A switch before the decoder sets the latents:

    | mode | latents |
    |---|---|
    | training=True | mean + exp(log_variance / 2) * random: a draw from the posterior |
    | training=False | random: the encoder is shut out, the images do not matter |
    | reconstruct=True | mean |

    Args:
      encoder: images, or [images, labels] -> (mean float32[B, Z], log_variance float32[B, Z]).
      decoder: latents float32[B, Z], or [latents, labels] -> logits float32[B, H * W * C].
    """

    def __init__(self, encoder: keras.Model, decoder: keras.Model, **kwargs) -> None:
        """Hold both halves; what stands between them is computed in float32, whatever their own precision."""
        super().__init__(dtype="float32", **kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.latent_dim = int(decoder.inputs[0].shape[-1])
        self.conditional = len(decoder.inputs) == 2
        self.built = True

    def call(self, inputs, training: bool = False, reconstruct: bool = False) -> tf.Tensor:
        """Return pixels and divergence side by side."""
        logits, divergence = self.logits_and_divergence(*inputs, training=training, reconstruct=reconstruct)
        return tf.concat([tf.sigmoid(logits), divergence[:, None]], axis=-1)

    def logits_and_divergence(
        self,
        images: tf.Tensor,
        random: tf.Tensor,
        labels: tf.Tensor | None = None,
        *,
        training: bool,
        reconstruct: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return logits float32[B, H * W * C] and divergence float32[B] in nats; logits do not saturate in a loss.

        Args:
          images: float32[B, H, W, C] in [0, 1].
          random: float32[B, Z], standard normal.
          labels: int32[B] in [0, K); a conditional model needs them, another does not look at them.
          training: draw the latents from the posterior.
          reconstruct: take the posterior's mean instead, whatever `training` is.
        """
        mean, log_variance = self.encoder(self._told(images, labels), training=training)
        if reconstruct:
            latents = mean
        else:
            latents = mean + tf.exp(0.5 * log_variance) * random if training else random
        logits = self.decoder(self._told(latents, labels), training=training)
        return logits, divergence_from_prior(mean, log_variance)

    def parts(self) -> dict[str, keras.Model]:
        """Return "generator", "encoder" and "reconstruction" (from the posterior's mean); see `interfaces.Composed`."""
        shape = self.encoder.inputs[0].shape[1:]
        images, labels = network_inputs("images", shape)
        mean, log_variance = self.encoder(self._told(layers.Rescaling(0.5, 0.5, dtype="float32")(images), labels))
        posterior = {"mean": mean, "log_variance": log_variance}

        def shown(latents: keras.KerasTensor, labels: keras.KerasTensor) -> keras.KerasTensor:
            pixels = layers.Activation("sigmoid", dtype="float32")(self.decoder(self._told(latents, labels)))
            return layers.Reshape(shape, dtype="float32")(layers.Rescaling(2.0, -1.0, dtype="float32")(pixels))

        latents, told = network_inputs("latents", (self.latent_dim,))
        return {
            "generator": keras.Model([latents, told], shown(latents, told), name="generator"),
            "encoder": keras.Model([images, labels], posterior, name="encoder"),
            "reconstruction": keras.Model([images, labels], shown(mean, labels), name="reconstruction"),
        }

    def _told(self, first: tf.Tensor, labels: tf.Tensor | None) -> tf.Tensor | list[tf.Tensor]:
        """Return the input of either half."""
        if not self.conditional:
            return first
        if labels is None:
            raise ValueError(f"The conditional model {self.name!r} has the inputs images, random, labels. Pass labels.")
        return [first, labels]

    def get_config(self) -> dict:
        """Return what makes an equal model."""
        halves = {"encoder": self.encoder, "decoder": self.decoder}
        return {"name": self.name, **{k: keras.saving.serialize_keras_object(v) for k, v in halves.items()}}

    @classmethod
    def from_config(cls, config: dict) -> "SingleGraphVAE":
        """Return the model that `get_config` described."""
        halves = {k: keras.saving.deserialize_keras_object(config[k]) for k in ("encoder", "decoder")}
        return cls(**halves, name=config["name"])


def divergence_from_prior(mean: tf.Tensor, log_variance: tf.Tensor) -> tf.Tensor:
    """Return the divergence of normal posteriors from the standard normal prior; 0 where both are the same.

    -1/2 sum over latents of 1 + log_variance - mean^2 - exp(log_variance).

    Args:
      mean: float32[B, Z].
      log_variance: float32[B, Z], natural logarithm.

    Returns:
      float32[B], nats per example, at least 0.

    Reference: Kingma and Welling, 2013, arXiv:1312.6114, equation 10 and appendix B.
    """
    return -0.5 * tf.reduce_sum(1.0 + log_variance - tf.square(mean) - tf.exp(log_variance), axis=-1)


def dense(
    spec: DataSpec, *, latent_dim: Positive = 64, hidden: Positive = 128, conditional: bool = False
) -> keras.Model:
    """Return the article's dense model: one hidden layer a half, no activation on mean and log variance.

    Args:
      spec: data of any size.
      latent_dim: Z.
      hidden: units of the hidden layers.
      conditional: whether the model is told the label.

    Raises:
      UserError: conditional without labels.
    """
    num_classes = _num_classes(spec, conditional, "vae_networks.dense")
    logits = layers.Dense(math.prod(spec.image_shape), dtype="float32", name="logits")
    return _single_graph(spec, layers.Flatten(), logits, latent_dim=latent_dim, hidden=hidden, num_classes=num_classes)


def convolutional(
    spec: DataSpec,
    *,
    latent_dim: Positive = 64,
    widths: Widths = (32, 64),
    hidden: Positive = 256,
    conditional: bool = False,
) -> keras.Model:
    """Return a model whose encoder halves the map at every width, and whose decoder doubles it as often.

    Encoder: a 4x4 convolution of stride 2 and a ReLU for every width, then a hidden layer. Decoder: a hidden layer, a
    layer of the smallest map, then a 4x4 transposed convolution of stride 2 for every width. No normalisation: a row
    does not depend on the others.

    Args:
      spec: data of H and W multiples of 2 ** len(widths).
      latent_dim: Z.
      widths: channels of the maps, largest map first; at least one.
      hidden: units of the hidden layers.
      conditional: whether the model is told the label, beside the encoder's smallest map and beside the latents.

    Raises:
      UserError: a size that cannot be halved so often, or conditional without labels.
    """
    height, width = smallest_map(spec, halvings=len(widths), network="vae_networks.convolutional")
    num_classes = _num_classes(spec, conditional, "vae_networks.convolutional")

    def features(images: keras.KerasTensor) -> keras.KerasTensor:
        x = images
        for channels in widths:
            x = layers.Conv2D(channels, 4, strides=2, padding="same", activation="relu")(x)
        return layers.Flatten()(x)

    def logits(x: keras.KerasTensor) -> keras.KerasTensor:
        x = layers.Dense(height * width * widths[-1], activation="relu")(x)
        x = layers.Reshape((height, width, widths[-1]))(x)
        for channels in reversed(widths[:-1]):
            x = layers.Conv2DTranspose(channels, 4, strides=2, padding="same", activation="relu")(x)
        x = layers.Conv2DTranspose(spec.image_shape[-1], 4, strides=2, padding="same", dtype="float32")(x)
        return layers.Flatten(dtype="float32", name="logits")(x)

    return _single_graph(spec, features, logits, latent_dim=latent_dim, hidden=hidden, num_classes=num_classes)


def _single_graph(
    spec: DataSpec, features: Stage, logits: Stage, *, latent_dim: int, hidden: int, num_classes: int
) -> SingleGraphVAE:
    """Return the model of `features` float[B, F] of images and `logits` float32[B, H * W * C] of hidden units."""
    images, labels = network_inputs("images", spec.image_shape)
    x = layers.Dense(hidden, activation="relu")(_beside(features(images), labels, num_classes))
    mean = layers.Dense(latent_dim, dtype="float32", name="mean")(x)
    log_variance = layers.Dense(latent_dim, dtype="float32", name="log_variance")(x)
    encoder = keras.Model([images, labels] if num_classes else images, (mean, log_variance), name="encoder")
    latents, labels = network_inputs("latents", (latent_dim,))
    x = layers.Dense(hidden, activation="relu")(_beside(latents, labels, num_classes))
    decoder = keras.Model([latents, labels] if num_classes else latents, logits(x), name="decoder")
    return SingleGraphVAE(encoder, decoder, name="vae")


def _beside(x: keras.KerasTensor, labels: keras.KerasTensor, num_classes: int) -> keras.KerasTensor:
    """Return float[B, F + K] of float[B, F] and labels int32[B]; K is 0 where the model is told none."""
    return layers.Concatenate()([x, OneHot(num_classes)(labels)]) if num_classes else x


def _num_classes(spec: DataSpec, conditional: bool, network: str) -> int:
    """Return K of a conditional model, else 0."""
    if not conditional:
        return 0
    require_classes(spec, network)
    return spec.num_classes
