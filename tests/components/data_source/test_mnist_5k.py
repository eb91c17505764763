import hashlib

import numpy as np
import tensorflow_datasets as tfds

from components.data_source import mnist_5k
from components.data_source.tfds_source import TFDSSource


def test_load_digits_are_those_of_the_table():
    images, labels = mnist_5k.load_digits()
    assert (images.shape, images.dtype, labels.dtype) == ((5000, 28, 28, 1), np.uint8, np.uint8)
    np.testing.assert_array_equal(labels, np.repeat(np.arange(10), 500))
    digest = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
    assert digest == "809ec085d551285cf9efad12c42a6aead98c62f96eb9936cc5b778870773e50d"
    # The table's first row (a zero) crosses its middle line with two strokes, and sums over its rows are:
    assert images[0, 14, 7:10, 0].tolist() == [198, 253, 190]
    assert (int(images[0].sum()), int(images[4999].sum()), int(images[2500].sum())) == (31095, 33540, 27525)
    sums = [int(images[labels == digit].astype(np.int64).sum()) for digit in range(10)]
    assert sums[:4] == [17653236, 7708322, 14789820, 14308059]  # ones hold the least ink


def test_load_digits_no_image_occurs_twice():
    images, _ = mnist_5k.load_digits()
    assert len({image.tobytes() for image in images}) == 5000


def test_builder_by_name_is_registered_and_has_the_features_of_mnist(digits_dir):
    features = tfds.builder("mnist_5k", data_dir=digits_dir).info.features
    assert features["image"].shape == (28, 28, 1)
    assert features["label"].num_classes == 10


def test_prepared_digits_hold_every_image_once_with_its_label(digits_dir):
    source = TFDSSource(name="mnist_5k", data_dir=digits_dir)
    batch = next(source.batches(global_batch_size=5000, seed=0, start_batch=0).as_numpy_iterator())
    images, labels = mnist_5k.load_digits()
    stored = {image.tobytes(): label for image, label in zip(images, labels, strict=True)}
    drawn = np.rint(batch["image"] * 127.5 + 127.5).astype(np.uint8)
    found = [stored.pop(image.tobytes()) for image in drawn]
    np.testing.assert_array_equal(found, batch["label"])
    assert not stored


def test_prepared_digits_slices_do_not_overlap_and_hold_all_digits(digits_dir):
    parts = []
    for split, size in (("train[:4500]", 4500), ("train[4500:]", 500), ("train[90%:]", 500)):
        source = TFDSSource(name="mnist_5k", data_dir=digits_dir, split=split)
        assert source.spec.num_examples == size
        batch = next(source.batches(global_batch_size=size, seed=0, start_batch=0).as_numpy_iterator())
        assert set(batch["label"].tolist()) == set(range(10))
        parts.append({image.tobytes() for image in batch["image"]})
    assert not parts[0] & parts[1]
    assert parts[1] == parts[2]
