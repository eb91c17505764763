"""The conditional GAN for MNIST of 2022, layer by layer.

The generator sees the label as a one-hot vector beside its latents, the discriminator as an image of stripes beside
the picture, unless another conditioning is bound. Both halve or double the size twice, so height and width must be
multiples of 4.

Reference for the idea: Mirza and Osindero, 2014, arXiv:1411.1784.
"""

import keras
from keras import layers

from components.interfaces import DataSpec, Positive
from components.model_zoo.conditioning import network_inputs
from components.model_zoo.discriminator_conditioning import ClassOfImages, DiscriminatorConditioning
from components.model_zoo.generator_conditioning import GeneratorConditioning, enter_class
from components.model_zoo.layers import StatelessDropout
from components.model_zoo.normalisation import Normalisation, first_map, normaliser
from components.model_zoo.sizes import smallest_map
from components.model_zoo.spectral_norm import constrained


def generator(
    spec: DataSpec,
    *,
    latent_dim: Positive = 100,
    conditioning: GeneratorConditioning | None = None,
    normalisation: Normalisation = "batch",
) -> keras.Model:
    """Return ([latents float32[B, Z], labels int32[B]]) -> images float32[B, H, W, C] in (-1, 1).

    Args:
      spec: data of H and W multiples of 4.
      latent_dim: Z.
      conditioning: how the class enters, see `enter_class`; None: "one_hot", or "none" without labels.
      normalisation: of every map but the image, see `normaliser`.

    Raises:
      UserError: a size that two doublings do not reach, or a conditioning that does not fit.
    """
    network = "cgan.generator"
    height, width = smallest_map(spec, halvings=2, network=network)
    latents, labels = network_inputs("latents", (latent_dim,))
    x, normalised = enter_class(
        latents,
        labels,
        conditioning,
        default="one_hot",
        normalisation=normalisation,
        momentum=0.99,
        spec=spec,
        network=network,
    )
    use_bias = normalisation == "none"  # a normalisation brings its own
    x = layers.Dense(height * width * 128, use_bias=use_bias)(x)
    x = first_map(x, (height, width, 128), normalisation, normalised, 0.01)
    x = layers.Conv2D(64, 5, padding="same", use_bias=use_bias)(layers.UpSampling2D()(x))
    x = layers.LeakyReLU(0.01)(normalised(x))
    x = layers.Conv2D(spec.image_shape[-1], 5, padding="same", use_bias=False)(layers.UpSampling2D()(x))
    images = layers.Activation("tanh", dtype="float32")(x)
    return keras.Model([latents, labels], images, name="generator")


def discriminator(
    spec: DataSpec,
    *,
    label_channels: Positive | None = None,
    conditioning: DiscriminatorConditioning | None = None,
    normalisation: Normalisation = "batch",
    spectral_norm: bool = False,
) -> keras.Model:
    """Return ([images float32[B, H, W, C], labels int32[B]]) -> {"logits": float32[B], "features": float32[B, F], ...}.

    Logits are positive for real.

    Args:
      spec: data of H and W multiples of 4.
      label_channels: of the stripes; num_classes of them lay the stripes over all channels. None: 1.
      conditioning: how the class enters, see `ClassOfImages`; None: "stripes", or "none" without labels.
      normalisation: of both maps, see `normaliser`; those over a batch do not go with a gradient penalty.
      spectral_norm: whether all layers with weights are spectrally normalised (Miyato et al., 2018, arXiv:1802.05957).

    Returns:
      "features" are the last map, flattened; "class_logits" float32[B, K] come with an auxiliary classifier.

    Raises:
      UserError: a size that cannot be halved twice, or a conditioning that does not fit.
    """
    network = "cgan.discriminator"
    smallest_map(spec, halvings=2, network=network)
    of_class = ClassOfImages(
        conditioning,
        default="stripes",
        spec=spec,
        network=network,
        spectral_norm=spectral_norm,
        label_channels=label_channels,
    )
    normalised = normaliser(normalisation)
    images, labels = network_inputs("images", spec.image_shape)
    x = of_class.beside(images, labels)
    for channels in (64, 128):
        convolution = layers.Conv2D(channels, 5, strides=2, padding="same", use_bias=normalisation == "none")
        x = layers.LeakyReLU(0.2)(normalised(constrained(convolution, spectral_norm)(x)))
    features = layers.Flatten(dtype="float32", name="features")(x)
    x = layers.LeakyReLU(0.2)(constrained(layers.Dense(256), spectral_norm)(features))
    outputs = of_class.outputs(StatelessDropout(0.5)(x), labels, returned=features)
    return keras.Model([images, labels], outputs, name="discriminator")
