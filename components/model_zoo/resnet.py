"""Residual GANs, as spectral normalisation and the projection discriminator were shown with; self-attention on request.

The defaults are table 3, for 32 x 32. Height and width are multiples of 2 to the number of blocks that change the size.

|  | 32 (table 3) | 48 (table 4) | 64 |
|---|---|---|---|
| generator widths | 256, 256, 256, 256 | 512, 256, 128, 64 | 1024, 512, 256, 128, 64 |
| discriminator widths | 128, 128 | 64, 128, 256, 512 | 64, 128, 256, 512 |
| discriminator final_widths | 128, 128 | 1024 | 1024 |

Reference: Miyato et al., 2018, arXiv:1802.05957, appendix B.4, tables 3 and 4; Miyato and Koyama, 2018,
arXiv:1802.05637; self-attention: Zhang et al., 2018, arXiv:1805.08318. What the papers leave open is that
of their authors' programs: the 3x3 convolutions of a block start sqrt(2) times as wide as Glorot's, a generator's block
has its output's channels inside, a discriminator's its input's.
"""

from collections.abc import Sequence

import keras
from keras import layers

from components.interfaces import DataSpec, Positive
from components.model_zoo.attention import AttentionPlan
from components.model_zoo.conditioning import network_inputs
from components.model_zoo.discriminator_conditioning import ClassOfImages, DiscriminatorConditioning
from components.model_zoo.generator_conditioning import GeneratorConditioning, enter_class
from components.model_zoo.normalisation import Normalisation, Normaliser, normaliser
from components.model_zoo.sizes import Widths, smallest_map
from components.model_zoo.spectral_norm import constrained


def generator(
    spec: DataSpec,
    *,
    latent_dim: Positive = 128,
    widths: Widths = (256, 256, 256, 256),
    conditioning: GeneratorConditioning | None = None,
    normalisation: Normalisation = "batch",
    spectral_norm: bool = False,
    attention_at: Sequence[Positive] = (),
) -> keras.Model:
    """Return ([latents float32[B, Z], labels int32[B]]) -> images float32[B, H, W, C] in (-1, 1).

    Args:
      spec: data of H and W multiples of 2 ** (len(widths) - 1).
      latent_dim: Z.
      widths: channels of the maps, smallest map first; each after the first comes from a block that doubles the size.
      conditioning: how the class enters, see `enter_class`; None: "batch_norm", or "none" without labels.
      normalisation: before every ReLU, see `normaliser`.
      spectral_norm: whether all layers with a kernel are spectrally normalised (Zhang et al., 2018, section 4.1).
      attention_at: heights of the maps with self-attention; Zhang et al. have it at 32 of 128 pixels.

    Raises:
      UserError: a size that the doublings do not reach, or a conditioning or an attention that does not fit.
    """
    network = "resnet.generator"
    height, width = smallest_map(spec, halvings=len(widths) - 1, network=network)
    latents, labels = network_inputs("latents", (latent_dim,))
    x, normalised = enter_class(
        latents,
        labels,
        conditioning,
        default="batch_norm",
        normalisation=normalisation,
        momentum=0.9,
        spec=spec,
        network=network,
    )
    attended = AttentionPlan(attention_at, spectral_norm=spectral_norm, network=network)
    x = constrained(layers.Dense(height * width * widths[0]), spectral_norm)(x)
    x = attended(layers.Reshape((height, width, widths[0]))(x))
    for channels in widths[1:]:
        x = attended(_doubling_block(x, channels, normalised, spectral_norm))
    attended.require_complete()
    x = layers.ReLU()(normalised(x))
    x = _convolution(spec.image_shape[-1], spectral_norm, gain=1.0)(x)
    images = layers.Activation("tanh", dtype="float32")(x)
    return keras.Model([latents, labels], images, name="generator")


