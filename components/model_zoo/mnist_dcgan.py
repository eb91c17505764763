"""The two DCGANs for MNIST: the TPU article's of 2019 by default, and the TensorFlow tutorial's by its bindings.

|  | article | tutorial |
|---|---|---|
| generator | momentum .8, slope .2, output_bias True | momentum .99, slope .3, output_bias False |
| discriminator | widths (16, 64), slope .2, dropout 0 | widths (64, 128), slope .3, dropout .3 |

Labels are not looked at, except by the auxiliary classifier. Height and width must be multiples of 4.

Reference: Radford et al., 2015, arXiv:1511.06434; the classifier: Odena et al., 2016, arXiv:1610.09585.
"""

from collections.abc import Sequence

import keras
from keras import layers

from components.interfaces import DataSpec, Positive, Share
from components.model_zoo.conditioning import OneHot, network_inputs, require_classes
from components.model_zoo.layers import StatelessDropout, batch_norm
from components.model_zoo.sizes import smallest_map


def generator(
    spec: DataSpec,
    *,
    latent_dim: Positive = 100,
    momentum: Share = 0.8,
    slope: Share = 0.2,
    output_bias: bool = True,
    conditional: bool = False,
) -> keras.Model:
    """Return ([latents float32[B, Z], labels int32[B]]) -> images float32[B, H, W, C] in (-1, 1).

    Args:
      spec: data of H and W multiples of 4.
      latent_dim: Z.
      momentum: of the batch normalisations' moving statistics.
      slope: of the leaky ReLUs below 0.
      output_bias: whether the last layer has a bias.
      conditional: whether the label enters, as a one-hot vector beside the latents.

    Raises:
      UserError: a size that two doublings do not reach, or conditional without labels.
    """
    height, width = smallest_map(spec, halvings=2, network="mnist_dcgan.generator")
    latents, labels = network_inputs("latents", (latent_dim,))
    x = latents
    if conditional:
        require_classes(spec, "mnist_dcgan.generator")
        x = layers.Concatenate()([latents, OneHot(spec.num_classes)(labels)])
    x = layers.Dense(height * width * 256, use_bias=False)(x)
    x = layers.LeakyReLU(slope)(batch_norm(momentum=momentum)(x))
    x = layers.Reshape((height, width, 256))(x)
    for channels, strides in ((128, 1), (64, 2)):
        x = layers.Conv2DTranspose(channels, 5, strides=strides, padding="same", use_bias=False)(x)
        x = layers.LeakyReLU(slope)(batch_norm(momentum=momentum)(x))
    x = layers.Conv2DTranspose(spec.image_shape[-1], 5, strides=2, padding="same", use_bias=output_bias)(x)
    images = layers.Activation("tanh", dtype="float32")(x)
    return keras.Model([latents, labels], images, name="generator")


def discriminator(
    spec: DataSpec,
    *,
    widths: Sequence[Positive] = (16, 64),
    slope: Share = 0.2,
    dropout: Share = 0.0,
    auxiliary_classifier: bool = False,
) -> keras.Model:
    """Return ([images float32[B, H, W, C], labels int32[B]]) -> {"logits": float32[B]}, positive for real.

    Args:
      spec: data of H and W multiples of 2 ** len(widths).
      widths: channels of the maps; each comes from a 5x5 convolution of stride 2.
      slope: of the leaky ReLUs below 0.
      dropout: share of each map that is dropped in training.
      auxiliary_classifier: whether "class_logits" float32[B, K] are returned too.

    Raises:
      UserError: a size that cannot be halved so often, or a classifier without labels.
    """
    smallest_map(spec, halvings=len(widths), network="mnist_dcgan.discriminator")
    images, labels = network_inputs("images", spec.image_shape)
    x = images
    for channels in widths:
        x = layers.LeakyReLU(slope)(layers.Conv2D(channels, 5, strides=2, padding="same")(x))
        x = StatelessDropout(dropout)(x)
    x = layers.Flatten()(x)
    outputs = {"logits": layers.Dense(1, dtype="float32")(x)[:, 0]}
    if auxiliary_classifier:
        require_classes(spec, "mnist_dcgan.discriminator")
        outputs["class_logits"] = layers.Dense(spec.num_classes, dtype="float32")(x)
    return keras.Model([images, labels], outputs, name="discriminator")
