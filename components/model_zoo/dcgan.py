"""Deep convolutional GANs of bindable width, conditional where the data have labels; and an encoder for a VAE-GAN.

Every entry of `widths` is a map twice as large (generator) or half as large (discriminator, encoder) as the one before,
so height and width must be multiples of 2 ** len(widths). The generator of figure 1, for 64 x 64, has widths
(1024, 512, 256, 128); one entry more makes 128 x 128.

Reference: Radford et al., 2015, arXiv:1511.06434, section 3 and figure 1; the discriminator's class term is a
projection, Miyato and Koyama, 2018, arXiv:1802.05637. Deviation: kernels are 4x4, so that strides leave no overlap of
uneven depth (Odena et al., 2016, doi:10.23915/distill.00003).
"""

from collections.abc import Sequence
from typing import Literal

import keras
from keras import layers

from components.interfaces import DataSpec, Positive
from components.model_zoo.attention import AttentionPlan
from components.model_zoo.conditioning import network_inputs
from components.model_zoo.discriminator_conditioning import ClassOfImages, DiscriminatorConditioning
from components.model_zoo.generator_conditioning import GeneratorConditioning, enter_class
from components.model_zoo.normalisation import Normalisation, normaliser
from components.model_zoo.sizes import Widths, smallest_map
from components.model_zoo.spectral_norm import constrained

Upsampling = Literal["transposed", "nearest"]


def generator(
    spec: DataSpec,
    *,
    latent_dim: Positive = 100,
    widths: Widths = (128, 64),
    upsampling: Upsampling = "transposed",
    conditioning: GeneratorConditioning | None = None,
    normalisation: Normalisation = "batch",
    attention_at: Sequence[Positive] = (),
) -> keras.Model:
    """Return ([latents float32[B, Z], labels int32[B]]) -> images float32[B, H, W, C] in (-1, 1).

    Args:
      spec: data of H and W multiples of 2 ** len(widths).
      latent_dim: Z.
      widths: channels of the maps, smallest map first; each is doubled in size.
      upsampling: "transposed": by a 4x4 transposed convolution; "nearest": by repeating pixels, then a 3x3 convolution,
        which leaves no checkerboard (Odena et al., 2016, doi:10.23915/distill.00003).
      conditioning: how the class enters, see `enter_class`; None: "one_hot", or "none" without labels.
      normalisation: of every map but the image, see `normaliser`.
      attention_at: heights of the maps with self-attention (Zhang et al., 2018, arXiv:1805.08318).

    Raises:
      UserError: a size that the doublings do not reach, or a conditioning or an attention that does not fit.
    """
    network = "dcgan.generator"
    height, width = smallest_map(spec, halvings=len(widths), network=network)
    latents, labels = network_inputs("latents", (latent_dim,))
    x, normalised = enter_class(
        latents,
        labels,
        conditioning,
        default="one_hot",
        normalisation=normalisation,
        momentum=0.9,
        spec=spec,
        network=network,
    )
    attended = AttentionPlan(attention_at, spectral_norm=False, network=network)
    use_bias = normalisation == "none"  # a normalisation brings its own
    x = layers.Dense(height * width * widths[0], use_bias=use_bias)(x)
    x = layers.Reshape((height, width, widths[0]))(x)
    x = attended(layers.ReLU()(normalised(x)))
    for channels in widths[1:]:
        x = _doubled(x, channels, upsampling, use_bias=use_bias)
        x = attended(layers.ReLU()(normalised(x)))
    attended.require_complete()
    x = _doubled(x, spec.image_shape[-1], upsampling, use_bias=True)
    images = layers.Activation("tanh", dtype="float32")(x)
    return keras.Model([latents, labels], images, name="generator")


def discriminator(
    spec: DataSpec,
    *,
    widths: Widths = (64, 128),
    conditioning: DiscriminatorConditioning | None = None,
    normalisation: Normalisation = "none",
    spectral_norm: bool = False,
    attention_at: Sequence[Positive] = (),
) -> keras.Model:
    """Return ([images float32[B, H, W, C], labels int32[B]]) -> {"logits": float32[B], "features": float32[B, F], ...}.

    Logits are positive for real. No normalisation by default, so that any gradient penalty fits.

    Args:
      spec: data of H and W multiples of 2 ** len(widths).
      widths: channels of the maps, largest map first; each comes from a 4x4 convolution of stride 2.
      conditioning: how the class enters, see `ClassOfImages`; None: "projection", or "none" without labels.
      normalisation: of every map but the first (Radford et al., section 3), see `normaliser`.
      spectral_norm: whether convolutions and logits are spectrally normalised (Miyato et al., 2018, arXiv:1802.05957).
      attention_at: heights of the maps with self-attention (Zhang et al., 2018, arXiv:1805.08318).

    Returns:
      "features" are the last map, flattened; "class_logits" float32[B, K] come with an auxiliary classifier.

    Raises:
      UserError: a size that cannot be halved so often, or a conditioning or an attention that does not fit.
    """
    network = "dcgan.discriminator"
    smallest_map(spec, halvings=len(widths), network=network)
    of_class = ClassOfImages(
        conditioning, default="projection", spec=spec, network=network, spectral_norm=spectral_norm
    )
    attended = AttentionPlan(attention_at, spectral_norm=spectral_norm, network=network)
    normalised = normaliser(normalisation, momentum=0.9)
    images, labels = network_inputs("images", spec.image_shape)
    x = of_class.beside(images, labels)
    for index, channels in enumerate(widths):
        x = constrained(layers.Conv2D(channels, 4, strides=2, padding="same"), spectral_norm)(x)
        x = attended(layers.LeakyReLU(0.2)(normalised(x) if index else x))
    attended.require_complete()
    features = layers.Flatten(dtype="float32", name="features")(x)
    outputs = of_class.outputs(features, labels, returned=features)
    return keras.Model([images, labels], outputs, name="discriminator")


def encoder(spec: DataSpec, *, latent_dim: Positive = 100, widths: Widths = (64, 128)) -> keras.Model:
    """Return ([images float32[B, H, W, C], labels int32[B]]) -> {"mean": float32[B, Z], "log_variance": float32[B, Z]}.

    The convolutions of the discriminator without normalisation, so that a row does not depend on the others; no
    activation on either output, natural logarithm. The label is not looked at.

    Args:
      spec: data of H and W multiples of 2 ** len(widths).
      latent_dim: Z, that of the generator.
      widths: channels of the maps, largest map first; each comes from a 4x4 convolution of stride 2.

    Raises:
      UserError: a size that cannot be halved so often.

    Reference: Larsen et al., 2015, arXiv:1512.09300, section 2.1.
    """
    smallest_map(spec, halvings=len(widths), network="dcgan.encoder")
    images, labels = network_inputs("images", spec.image_shape)
    x = images
    for channels in widths:
        x = layers.LeakyReLU(0.2)(layers.Conv2D(channels, 4, strides=2, padding="same")(x))
    x = layers.Flatten()(x)
    outputs = {name: layers.Dense(latent_dim, dtype="float32", name=name)(x) for name in ("mean", "log_variance")}
    return keras.Model([images, labels], outputs, name="encoder")


def _doubled(x: keras.KerasTensor, channels: int, upsampling: Upsampling, *, use_bias: bool) -> keras.KerasTensor:
    if upsampling == "transposed":
        return layers.Conv2DTranspose(channels, 4, strides=2, padding="same", use_bias=use_bias)(x)
    return layers.Conv2D(channels, 3, padding="same", use_bias=use_bias)(layers.UpSampling2D()(x))