def discriminator(
    spec: DataSpec,
    *,
    widths: Widths = (128, 128),
    final_widths: Sequence[Positive] = (128, 128),
    conditioning: DiscriminatorConditioning | None = None,
    normalisation: Normalisation = "none",
    spectral_norm: bool = False,
    attention_at: Sequence[Positive] = (),
) -> keras.Model:
    """Return ([images float32[B, H, W, C], labels int32[B]]) -> {"logits": float32[B], "features": float32[B, F], ...}.

    Logits are positive for real.

    Args:
      spec: data of H and W multiples of 2 ** len(widths).
      widths: channels of the maps, largest map first; each comes from a block that halves the size.
      final_widths: channels of the blocks after those, which keep the size.
      conditioning: how the class enters, see `ClassOfImages`; None: "projection", or "none" without labels.
      normalisation: before every ReLU inside a block, see `normaliser`; those over a batch do not go with a gradient
        penalty.
      spectral_norm: whether all layers with weights are spectrally normalised (Miyato et al., 2018).
      attention_at: heights of the maps with self-attention.

    Returns:
      "features" are the last map, summed over its places; "class_logits" float32[B, K] come with an auxiliary
      classifier.

    Raises:
      UserError: a size that cannot be halved so often, or a conditioning or an attention that does not fit.
    """
    network = "resnet.discriminator"
    smallest_map(spec, halvings=len(widths), network=network)
    of_class = ClassOfImages(
        conditioning, default="projection", spec=spec, network=network, spectral_norm=spectral_norm
    )
    attended = AttentionPlan(attention_at, spectral_norm=spectral_norm, network=network)
    normalised = normaliser(normalisation, momentum=0.9)
    images, labels = network_inputs("images", spec.image_shape)
    x = of_class.beside(images, labels)
    x = attended(_first_halving_block(x, widths[0], normalised, spectral_norm))
    for channels in widths[1:]:
        x = attended(_judging_block(x, channels, normalised, spectral_norm, halves=True))
    for channels in final_widths:
        x = attended(_judging_block(x, channels, normalised, spectral_norm, halves=False))
    attended.require_complete()
    features = PlacesSum(name="features")(layers.ReLU()(x))
    outputs = of_class.outputs(features, labels, returned=features)
    return keras.Model([images, labels], outputs, name="discriminator")


@keras.saving.register_keras_serializable("gantry")
class PlacesSum(layers.Layer):
    """Maps float[B, H, W, C], summed over their places in float32: float32[B, C]."""

    def __init__(self, *, dtype="float32", **kwargs) -> None:
        """Sum in float32, whatever the precision of the maps."""
        super().__init__(dtype=dtype, **kwargs)

    def call(self, maps):
        """Return the sums."""
        return keras.ops.sum(maps, axis=(1, 2))


def _convolution(channels: int, spectral_norm: bool, *, size: int = 3, gain: float = 2.0) -> layers.Layer:
    """Return a convolution whose initial weights have `gain` times the variance of Glorot's."""
    spread = keras.initializers.VarianceScaling(gain, mode="fan_avg", distribution="uniform")
    return constrained(layers.Conv2D(channels, size, padding="same", kernel_initializer=spread), spectral_norm)


def _short_cut(channels: int, spectral_norm: bool) -> layers.Layer:
    return _convolution(channels, spectral_norm, size=1, gain=1.0)


def _doubling_block(
    x: keras.KerasTensor, channels: int, normalised: Normaliser, spectral_norm: bool
) -> keras.KerasTensor:
    """Return float[B, 2 H, 2 W, channels] of float[B, H, W, C]."""
    short = _short_cut(channels, spectral_norm)(layers.UpSampling2D()(x))
    x = layers.UpSampling2D()(layers.ReLU()(normalised(x)))
    x = _convolution(channels, spectral_norm)(x)
    x = _convolution(channels, spectral_norm)(layers.ReLU()(normalised(x)))
    return layers.Add()([x, short])


def _first_halving_block(
    images: keras.KerasTensor, channels: int, normalised: Normaliser, spectral_norm: bool
) -> keras.KerasTensor:
    """Return float[B, H / 2, W / 2, channels] of images; no ReLU stands before them."""
    short = _short_cut(channels, spectral_norm)(layers.AveragePooling2D(2)(images))
    x = _convolution(channels, spectral_norm)(images)
    x = _convolution(channels, spectral_norm)(layers.ReLU()(normalised(x)))
    return layers.Add()([layers.AveragePooling2D(2)(x), short])


def _judging_block(
    x: keras.KerasTensor, channels: int, normalised: Normaliser, spectral_norm: bool, *, halves: bool
) -> keras.KerasTensor:
    """Return float[B, H, W, channels] of float[B, H, W, C], of half the size where it halves."""
    inside = x.shape[-1]
    short = x
    if halves or channels != inside:
        short = _short_cut(channels, spectral_norm)(x)
    x = _convolution(inside, spectral_norm)(layers.ReLU()(normalised(x)))
    x = _convolution(channels, spectral_norm)(layers.ReLU()(normalised(x)))
    if halves:
        x, short = layers.AveragePooling2D(2)(x), layers.AveragePooling2D(2)(short)
    return layers.Add()([x, short])
