"""The single-graph variational autoencoder: one model trains, reconstructs and samples, so no weights are shared.

Reference: Kingma and Welling, 2013, arXiv:1312.6114.
"""

import math

import keras
import tensorflow as tf
from keras import layers

from components.interfaces import DataSpec, Positive


@keras.saving.register_keras_serializable("gantry")
class SingleGraphVAE(keras.Model):
    """([images float32[B, H, W, C] in [0, 1], random float32[B, Z]]) -> float32[B, H * W * C + 1].

    The output is the pixels in [0, 1] and, last, the divergence in nats. A switch before the decoder sets the latents:

    | mode | latents |
    |---|---|
    | training=True | mean + exp(log_variance / 2) * random: a draw from the posterior |
    | training=False | random: the encoder is shut out, the images do not matter |
    | reconstruct=True | mean |

    Args:
      encoder: images -> (mean float32[B, Z], log_variance float32[B, Z]).
      decoder: latents float32[B, Z] -> logits float32[B, H * W * C].
    """

    def __init__(self, encoder: keras.Model, decoder: keras.Model, **kwargs) -> None:
        """Hold both halves."""
        super().__init__(**kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.latent_dim = int(decoder.inputs[0].shape[-1])
        self.built = True

    def call(self, inputs, training: bool = False, reconstruct: bool = False) -> tf.Tensor:
        """Return pixels and divergence side by side."""
        images, random = inputs
        logits, divergence = self.logits_and_divergence(images, random, training=training, reconstruct=reconstruct)
        return tf.concat([tf.sigmoid(logits), divergence[:, None]], axis=-1)

    def logits_and_divergence(
        self, images: tf.Tensor, random: tf.Tensor, *, training: bool, reconstruct: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return (float32[B, H * W * C], float32[B]); a loss works on logits, which do not saturate."""
        mean, log_variance = self.encoder(images, training=training)
        if reconstruct:
            latents = mean
        else:
            latents = mean + tf.exp(0.5 * log_variance) * random if training else random
        return self.decoder(latents, training=training), divergence_from_prior(mean, log_variance)

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
    """Return float32[B]: -1/2 sum of 1 + log_variance - mean^2 - exp(log_variance), in nats; 0 at the prior.

    Reference: Kingma and Welling, 2013, arXiv:1312.6114, equation 10 and appendix B.
    """
    return -0.5 * tf.reduce_sum(1.0 + log_variance - tf.square(mean) - tf.exp(log_variance), axis=-1)


def dense(spec: DataSpec, *, latent_dim: Positive = 64, hidden: Positive = 128) -> keras.Model:
    """Return the article's dense model: one hidden layer a half, no activation on mean and log variance.

    Args:
      spec: data of any size.
      latent_dim: Z.
      hidden: units of the hidden layers.
    """
    images = keras.Input(spec.image_shape, name="images")
    x = layers.Dense(hidden, activation="relu")(layers.Flatten()(images))
    mean = layers.Dense(latent_dim, dtype="float32", name="mean")(x)
    log_variance = layers.Dense(latent_dim, dtype="float32", name="log_variance")(x)
    latents = keras.Input((latent_dim,), name="latents")
    x = layers.Dense(hidden, activation="relu")(latents)
    logits = layers.Dense(math.prod(spec.image_shape), dtype="float32", name="logits")(x)
    encoder = keras.Model(images, (mean, log_variance), name="encoder")
    return SingleGraphVAE(encoder, keras.Model(latents, logits, name="decoder"), name="vae")
