"""Deep convolutional GANs of bindable width, conditional where the data have labels.

Every entry of `widths` is a map twice as large (generator) or half as large (discriminator) as the one before, so
height and width must be multiples of 2 ** len(widths).

Reference: Radford et al., 2015, arXiv:1511.06434, section 3; the discriminator's class term is a projection, Miyato and
Koyama, 2018, arXiv:1802.05637.
"""

from collections.abc import Sequence
from typing import Literal

import keras
from keras import layers

from components.interfaces import DataSpec, Positive
from components.model_zoo.conditioning import OneHot, network_inputs, projection_logits
from components.model_zoo.layers import batch_norm
from components.model_zoo.sizes import smallest_map

Upsampling = Literal["transposed", "nearest"]


def generator(
    spec: DataSpec,
    *,
    latent_dim: Positive = 100,
    widths: Sequence[Positive] = (128, 64),
    upsampling: Upsampling = "transposed",
) -> keras.Model:
    """Return ([latents float32[B, Z], labels int32[B]]) -> images float32[B, H, W, C] in (-1, 1).

    Args:
      spec: data of H and W multiples of 2 ** len(widths).
      latent_dim: Z.
      widths: channels of the maps, smallest map first; each is doubled in size.
      upsampling: "transposed": by a 4x4 transposed convolution; "nearest": by repeating pixels, then a 3x3 convolution,
        which leaves no checkerboard (Odena et al., 2016, doi:10.23915/distill.00003).

    Raises:
      UserError: a size that the doublings do not reach.
    """
    height, width = smallest_map(spec, halvings=len(widths), network="dcgan.generator")
    latents, labels = network_inputs("latents", (latent_dim,))
    x = latents
    if spec.num_classes:
        x = layers.Concatenate()([latents, OneHot(spec.num_classes)(labels)])
    x = layers.Dense(height * width * widths[0], use_bias=False)(x)
    x = layers.Reshape((height, width, widths[0]))(x)
    x = layers.ReLU()(batch_norm(momentum=0.9)(x))
    for channels in widths[1:]:
        x = _doubled(x, channels, upsampling, use_bias=False)
        x = layers.ReLU()(batch_norm(momentum=0.9)(x))
    x = _doubled(x, spec.image_shape[-1], upsampling, use_bias=True)
    images = layers.Activation("tanh", dtype="float32")(x)
    return keras.Model([latents, labels], images, name="generator")


def discriminator(spec: DataSpec, *, widths: Sequence[Positive] = (64, 128)) -> keras.Model:
    """Return ([images float32[B, H, W, C], labels int32[B]]) -> {"logits": float32[B]}, positive for real.

    No normalisation, so that any gradient penalty fits.

    Args:
      spec: data of H and W multiples of 2 ** len(widths).
      widths: channels of the maps, largest map first; each comes from a 4x4 convolution of stride 2.

    Raises:
      UserError: a size that cannot be halved so often.
    """
    smallest_map(spec, halvings=len(widths), network="dcgan.discriminator")
    images, labels = network_inputs("images", spec.image_shape)
    x = images
    for channels in widths:
        x = layers.LeakyReLU(0.2)(layers.Conv2D(channels, 4, strides=2, padding="same")(x))
    logits = projection_logits(layers.Flatten()(x), labels, spec.num_classes)
    return keras.Model([images, labels], {"logits": logits}, name="discriminator")


def _doubled(x: keras.KerasTensor, channels: int, upsampling: Upsampling, *, use_bias: bool) -> keras.KerasTensor:
    if upsampling == "transposed":
        return layers.Conv2DTranspose(channels, 4, strides=2, padding="same", use_bias=use_bias)(x)
    return layers.Conv2D(channels, 3, padding="same", use_bias=use_bias)(layers.UpSampling2D()(x))
