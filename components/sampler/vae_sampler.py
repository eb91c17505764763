"""Draws images from the prior of a variational autoencoder, and reconstructs images that are given."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from components.interfaces import Networks, Positive, UserError
from components.sampler import class_labels
from components.sampler.chunks import cut, in_chunks


class VAESampler:
    """Images of the network "vae"; see `interfaces.Sampler` and `interfaces.Reconstructor`.

    Args:
      networks: hold a network "vae"; its moving average where the run keeps one.
      chunk_size: images made at once; image i depends on (seed, i, its label, chunk_size) and on nothing else.
    """

    def __init__(self, networks: Networks, *, chunk_size: Positive = 100) -> None:
        """Hold the model; nothing is drawn yet."""
        if "vae" not in networks:
            raise UserError(f"`VAESampler` needs a network named 'vae'. Received {', '.join(networks)}.")
        self._vae = networks["vae"]
        self.conditional = bool(getattr(self._vae, "conditional", False))
        self._spec = networks.spec
        self._chunk_size = chunk_size
        self._images = tf.function(self._images_of_chunk, autograph=False)
        self._reconstructions = tf.function(self._reconstructions_of_chunk, autograph=False)

    def sample(self, num_images: int, *, seed: int, labels: Sequence[int] | None = None) -> np.ndarray:
        """Return uint8[N, H, W, C], decoded from draws of the prior; the encoder is shut out.

        Args:
          num_images: N, at least 1.
          seed: of the latents.
          labels: N classes; None: classes in turn. They play no part where the model is not conditional.

        Raises:
          UserError: labels that are not N classes of the data.
        """
        return in_chunks(self._images, class_labels.chosen(num_images, labels, self._spec), seed, self._chunk_size)

    def reconstruct(self, images: np.ndarray, *, labels: Sequence[int] | None = None) -> np.ndarray:
        """Return uint8[N, H, W, C], decoded from the means of the posteriors, so that nothing is drawn.

        Args:
          images: uint8[N, H, W, C], N at least 1.
          labels: their N classes; a conditional model needs them, for another they play no part.

        Raises:
          UserError: images of another type or size, labels that do not fit, or none for a conditional model.
        """
        if np.shape(images)[1:] != self._spec.image_shape or np.asarray(images).dtype != np.uint8:
            raise UserError(
                f"Images to reconstruct must be uint8{['N', *self._spec.image_shape]}, as the model was trained on. "
                f"Received {np.asarray(images).dtype}{list(np.shape(images))}."
            )
        if labels is None and self._vae.conditional:
            raise UserError("A conditional model reconstructs images of known classes. Received no labels. Pass them.")
        classes = class_labels.chosen(len(images), labels, self._spec).astype(np.int32)
        pairs = zip(cut(np.asarray(images), self._chunk_size), cut(classes, self._chunk_size), strict=True)
        return np.concatenate([self._reconstructions(*pair).numpy() for pair in pairs])[: len(images)]

    def _images_of_chunk(self, key: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        latents = tf.random.stateless_normal([self._chunk_size, self._vae.latent_dim], key, alg="philox")
        dummies = tf.zeros([self._chunk_size, *self._spec.image_shape])
        return self._as_images(self._vae(self._inputs(dummies, latents, labels), training=False))

    def _reconstructions_of_chunk(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        dummies = tf.zeros([self._chunk_size, self._vae.latent_dim])
        inputs = self._inputs(tf.cast(images, tf.float32) / 255.0, dummies, labels)
        return self._as_images(self._vae(inputs, training=False, reconstruct=True))

    def _inputs(self, images: tf.Tensor, random: tf.Tensor, labels: tf.Tensor) -> list[tf.Tensor]:
        return [images, random, labels] if self._vae.conditional else [images, random]

    def _as_images(self, output: tf.Tensor) -> tf.Tensor:
        """Return uint8[chunk_size, H, W, C] of the model's output, whose last column is the divergence."""
        return tf.cast(tf.round(tf.reshape(output[:, :-1], [-1, *self._spec.image_shape]) * 255.0), tf.uint8)
