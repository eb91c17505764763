"""Interpolations, traversals and neighbours: what is asked of a decoder, and what is found in data."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from toy_parts import ToySource

from components.interfaces import UserError
from pipeline import walk
from pipeline.interpolate import classes_of_ends, shares_along
from pipeline.neighbours import nearest
from pipeline.reconstruct import as_bytes
from pipeline.sample import decoder_of, drawn
from pipeline.traverse import along_axes


class SpyDecoder:
    """Images of 1 x 2 pixels: the first latent, and the class or the share of the last class in percent."""

    latent_dim = 3

    def __init__(self) -> None:
        self.asked: list[tuple[np.ndarray, np.ndarray]] = []

    def decode(self, latents, labels):
        self.asked.append((latents, labels))
        told = labels if labels.ndim == 1 else 100 * labels[:, -1]
        return np.round(np.stack([latents[:, 0], told], axis=1)).astype(np.uint8).reshape(-1, 1, 2, 1)


def way(**options) -> walk.Walk:
    """Return 2 rows of 3 steps: the first latent counts them."""
    latents = np.zeros([2, 3, 3], np.float32)
    latents[..., 0] = np.arange(6).reshape(2, 3)
    return walk.Walk(latents=latents, labels=np.array([[4, 4, 5], [6, 7, 7]]), **options)


def test_walk_in_a_grid_is_a_row_a_path(tmp_path) -> None:
    spy = SpyDecoder()
    walk.write(way(), spy, tmp_path / "a.png", None, {})
    picture = tf.io.decode_png((tmp_path / "a.png").read_bytes()).numpy()[..., 0]
    np.testing.assert_array_equal(picture, [[0, 4, 1, 4, 2, 5], [3, 6, 4, 7, 5, 7]])
    assert len(spy.asked) == 1


def test_walk_in_a_film_is_a_picture_a_step(tmp_path) -> None:
    walk.write(way(), SpyDecoder(), tmp_path / "a.apng", 50, {})
    with Image.open(tmp_path / "a.apng") as film:
        assert film.n_frames == 3
        for step, wanted in enumerate([[[0, 4, 3, 6]], [[1, 4, 4, 7]], [[2, 5, 5, 7]]]):
            film.seek(step)
            np.testing.assert_array_equal(np.asarray(film), wanted)


def test_walk_in_an_archive_has_images_latents_labels_and_shares(tmp_path) -> None:
    shares = np.zeros([2, 3, 2], np.float32)
    shares[..., 1] = [[0, 0.5, 1], [1, 0.5, 0]]
    walk.write(way(shares=shares), SpyDecoder(), tmp_path / "a.npz", None, {"positions": np.arange(3)})
    with np.load(tmp_path / "a.npz") as archive:
        assert archive["images"].reshape(6, 2).tolist() == [[0, 0], [1, 50], [2, 100], [3, 100], [4, 50], [5, 0]]
        assert archive["labels"].tolist() == [4, 4, 5, 6, 7, 7]
        np.testing.assert_array_equal(archive["latents"], way().latents.reshape(6, 3))
        np.testing.assert_array_equal(archive["shares"], shares.reshape(6, 2))
        assert archive["positions"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("output", "milliseconds", "words"),
    [
        ("a.jpg", None, r"ends in .png, .npz, .gif or .apng, or names a folder. Received 'a.jpg'"),
        ("a.png", 100, "is of a film. Received 100 for 'a.png'"),
        ("a.gif", 25, "multiple of 10, at least 20. Received 25. Use 20"),
        ("a.gif", 10, "Use 20"),
    ],
)
def test_place_that_is_none_or_time_for_no_film_is_refused(output, milliseconds, words, tmp_path) -> None:
    with pytest.raises(UserError, match=words):
        walk.place_of(output, tmp_path, milliseconds)


@pytest.mark.parametrize(
    ("labels", "rows", "wanted"),
    [
        ("balanced", 5, [[0, 0], [1, 1], [2, 2], [0, 0], [1, 1]]),
        ("2", 2, [[2, 2], [2, 2]]),
        ("0,2", 3, [[0, 2], [0, 2], [0, 2]]),
        ("0,1,2", 3, [[0, 1], [2, 0], [1, 2]]),
    ],
)
def test_classes_of_the_ends_are_those_asked_for_in_turn(labels, rows, wanted) -> None:
    assert classes_of_ends(labels, rows, num_classes=3).tolist() == wanted


def test_shares_go_from_the_first_class_to_the_second() -> None:
    found = shares_along(np.array([[0, 2], [1, 1]]), np.array([0, 0.25, 1]), num_classes=3)
    np.testing.assert_allclose(
        found, [[[1, 0, 0], [0.75, 0, 0.25], [0, 0, 1]], [[0, 1, 0], [0, 1, 0], [0, 1, 0]]], atol=1e-7
    )


def test_traversal_sets_one_latent_at_a_time_and_leaves_the_others() -> None:
    base, values = np.array([0.1, 0.2, 0.3, 0.4], np.float32), np.array([-3, 0, 3], np.float32)
    found = along_axes(base, np.array([2, 0]), values)
    assert found.shape == (2, 3, 4)
    for row, dimension in enumerate([2, 0]):
        for step, value in enumerate(values):
            wanted = base.copy()
            wanted[dimension] = value
            np.testing.assert_array_equal(found[row, step], wanted)
    assert base.tolist() == np.array([0.1, 0.2, 0.3, 0.4], np.float32).tolist()


class HeldSource(ToySource):
    """Epochs of so many images, the same in each, and some of them twice."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.spec = type(self.spec)(**{**vars(self.spec), "num_examples": count})
        pixels = np.random.default_rng(2).integers(0, 256, [count, 4, 4, 1])
        pixels[count // 2] = pixels[1]
        self.images = pixels.astype(np.float32) / 127.5 - 1
        self.labels = np.arange(count, dtype=np.int32) % 2

    def batches(self, *, global_batch_size, seed, start_batch, host=None):
        held = tf.data.Dataset.from_tensor_slices({"image": self.images, "label": self.labels})
        return held.repeat().batch(global_batch_size)


@pytest.mark.parametrize("count", [7, 500, 1203])
def test_neighbours_are_those_that_brute_force_finds_in_one_epoch(count) -> None:
    source = HeldSource(count)
    stored = as_bytes(source.images)
    asked = np.random.default_rng(5).integers(0, 256, [3, 4, 4, 1], dtype=np.uint8)
    asked[0] = stored[1]
    found = nearest(asked, source, 4, seed=0)
    for row, image in enumerate(asked):
        squares = ((stored.astype(np.int64) - image.astype(np.int64)) ** 2).sum(axis=(1, 2, 3))
        order = np.argsort(squares, kind="stable")[:4]
        np.testing.assert_array_equal(found.positions[row], order)
        np.testing.assert_allclose(found.distances[row], np.sqrt(squares[order]) / 255, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(found.neighbours[row], stored[order])
        np.testing.assert_array_equal(found.neighbour_labels[row], source.labels[order])
    # The same image is stored twice: the earlier comes first.
    assert found.distances[0, :2].tolist() == [0, 0] and found.positions[0, :2].tolist() == [1, count // 2]
    assert found.distances.dtype == np.float32 and found.positions.dtype == np.int64


def test_more_neighbours_than_there_are_images_are_refused() -> None:
    with pytest.raises(UserError, match="There are 5 training images. Received --columns=8, 7 nearest"):
        nearest(np.zeros([1, 4, 4, 1], np.uint8), HeldSource(5), 7, seed=0)


class OnlySamples:
    def sample(self, num_images, *, seed, labels=None):
        return np.full([num_images, 1, 1, 1], seed, np.uint8)


def test_sampler_that_decodes_no_latents_still_samples_and_is_refused_where_it_must() -> None:
    assert drawn(OnlySamples(), 2, seed=9, labels=[0, 0], truncation=None).reshape(-1).tolist() == [9, 9]
    for refused in (
        lambda: drawn(OnlySamples(), 2, seed=9, labels=[0, 0], truncation=0.5),
        lambda: decoder_of(OnlySamples(), "--mode=traverse"),
    ):
        with pytest.raises(UserError, match="decodes given latents.*Received OnlySamples"):
            refused()
