"""Draws images from a generator."""

import functools

import tensorflow as tf

from components.dependence import depends
from components.interfaces import Networks, Positive, UserError, latent_dim
from components.sampler.latent_decoder import LatentDecoder


class ImageSampler(LatentDecoder):
    """Images of the network "generator" in inference mode; see `interfaces.Sampler` and `interfaces.Decoder`.

    Args:
      networks: hold a generator; its moving average where the run keeps one.
      chunk_size: images made at once; image i depends on (seed, i, its label) and, within a rounding, on nothing else.
    """

    def __init__(self, networks: Networks, *, chunk_size: Positive = 100) -> None:
        """Hold the generator; nothing is drawn yet."""
        if "generator" not in networks:
            raise UserError(f"`ImageSampler` needs a network named 'generator'. Received {', '.join(networks)}.")
        self._generator = networks["generator"]
        super().__init__(
            self._images_of,
            latent_dim=latent_dim(self._generator),
            spec=networks.spec,
            chunk_size=chunk_size,
        )

    @functools.cached_property
    def conditional(self) -> bool:
        """Whether the labels reach the images, whatever the weights make of them."""
        inputs = [tf.TensorSpec([1, latent_dim(self._generator)], tf.float32), tf.TensorSpec([1], tf.int32)]
        return depends(lambda *both: self._generator(list(both), training=False), inputs, which=1)

    def _images_of(self, latents: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        images = self._generator([latents, labels], training=False)
        return tf.cast(tf.round(tf.clip_by_value(images * 127.5 + 127.5, 0.0, 255.0)), tf.uint8)
