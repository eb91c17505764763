import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from components.data_source import decoding
from components.interfaces import UserError

F = tfds.features


def decoder(features: dict, **kwargs):
    defaults = {"name": "tiny", "image_key": "image", "label_key": "label", "image_size": None}
    return decoding.decoder(F.FeaturesDict(features), **defaults | kwargs)


def test_crop_and_resize_same_size_is_the_image_itself():
    image = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)
    np.testing.assert_array_equal(decoding.crop_and_resize(image, (6, 9)), image)


def test_crop_and_resize_wide_image_keeps_its_centre():
    image = np.zeros((2, 6, 1), np.uint8)
    image[:, 2:4] = 200
    np.testing.assert_array_equal(decoding.crop_and_resize(image, (2, 2)), np.full((2, 2, 1), 200))


def test_crop_and_resize_tall_image_keeps_its_centre():
    image = np.zeros((6, 2, 1), np.uint8)
    image[2:4] = 200
    np.testing.assert_array_equal(decoding.crop_and_resize(image, (4, 4)), np.full((4, 4, 1), 200))


def test_crop_and_resize_fine_stripes_are_averaged_when_shrunk():
    image = np.zeros((32, 32, 1), np.uint8)
    image[:, ::2] = 255
    small = decoding.crop_and_resize(image, (8, 8)).numpy()
    assert 100 < small.min() and small.max() < 156


@pytest.mark.parametrize(("old", "new"), [((1, 50), (4, 4)), ((50, 1), (3, 5)), ((3, 3), (7, 2))])
def test_crop_and_resize_odd_sizes_pass(old, new):
    assert decoding.crop_and_resize(np.full((*old, 1), 9, np.uint8), new).shape == (*new, 1)


def test_decoder_image_and_label_reads_both_and_nothing_else():
    features = {"image": F.Image(shape=(2, 3, 1)), "label": F.ClassLabel(num_classes=4), "note": F.Text()}
    decode = decoder(features)
    image = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)
    record = F.FeaturesDict(features).serialize_example({"image": image, "label": 3, "note": "x"})
    decoded, label = decode(tf.constant(record))
    np.testing.assert_array_equal(decoded, image)
    assert (decoded.dtype, label.dtype, int(label)) == (tf.uint8, tf.int32, 3)
    assert (decode.num_classes, set(decode.features)) == (4, {"image", "label"})


@pytest.mark.parametrize("label_key", ["label", None])
def test_decoder_no_labels_gives_zeros(label_key):
    features = {"image": F.Image(shape=(2, 3, 1))}
    decode = decoder(features, label_key=label_key)
    record = F.FeaturesDict(features).serialize_example({"image": np.zeros((2, 3, 1), np.uint8)})
    assert decode.num_classes == 0
    assert int(decode(tf.constant(record))[1]) == 0


@pytest.mark.parametrize(
    "feature",
    [
        F.Image(shape=(2, 2, 1), dtype=np.uint16),
        F.Image(shape=(2, 2, 1), dtype=np.float32),
        F.Tensor(shape=(2, 2, 1), dtype=np.float32),
        F.Tensor(shape=(4,), dtype=np.uint8),
        F.Text(),
    ],
)
def test_decoder_no_image_of_bytes_is_refused(feature):
    with pytest.raises(UserError, match="8 bits"):
        decoder({"image": feature})


def test_decoder_two_channels_are_refused():
    with pytest.raises(UserError, match="1, 3 or 4 channels. Received 2"):
        decoder({"image": F.Tensor(shape=(2, 2, 2), dtype=np.uint8)})


def test_decoder_unknown_image_key_names_the_images():
    with pytest.raises(UserError, match=r"\['picture'\]"):
        decoder({"picture": F.Image(), "label": F.ClassLabel(num_classes=2)})


def test_decoder_unknown_label_key_names_the_labels():
    with pytest.raises(UserError, match=r"\['kind'\]"):
        decoder({"image": F.Image(), "kind": F.ClassLabel(num_classes=2)}, label_key="sort")


@pytest.mark.parametrize("size", [(0, 4), (4,), (4, 4, 3), (4.0, 4), "ab"])
def test_decoder_bad_image_size_is_refused(size):
    with pytest.raises(UserError, match="image_size"):
        decoder({"image": F.Image()}, image_size=size)
