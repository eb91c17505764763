"""Draws images from a generator."""

import functools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from components.interfaces import Networks, Positive, UserError, latent_dim
from components.sampler import class_labels
from components.sampler.chunks import in_chunks


class ImageSampler:
    """Images of the network "generator" in inference mode; see `interfaces.Sampler`.

    Args:
      networks: hold a generator; its moving average where the run keeps one.
      chunk_size: images made at once; image i depends on (seed, i, its label, chunk_size) and on nothing else, so the
        first images of a larger request are those of a smaller one.
    """

    def __init__(self, networks: Networks, *, chunk_size: Positive = 100) -> None:
        """Hold the generator; nothing is drawn yet."""
        if "generator" not in networks:
            raise UserError(f"`ImageSampler` needs a network named 'generator'. Received {', '.join(networks)}.")
        self._generator = networks["generator"]
        self._spec = networks.spec
        self._latent_dim = latent_dim(self._generator)
        self._chunk_size = chunk_size
        self._images = tf.function(self._images_of_chunk, autograph=False)

    @functools.cached_property
    def conditional(self) -> bool:
        """Whether the images depend on the labels: tried on one latent vector a class, told its class and then 0."""
        classes = tf.range(max(1, self._spec.num_classes))
        latents = tf.random.stateless_normal([len(classes), self._latent_dim], [0, 0], alg="philox")
        told, untold = (self._generator([latents, labels], training=False) for labels in (classes, 0 * classes))
        return bool(tf.reduce_any(told != untold))

    def sample(self, num_images: int, *, seed: int, labels: Sequence[int] | None = None) -> np.ndarray:
        """Return uint8[N, H, W, C].

        Args:
          num_images: N, at least 1.
          seed: of the latents.
          labels: N classes; None: classes in turn, 0 1 2 ... 0 1 2 ...

        Raises:
          UserError: labels that are not N classes of the data.
        """
        classes = class_labels.chosen(num_images, labels, self._spec)
        return in_chunks(self._images, classes, seed, self._chunk_size)

    def _images_of_chunk(self, key: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        latents = tf.random.stateless_normal([self._chunk_size, self._latent_dim], key, alg="philox")
        images = self._generator([latents, labels], training=False)
        return tf.cast(tf.round(tf.clip_by_value(images * 127.5 + 127.5, 0.0, 255.0)), tf.uint8)
