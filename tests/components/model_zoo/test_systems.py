"""Networks of the articles: parameters counted by hand, layer by layer."""

import pytest

from components.interfaces import DataSpec, UserError
from components.model_zoo import cgan, cwgan, dcgan, mnist_dcgan


def spec(*shape: int, num_classes: int = 10) -> DataSpec:
    return DataSpec(
        image_shape=shape, num_classes=num_classes, num_examples=9, name="toy", split="train", fingerprint="0"
    )


def test_article_dcgan_has_its_parameters() -> None:
    dense, norm = 100 * 12544, 4 * 12544  # a BatchNorm has four numbers a channel
    transposed = 5 * 5 * (256 * 128 + 128 * 64 + 64 * 1)
    norms = 4 * (128 + 64)
    assert mnist_dcgan.generator(spec(28, 28, 1)).count_params() == dense + norm + transposed + norms + 1
    convolutions = (25 * 1 * 16 + 16) + (25 * 16 * 64 + 64)
    assert mnist_dcgan.discriminator(spec(28, 28, 1)).count_params() == convolutions + 7 * 7 * 64 + 1


def test_tutorial_dcgan_has_its_parameters() -> None:
    generator = mnist_dcgan.generator(spec(28, 28, 1), momentum=0.99, slope=0.3, output_bias=False)
    assert generator.count_params() == 100 * 12544 + 4 * 12544 + 25 * (256 * 128 + 128 * 64 + 64) + 4 * (128 + 64)
    discriminator = mnist_dcgan.discriminator(spec(28, 28, 1), widths=(64, 128), slope=0.3, dropout=0.3)
    assert discriminator.count_params() == (25 * 64 + 64) + (25 * 64 * 128 + 128) + 7 * 7 * 128 + 1


def test_auxiliary_classifier_adds_one_layer_and_needs_classes() -> None:
    plain = mnist_dcgan.discriminator(spec(28, 28, 1))
    head = mnist_dcgan.discriminator(spec(28, 28, 1), conditioning="auxiliary_classifier")
    assert head.count_params() - plain.count_params() == 7 * 7 * 64 * 10 + 10
    with pytest.raises(UserError, match="labelled"):
        mnist_dcgan.discriminator(spec(28, 28, 1, num_classes=0), conditioning="auxiliary_classifier")


def test_conditional_wgan_has_its_parameters() -> None:
    dense = 510 * 1024 + 1024 * 8192
    norms = 4 * (8192 + 64 + 32)
    convolutions = 9 * (128 * 64 + 64 * 32 + 32 * 3)
    assert cwgan.generator(spec(32, 32, 3)).count_params() == dense + norms + convolutions
    maps = (9 * 13 * 32 + 32) + (9 * 32 * 64 + 64) + (9 * 64 * 128 + 128)
    layer_norms = 2 * (16 * 16 * 64) + 2 * (8 * 8 * 128)
    head = (8 * 8 * 128 * 256 + 256) + 256 + 1
    assert cwgan.discriminator(spec(32, 32, 3)).count_params() == maps + layer_norms + head
    batch_norms = 4 * (64 + 128)
    assert cwgan.discriminator(spec(32, 32, 3), normalisation="batch").count_params() == maps + batch_norms + head
    assert cwgan.discriminator(spec(32, 32, 3), normalisation="none").count_params() == maps + head


def test_conditional_gan_has_its_parameters() -> None:
    dense, norms = 110 * 6272, 4 * (6272 + 64)
    assert cgan.generator(spec(28, 28, 1)).count_params() == dense + norms + 25 * (128 * 64 + 64 * 1)
    maps, norms = 25 * (2 * 64 + 64 * 128), 4 * (64 + 128)
    head = (7 * 7 * 128 * 256 + 256) + 256 + 1
    assert cgan.discriminator(spec(28, 28, 1)).count_params() == maps + norms + head
    ten_stripes = cgan.discriminator(spec(28, 28, 1), label_channels=10).count_params()
    assert ten_stripes == maps + norms + head + 25 * 9 * 64


@pytest.mark.parametrize(
    ("conditioning", "more"),
    [
        ("one_hot", 10 * 6272),
        ("embedding", 10 * 100 + 100 * 6272),
        ("batch_norm", (10 - 1) * 2 * (128 + 64)),  # a gain and a bias for each class instead of one
    ],
)
def test_class_in_a_generator_adds_its_parameters(conditioning, more) -> None:
    plain = dcgan.generator(spec(28, 28, 1), conditioning="none").count_params()
    assert dcgan.generator(spec(28, 28, 1), conditioning=conditioning).count_params() == plain + more
    assert dcgan.generator(spec(28, 28, 1, num_classes=0)).count_params() == plain


@pytest.mark.parametrize(
    ("conditioning", "more"),
    [
        ("stripes", 16 * 1 * 64),
        ("planes", 16 * 10 * 64),
        ("embedding", 10 * 28 * 28 + 16 * 1 * 64),
        ("projection", 10 * 6272),
        ("auxiliary_classifier", 10 * 6272 + 10),
    ],
)
def test_class_in_a_discriminator_adds_its_parameters(conditioning, more) -> None:
    plain = dcgan.discriminator(spec(28, 28, 1), conditioning="none").count_params()
    assert dcgan.discriminator(spec(28, 28, 1), conditioning=conditioning).count_params() == plain + more
    assert dcgan.discriminator(spec(28, 28, 1, num_classes=0)).count_params() == plain
