"""The conditional Wasserstein GAN for CIFAR-10 that followed the conditional GAN of 2022.

Height and width must be multiples of 4. The original's critic has BatchNorm, which a per-example gradient penalty
forbids: LayerNorm is the default here, and BatchNorm a binding.

Reference: Gulrajani et al., 2017, arXiv:1704.00028; section 4 of the paper says why the critic has no BatchNorm.
"""

from typing import Literal

import keras
from keras import layers

from components.interfaces import DataSpec, Positive
from components.model_zoo.conditioning import LabelStripes, OneHot, network_inputs, require_classes
from components.model_zoo.layers import batch_norm
from components.model_zoo.sizes import smallest_map

Normalisation = Literal["layer", "batch", "none"]


def generator(spec: DataSpec, *, latent_dim: Positive = 500) -> keras.Model:
    """Return ([latents float32[B, Z], labels int32[B]]) -> images float32[B, H, W, C] in (-1, 1).

    Args:
      spec: data with labels, H and W multiples of 4.
      latent_dim: Z.

    Raises:
      UserError: no labels, or a size that two doublings do not reach.
    """
    require_classes(spec, "cwgan.generator")
    height, width = smallest_map(spec, halvings=2, network="cwgan.generator")
    latents, labels = network_inputs("latents", (latent_dim,))
    x = layers.Concatenate()([latents, OneHot(spec.num_classes)(labels)])
    x = layers.Dense(1024, use_bias=False)(x)
    x = layers.Dense(height * width * 128, use_bias=False)(x)
    x = layers.LeakyReLU(0.01)(batch_norm(momentum=0.8)(x))
    x = layers.Reshape((height, width, 128))(x)
    for channels in (64, 32):
        x = layers.Conv2D(channels, 3, padding="same", use_bias=False)(layers.UpSampling2D()(x))
        x = layers.LeakyReLU(0.01)(batch_norm(momentum=0.8)(x))
    x = layers.Conv2D(spec.image_shape[-1], 3, padding="same", use_bias=False)(x)
    images = layers.Activation("tanh", dtype="float32")(x)
    return keras.Model([latents, labels], images, name="generator")


def discriminator(spec: DataSpec, *, normalisation: Normalisation = "layer") -> keras.Model:
    """Return the critic ([images float32[B, H, W, C], labels int32[B]]) -> {"logits": float32[B]}, a score.

    Args:
      spec: data with labels, H and W multiples of 4.
      normalisation: of the second and third map: "layer", "batch" (not with a gradient penalty) or "none".

    Raises:
      UserError: no labels, or a size that cannot be halved twice.
    """
    require_classes(spec, "cwgan.discriminator")
    smallest_map(spec, halvings=2, network="cwgan.discriminator")
    height, width, _ = spec.image_shape
    images, labels = network_inputs("images", spec.image_shape)
    stripes = LabelStripes(height, width, spec.num_classes, channels=spec.num_classes)(labels)
    x = layers.Concatenate()([images, stripes])
    x = layers.LeakyReLU(0.2)(layers.Conv2D(32, 3, padding="same")(x))
    for channels in (64, 128):
        x = layers.Conv2D(channels, 3, strides=2, padding="same")(x)
        x = layers.LeakyReLU(0.2)(_normalised(x, normalisation))
    x = layers.LeakyReLU(0.2)(layers.Dense(256)(layers.Flatten()(x)))
    logits = layers.Dense(1, dtype="float32")(x)[:, 0]
    return keras.Model([images, labels], {"logits": logits}, name="discriminator")


def _normalised(x: keras.KerasTensor, normalisation: Normalisation) -> keras.KerasTensor:
    if normalisation == "none":
        return x
    return layers.LayerNormalization(axis=[1, 2, 3])(x) if normalisation == "layer" else batch_norm(momentum=0.8)(x)
