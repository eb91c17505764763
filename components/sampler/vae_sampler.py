"""Draws images from the prior of a variational autoencoder; encodes and reconstructs images that are given."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from components.interfaces import Networks, Positive, UserError
from components.sampler import class_labels
from components.sampler.chunks import in_chunks
from components.sampler.latent_decoder import LatentDecoder


class VAESampler(LatentDecoder):
    """Images of the network "vae"; see `interfaces.Sampler`, `Decoder`, `Encoder` and `Reconstructor`.

    Args:
      networks: hold a network "vae"; its moving average where the run keeps one.
      chunk_size: images made at once; image i depends on (seed, i, its label) and, within a rounding, on nothing else.
    """

    def __init__(self, networks: Networks, *, chunk_size: Positive = 100) -> None:
        """Hold the model; nothing is drawn yet."""
        if "vae" not in networks:
            raise UserError(f"`VAESampler` needs a network named 'vae'. Received {', '.join(networks)}.")
        self._vae = networks["vae"]
        self.conditional = bool(getattr(self._vae, "conditional", False))
        super().__init__(self._images_of, latent_dim=self._vae.latent_dim, spec=networks.spec, chunk_size=chunk_size)
        self._reconstructions = tf.function(self._reconstructions_of, autograph=False)
        self._means = tf.function(self._means_of, autograph=False)

    def reconstruct(self, images: np.ndarray, *, labels: Sequence[int] | None = None) -> np.ndarray:
        """Return uint8[N, H, W, C], decoded from the means of the posteriors, so that nothing is drawn.

        Args:
          images: uint8[N, H, W, C], N at least 1.
          labels: their N classes; a conditional model needs them, for another they play no part.

        Raises:
          UserError: images of another type or size, labels that do not fit, or none for a conditional model.
        """
        return in_chunks(self._reconstructions, *self._given(images, labels), chunk_size=self._chunk_size)

    def encode(self, images: np.ndarray, *, labels: Sequence[int] | None = None) -> np.ndarray:
        """Return float32[N, Z], the means of the posteriors; Args and Raises as in `reconstruct`."""
        return in_chunks(self._means, *self._given(images, labels), chunk_size=self._chunk_size)

    def _given(self, images: np.ndarray, labels: Sequence[int] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return images uint8[N, H, W, C] and labels int32[N], checked."""
        if np.shape(images)[1:] != self._spec.image_shape or np.asarray(images).dtype != np.uint8:
            raise UserError(
                f"Images to reconstruct must be uint8{['N', *self._spec.image_shape]}, as the model was trained on. "
                f"Received {np.asarray(images).dtype}{list(np.shape(images))}."
            )
        if labels is None and self._vae.conditional:
            raise UserError("A conditional model reconstructs images of known classes. Received no labels. Pass them.")
        return np.asarray(images), class_labels.chosen(len(images), labels, self._spec).astype(np.int32)

    def _images_of(self, latents: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        dummies = tf.zeros([self._chunk_size, *self._spec.image_shape])
        return self._as_images(self._vae(self._told([dummies, latents], labels), training=False))

    def _reconstructions_of(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        dummies = tf.zeros([self._chunk_size, self.latent_dim])
        inputs = self._told([_as_pixels(images), dummies], labels)
        return self._as_images(self._vae(inputs, training=False, reconstruct=True))

    def _means_of(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        pixels = _as_pixels(images)
        mean, _ = self._vae.encoder([pixels, labels] if self._vae.conditional else pixels, training=False)
        return mean

    def _told(self, inputs: list[tf.Tensor], labels: tf.Tensor) -> list[tf.Tensor]:
        return [*inputs, labels] if self._vae.conditional else inputs

    def _as_images(self, output: tf.Tensor) -> tf.Tensor:
        """Return uint8[chunk_size, H, W, C] of the model's output, whose last column is the divergence."""
        return tf.cast(tf.round(tf.reshape(output[:, :-1], [-1, *self._spec.image_shape]) * 255.0), tf.uint8)


def _as_pixels(images: tf.Tensor) -> tf.Tensor:
    """Return float32 in [0, 1] of uint8."""
    return tf.cast(images, tf.float32) / 255.0
