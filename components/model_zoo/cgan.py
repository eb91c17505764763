"""The conditional GAN for MNIST of 2022, layer by layer.

The generator sees the label as a one-hot vector beside its latents, the discriminator as an image of stripes beside
the picture. Both halve or double the size twice, so height and width must be multiples of 4.

Reference for the idea: Mirza and Osindero, 2014, arXiv:1411.1784.
"""

import keras
from keras import layers

from components.interfaces import DataSpec, Positive
from components.model_zoo.conditioning import LabelStripes, OneHot, network_inputs, require_classes
from components.model_zoo.layers import StatelessDropout, batch_norm
from components.model_zoo.sizes import smallest_map


def generator(spec: DataSpec, *, latent_dim: Positive = 100) -> keras.Model:
    """Return ([latents float32[B, Z], labels int32[B]]) -> images float32[B, H, W, C] in (-1, 1).

    Args:
      spec: data with labels, H and W multiples of 4.
      latent_dim: Z.

    Raises:
      UserError: no labels, or a size that two doublings do not reach.
    """
    require_classes(spec, "cgan.generator")
    height, width = smallest_map(spec, halvings=2, network="cgan.generator")
    latents, labels = network_inputs("latents", (latent_dim,))
    x = layers.Concatenate()([latents, OneHot(spec.num_classes)(labels)])
    x = layers.Dense(height * width * 128, use_bias=False)(x)
    x = layers.LeakyReLU(0.01)(batch_norm()(x))
    x = layers.Reshape((height, width, 128))(x)
    x = layers.Conv2D(64, 5, padding="same", use_bias=False)(layers.UpSampling2D()(x))
    x = layers.LeakyReLU(0.01)(batch_norm()(x))
    x = layers.Conv2D(spec.image_shape[-1], 5, padding="same", use_bias=False)(layers.UpSampling2D()(x))
    images = layers.Activation("tanh", dtype="float32")(x)
    return keras.Model([latents, labels], images, name="generator")


def discriminator(spec: DataSpec, *, label_channels: Positive = 1) -> keras.Model:
    """Return ([images float32[B, H, W, C], labels int32[B]]) -> {"logits": float32[B]}, positive for real.

    Args:
      spec: data with labels, H and W multiples of 4.
      label_channels: channels of the label image; num_classes of them lay the stripes over all channels.

    Raises:
      UserError: no labels, or a size that cannot be halved twice.
    """
    require_classes(spec, "cgan.discriminator")
    smallest_map(spec, halvings=2, network="cgan.discriminator")
    height, width, _ = spec.image_shape
    images, labels = network_inputs("images", spec.image_shape)
    stripes = LabelStripes(height, width, spec.num_classes, label_channels)(labels)
    x = layers.Concatenate()([images, stripes])
    for channels in (64, 128):
        x = layers.Conv2D(channels, 5, strides=2, padding="same", use_bias=False)(x)
        x = layers.LeakyReLU(0.2)(batch_norm()(x))
    x = layers.LeakyReLU(0.2)(layers.Dense(256)(layers.Flatten()(x)))
    x = StatelessDropout(0.5)(x)
    logits = layers.Dense(1, dtype="float32")(x)[:, 0]
    return keras.Model([images, labels], {"logits": logits}, name="discriminator")
