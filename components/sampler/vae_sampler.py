"""Draws images from the prior of a variational autoencoder."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from components.interfaces import Networks, Positive, UserError
from components.sampler.chunks import in_chunks


class VAESampler:
    """Images of the network "vae" in sampling mode, where its encoder is shut out; see `interfaces.Sampler`.

    Args:
      networks: hold a network "vae".
      chunk_size: images made at once; image i depends on (seed, i, chunk_size) and on nothing else.
    """

    def __init__(self, networks: Networks, *, chunk_size: Positive = 100) -> None:
        """Hold the model; nothing is drawn yet."""
        if "vae" not in networks:
            raise UserError(f"`VAESampler` needs a network named 'vae'. Received {', '.join(networks)}.")
        self._vae = networks["vae"]
        self._shape = networks.spec.image_shape
        self._chunk_size = chunk_size
        self._images = tf.function(self._images_of_chunk, autograph=False)

    def sample(self, num_images: int, *, seed: int, labels: Sequence[int] | None = None) -> np.ndarray:
        """Return uint8[N, H, W, C]; labels play no part."""
        return in_chunks(self._images, np.zeros(num_images, np.int32), seed, self._chunk_size)

    def _images_of_chunk(self, key: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        latents = tf.random.stateless_normal([self._chunk_size, self._vae.latent_dim], key, alg="philox")
        dummies = tf.zeros([self._chunk_size, *self._shape])
        pixels = self._vae([dummies, latents], training=False)[:, :-1]
        return tf.cast(tf.round(tf.reshape(pixels, [self._chunk_size, *self._shape]) * 255.0), tf.uint8)
