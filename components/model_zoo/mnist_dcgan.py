"""The two DCGANs for MNIST: the TPU article's of 2019 by default, and the TensorFlow tutorial's by its bindings.

|  | article | tutorial |
|---|---|---|
| generator | momentum .8, slope .2, output_bias True | momentum .99, slope .3, output_bias False |
| discriminator | widths (16, 64), slope .2, dropout 0 | widths (64, 128), slope .3, dropout .3 |

Labels are not looked at unless a conditioning is bound. The generator's height and width must be multiples of 4.

Reference: Radford et al., 2015, arXiv:1511.06434; the classifier: Odena et al., 2016, arXiv:1610.09585; the network
that reads the codes: Chen et al., 2016, arXiv:1606.03657.
"""

from typing import Literal

import keras
from keras import layers

from components.interfaces import DataSpec, Positive, Share
from components.model_zoo.conditioning import network_inputs, require_classes
from components.model_zoo.discriminator_conditioning import ClassOfImages, DiscriminatorConditioning
from components.model_zoo.fourier import FourierConv2DTranspose
from components.model_zoo.generator_conditioning import GeneratorConditioning, enter_class
from components.model_zoo.layers import StatelessDropout
from components.model_zoo.normalisation import Normalisation, first_map, normaliser
from components.model_zoo.sizes import Widths, smallest_map
from components.model_zoo.spectral_norm import constrained

Convolution = Literal["direct", "fourier"]


def generator(
    spec: DataSpec,
    *,
    latent_dim: Positive = 100,
    momentum: Share = 0.8,
    slope: Share = 0.2,
    output_bias: bool = True,
    conditioning: GeneratorConditioning | None = None,
    normalisation: Normalisation = "batch",
    first_convolution: Convolution = "direct",
) -> keras.Model:
    """Return ([latents float32[B, Z], labels int32[B]]) -> images float32[B, H, W, C] in (-1, 1).

    Args:
      spec: data of H and W multiples of 4.
      latent_dim: Z.
      momentum: of the batch normalisations' moving statistics.
      slope: of the leaky ReLUs below 0.
      output_bias: whether the last layer has a bias.
      conditioning: how the class enters, see `enter_class`; None: "none".
      normalisation: of every map but the image, see `normaliser`.
      first_convolution: "direct", or "fourier" for the same numbers by way of spectra, see `FourierConv2DTranspose`.
        This layer takes half the time of a step on a CPU, which "fourier" shortens; a GPU or a TPU is better off with
        "direct".

    Raises:
      UserError: a size that two doublings do not reach, or a conditioning that does not fit.
    """
    network = "mnist_dcgan.generator"
    height, width = smallest_map(spec, halvings=2, network=network)
    latents, labels = network_inputs("latents", (latent_dim,))
    x, normalised = enter_class(
        latents,
        labels,
        conditioning,
        default="none",
        normalisation=normalisation,
        momentum=momentum,
        spec=spec,
        network=network,
    )
    use_bias = normalisation == "none"  # a normalisation brings its own
    x = layers.Dense(height * width * 256, use_bias=use_bias)(x)
    x = first_map(x, (height, width, 256), normalisation, normalised, slope)
    first = FourierConv2DTranspose if first_convolution == "fourier" else layers.Conv2DTranspose
    for layer, channels, strides in ((first, 128, 1), (layers.Conv2DTranspose, 64, 2)):
        x = layer(channels, 5, strides=strides, padding="same", use_bias=use_bias)(x)
        x = layers.LeakyReLU(slope)(normalised(x))
    x = layers.Conv2DTranspose(spec.image_shape[-1], 5, strides=2, padding="same", use_bias=output_bias)(x)
    images = layers.Activation("tanh", dtype="float32")(x)
    return keras.Model([latents, labels], images, name="generator")


def discriminator(
    spec: DataSpec,
    *,
    widths: Widths = (16, 64),
    slope: Share = 0.2,
    dropout: Share = 0.0,
    conditioning: DiscriminatorConditioning | None = None,
    normalisation: Normalisation = "none",
    spectral_norm: bool = False,
) -> keras.Model:
    """Return ([images float32[B, H, W, C], labels int32[B]]) -> {"logits": float32[B], "features": float32[B, F], ...}.

    Logits are positive for real.

    Args:
      spec: data of H and W multiples of 2 ** len(widths).
      widths: channels of the maps; each comes from a 5x5 convolution of stride 2.
      slope: of the leaky ReLUs below 0.
      dropout: share of each map that is dropped in training.
      conditioning: how the class enters, see `ClassOfImages`; None: "none".
      normalisation: of every map but the first, see `normaliser`.
      spectral_norm: whether convolutions and logits are spectrally normalised (Miyato et al., 2018, arXiv:1802.05957).

    Returns:
      "features" are the last map, flattened, of which nothing is dropped; "class_logits" float32[B, K] come with an
      auxiliary classifier.

    Raises:
      UserError: a size that cannot be halved so often, or a conditioning that does not fit.
    """
    network = "mnist_dcgan.discriminator"
    smallest_map(spec, halvings=len(widths), network=network)
    of_class = ClassOfImages(conditioning, default="none", spec=spec, network=network, spectral_norm=spectral_norm)
    normalised = normaliser(normalisation)
    images, labels = network_inputs("images", spec.image_shape)
    x = of_class.beside(images, labels)
    for index, channels in enumerate(widths):
        x = constrained(layers.Conv2D(channels, 5, strides=2, padding="same"), spectral_norm)(x)
        last_map = layers.LeakyReLU(slope)(normalised(x) if index else x)
        x = StatelessDropout(dropout)(last_map)
    features = layers.Flatten(dtype="float32", name="features")(last_map)
    outputs = of_class.outputs(layers.Flatten()(x), labels, returned=features)
    return keras.Model([images, labels], outputs, name="discriminator")


def recognition(
    spec: DataSpec,
    *,
    codes: Positive = 2,
    widths: Widths = (16, 64),
    slope: Share = 0.2,
    dropout: Share = 0.0,
) -> keras.Model:
    """Return ([images, labels]) -> {"class_logits": float32[B, K], "code_mean": float32[B, codes]}, for an InfoGAN.

    What the generator was told, read from its images float32[B, H, W, C]; the labels int32[B] are not looked at.

    Args:
      spec: data with labels, H and W multiples of 2 ** len(widths).
      codes: how many continuous codes are read.
      widths: channels of the maps; each comes from a 5x5 convolution of stride 2.
      slope: of the leaky ReLUs below 0.
      dropout: share of each map that is dropped in training.

    Raises:
      UserError: a size that cannot be halved so often, or no labels.

    Reference: Chen et al., 2016, arXiv:1606.03657, section 6, Q(c|x). Deviation: the variance of a code is 1.
    """
    require_classes(spec, "mnist_dcgan.recognition")
    smallest_map(spec, halvings=len(widths), network="mnist_dcgan.recognition")
    images, labels = network_inputs("images", spec.image_shape)
    x = images
    for channels in widths:
        x = layers.LeakyReLU(slope)(layers.Conv2D(channels, 5, strides=2, padding="same")(x))
        x = StatelessDropout(dropout)(x)
    x = layers.Flatten()(x)
    sizes = {"class_logits": spec.num_classes, "code_mean": codes}
    outputs = {name: layers.Dense(size, dtype="float32", name=name)(x) for name, size in sizes.items()}
    return keras.Model([images, labels], outputs, name="recognition")
