"""The conditional Wasserstein GAN for CIFAR-10 that followed the conditional GAN of 2022.

Height and width must be multiples of 4. The original's critic has BatchNorm, which a per-example gradient penalty
forbids: LayerNorm is the default here, and BatchNorm a binding.

Reference: Gulrajani et al., 2017, arXiv:1704.00028; section 4 of the paper says why the critic has no BatchNorm.
"""

import keras
from keras import layers

from components.interfaces import DataSpec, Positive
from components.model_zoo.conditioning import network_inputs
from components.model_zoo.discriminator_conditioning import ClassOfImages, DiscriminatorConditioning
from components.model_zoo.generator_conditioning import GeneratorConditioning, enter_class
from components.model_zoo.normalisation import Normalisation, first_map, normaliser
from components.model_zoo.sizes import smallest_map
from components.model_zoo.spectral_norm import constrained


def generator(
    spec: DataSpec,
    *,
    latent_dim: Positive = 500,
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
    network = "cwgan.generator"
    height, width = smallest_map(spec, halvings=2, network=network)
    latents, labels = network_inputs("latents", (latent_dim,))
    x, normalised = enter_class(
        latents,
        labels,
        conditioning,
        default="one_hot",
        normalisation=normalisation,
        momentum=0.8,
        spec=spec,
        network=network,
    )
    use_bias = normalisation == "none"  # a normalisation brings its own
    x = layers.Dense(1024, use_bias=False)(x)
    x = layers.Dense(height * width * 128, use_bias=use_bias)(x)
    x = first_map(x, (height, width, 128), normalisation, normalised, 0.01)
    for channels in (64, 32):
        x = layers.Conv2D(channels, 3, padding="same", use_bias=use_bias)(layers.UpSampling2D()(x))
        x = layers.LeakyReLU(0.01)(normalised(x))
    x = layers.Conv2D(spec.image_shape[-1], 3, padding="same", use_bias=False)(x)
    images = layers.Activation("tanh", dtype="float32")(x)
    return keras.Model([latents, labels], images, name="generator")


def discriminator(
    spec: DataSpec,
    *,
    label_channels: Positive | None = None,
    conditioning: DiscriminatorConditioning | None = None,
    normalisation: Normalisation = "layer",
    spectral_norm: bool = False,
) -> keras.Model:
    """Return the critic ([images float32[B, H, W, C], labels int32[B]]) -> {"logits": float32[B], a score, ...}.

    Args:
      spec: data of H and W multiples of 4.
      label_channels: of the stripes. None: num_classes.
      conditioning: how the class enters, see `ClassOfImages`; None: "stripes", or "none" without labels.
      normalisation: of the second and third map, see `normaliser`; those over a batch do not go with a gradient
        penalty.
      spectral_norm: whether all layers with weights are spectrally normalised (Miyato et al., 2018, arXiv:1802.05957).

    Returns:
      "features" float32[B, F] are the last map, flattened; "class_logits" float32[B, K] come with an auxiliary
      classifier.

    Raises:
      UserError: a size that cannot be halved twice, or a conditioning that does not fit.
    """
    network = "cwgan.discriminator"
    smallest_map(spec, halvings=2, network=network)
    of_class = ClassOfImages(
        conditioning,
        default="stripes",
        spec=spec,
        network=network,
        spectral_norm=spectral_norm,
        label_channels=label_channels,
        default_label_channels=spec.num_classes,
    )
    normalised = normaliser(normalisation, momentum=0.8)
    images, labels = network_inputs("images", spec.image_shape)
    x = of_class.beside(images, labels)
    x = layers.LeakyReLU(0.2)(constrained(layers.Conv2D(32, 3, padding="same"), spectral_norm)(x))
    for channels in (64, 128):
        x = constrained(layers.Conv2D(channels, 3, strides=2, padding="same"), spectral_norm)(x)
        x = layers.LeakyReLU(0.2)(normalised(x))
    features = layers.Flatten(dtype="float32", name="features")(x)
    x = layers.LeakyReLU(0.2)(constrained(layers.Dense(256), spectral_norm)(features))
    outputs = of_class.outputs(x, labels, returned=features)
    return keras.Model([images, labels], outputs, name="discriminator")
