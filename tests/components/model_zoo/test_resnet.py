"""Residual networks: layers and parameters counted by hand, sizes, and what a block computes."""

import keras
import numpy as np
import pytest

from components.interfaces import DataSpec, UserError
from components.model_zoo import resnet
from components.model_zoo.spectral_norm import SpectralNorm

TINY = {"widths": (4, 4, 4)}


def spec(*shape: int, num_classes: int = 10) -> DataSpec:
    return DataSpec(
        image_shape=shape, num_classes=num_classes, num_examples=9, name="toy", split="train", fingerprint="0"
    )


def convolution(size: int, inputs: int, outputs: int) -> int:
    return size * size * inputs * outputs + outputs


def test_generator_of_table_3_has_its_parameters() -> None:
    dense = 128 * 4 * 4 * 256 + 4 * 4 * 256
    block = 2 * convolution(3, 256, 256) + convolution(1, 256, 256)
    norms = 3 * 2 + 1
    last = convolution(3, 256, 3)
    plain = dense + 3 * block + last + norms * 4 * 256  # four numbers a channel
    assert resnet.generator(spec(32, 32, 3), conditioning="none").count_params() == plain
    conditional = dense + 3 * block + last + norms * (2 + 2 * 10) * 256  # two statistics, gain and bias a class
    assert resnet.generator(spec(32, 32, 3)).count_params() == conditional
    assert resnet.generator(spec(32, 32, 3, num_classes=0)).count_params() == plain


def test_discriminator_of_table_3_has_its_parameters() -> None:
    first = convolution(3, 3, 128) + convolution(3, 128, 128) + convolution(1, 3, 128)
    halving = 2 * convolution(3, 128, 128) + convolution(1, 128, 128)
    keeping = 2 * convolution(3, 128, 128)
    plain = first + halving + 2 * keeping + 128 + 1
    assert resnet.discriminator(spec(32, 32, 3), conditioning="none").count_params() == plain
    assert resnet.discriminator(spec(32, 32, 3)).count_params() == plain + 10 * 128
    normal = resnet.discriminator(spec(32, 32, 3), spectral_norm=True)
    vectors = 10 * 128 + 1 + 128  # ten convolutions, w and the embedding
    assert normal.count_params() == plain + 10 * 128 + vectors
    wrapped = [layer.layer for layer in normal.layers if isinstance(layer, SpectralNorm)]
    assert len(wrapped) == 12 and not any(isinstance(layer, keras.layers.Conv2D) for layer in normal.layers)


def test_table_4_has_its_maps_for_48_pixels() -> None:
    generator = resnet.generator(spec(48, 48, 3), widths=(512, 256, 128, 64), conditioning="none")
    sums = [layer.output.shape[1:] for layer in generator.layers if isinstance(layer, keras.layers.Add)]
    assert sums == [(12, 12, 256), (24, 24, 128), (48, 48, 64)]
    network = resnet.discriminator(spec(48, 48, 3), widths=(64, 128, 256, 512), final_widths=(1024,))
    sums = [
        layer.output.shape[1:]
        for layer in network.layers
        if isinstance(layer, keras.layers.Add) and layer.name != "conditional"
    ]
    assert sums == [(24, 24, 64), (12, 12, 128), (6, 6, 256), (3, 3, 512), (3, 3, 1024)]


@pytest.mark.parametrize("shape", [(32, 32, 3), (32, 48, 1), (28, 28, 1), (64, 64, 3)])
def test_sizes_that_the_rule_allows_work(shape) -> None:
    generator = resnet.generator(spec(*shape), latent_dim=3, **TINY)
    images = generator([np.zeros((2, 3), "float32"), np.array([0, 9])]).numpy()
    assert images.shape == (2, *shape)
    judged = resnet.discriminator(spec(*shape), widths=(4, 4), final_widths=())([images, np.array([0, 9])])
    assert judged["logits"].shape == (2,) and judged["features"].shape == (2, 4)


def test_other_sizes_are_refused_with_the_rule() -> None:
    with pytest.raises(UserError, match="multiples of 8. Received 28 x 28 .* `image_size = \\(32, 32\\)`"):
        resnet.generator(spec(28, 28, 1))
    with pytest.raises(UserError, match="multiples of 4. Received 30 x 32"):
        resnet.discriminator(spec(30, 32, 1))


def test_features_are_the_sums_of_the_last_map() -> None:
    network = resnet.discriminator(spec(8, 8, 1), widths=(4,), final_widths=(6,))
    images = np.random.default_rng(0).normal(size=(2, 8, 8, 1)).astype("float32")
    last = [layer for layer in network.layers if isinstance(layer, keras.layers.ReLU)][-1].output
    maps = keras.Model(network.inputs, last)([images, np.array([1, 2])]).numpy()
    features = network([images, np.array([1, 2])])["features"]
    np.testing.assert_allclose(features, maps.sum(axis=(1, 2)), rtol=1e-5)


def test_attention_stands_at_the_heights_bound_and_others_are_refused() -> None:
    without = resnet.generator(spec(16, 16, 1), **TINY)
    network = resnet.generator(spec(16, 16, 1), **TINY, attention_at=(8,))
    assert len(network.trainable_variables) == len(without.trainable_variables) + 5
    with pytest.raises(UserError, match="Received 7 for `resnet.discriminator`, whose maps have the heights 8, 4"):
        resnet.discriminator(spec(16, 16, 1), widths=(4, 4), final_widths=(), attention_at=(8, 7))
