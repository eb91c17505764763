"""Differentiable augmentation: what the discriminator sees is changed at random, real and generated images alike.

Each is bound into a list, which is applied in order, in the moves of both players:

    gan.alternating.augmentations = [@diff_augment.color, @diff_augment.translation, @diff_augment.cutout]

Every image of a batch draws its own numbers. The default strengths are those of the paper.

Reference: Zhao et al., 2020, arXiv:2006.10738, section 3.2 (both players, equations 6 and 7) and appendix A.
"""

from typing import Annotated

import tensorflow as tf
from annotated_types import Ge, Gt, Le

from components.interfaces import Random, Share, Weight

Part = Annotated[float, Gt(0), Le(1)]


def color(
    images: tf.Tensor,
    *,
    random: Random,
    brightness: Weight = 1.0,
    saturation: Annotated[float, Ge(0), Le(1)] = 1.0,
    contrast: Annotated[float, Ge(0), Le(1)] = 0.5,
) -> tf.Tensor:
    """Change brightness, then saturation, then contrast, of each image as a whole.

    x + b; then mean over channels + s (x - that mean); then mean of the image + c (x - that mean).

    Args:
      images: float32[B, H, W, C] in [-1, 1].
      random: draws b, s and c of each image.
      brightness: width of the range of b, centred on 0.
      saturation: s is uniform in [1 - saturation, 1 + saturation); no effect on one channel.
      contrast: c is uniform in [1 - contrast, 1 + contrast).

    Returns:
      float32[B, H, W, C], which may leave [-1, 1].

    Reference: Zhao et al., 2020, arXiv:2006.10738, appendix A.
    """
    b, s, c = tf.unstack(2.0 * random.uniform(random.occasion("augment/color"), [3, 1, 1, 1]) - 1.0, axis=1)
    images = images + 0.5 * brightness * b
    if images.shape[-1] > 1:
        images = _spread(images, 1.0 + saturation * s, axis=[3])
    return _spread(images, 1.0 + contrast * c, axis=[1, 2, 3])


def translation(images: tf.Tensor, *, random: Random, ratio: Part = 0.125) -> tf.Tensor:
    """Shift each image by whole pixels; what comes into view is 0, the grey between black and white.

    Args:
      images: float32[B, H, W, C].
      random: draws both shifts of each image.
      ratio: shifts are uniform over the integers within round(ratio * H), or W, of 0.

    Returns:
      float32[B, H, W, C].

    Reference: Zhao et al., 2020, arXiv:2006.10738, appendix A.
    """
    where = random.uniform(random.occasion("augment/translation"), [2])
    for axis in (1, 2):
        size = images.shape[axis]
        most = int(size * ratio + 0.5)
        shift = tf.cast(tf.floor(where[:, axis - 1] * (2 * most + 1)), tf.int32)  # in 0 ... 2 most
        padding = [[0, 0] if other != axis else [most, most] for other in range(4)]
        index = tf.range(size)[None, :] + shift[:, None]
        images = tf.gather(tf.pad(images, padding), index, axis=axis, batch_dims=1)
    return images


def cutout(images: tf.Tensor, *, random: Random, ratio: Part = 0.5) -> tf.Tensor:
    """Set a rectangle of each image to 0, the grey between black and white.

    Args:
      images: float32[B, H, W, C].
      random: draws the centre of the rectangle, uniform over the pixels; it may reach beyond the border.
      ratio: the rectangle is round(ratio * H) high and round(ratio * W) wide.

    Returns:
      float32[B, H, W, C].

    Reference: Zhao et al., 2020, arXiv:2006.10738, appendix A.
    """
    where = random.uniform(random.occasion("augment/cutout"), [2])
    inside = []
    for axis in (1, 2):
        size = images.shape[axis]
        length = int(size * ratio + 0.5)
        centre = tf.floor(where[:, axis - 1] * (size + 1 - length % 2))
        first = centre[:, None] - length // 2
        pixels = tf.range(size, dtype=tf.float32)[None, :]
        inside.append((pixels >= first) & (pixels < first + length))
    hole = inside[0][:, :, None, None] & inside[1][:, None, :, None]
    return tf.where(hole, tf.zeros_like(images), images)


def flip(images: tf.Tensor, *, random: Random, share: Share = 0.5) -> tf.Tensor:
    """Mirror a share of the images left to right; not for digits and letters.

    Args:
      images: float32[B, H, W, C].
      random: draws which.
      share: the probability of each image.

    Returns:
      float32[B, H, W, C].
    """
    chosen = random.uniform(random.occasion("augment/flip"), [1, 1, 1]) < share
    return tf.where(chosen, tf.reverse(images, axis=[2]), images)


def _spread(images: tf.Tensor, factor: tf.Tensor, axis: list[int]) -> tf.Tensor:
    """Return the mean over `axis` and `factor` float32[B, 1, 1, 1] times the distance from it."""
    mean = tf.reduce_mean(images, axis=axis, keepdims=True)
    return mean + factor * (images - mean)
