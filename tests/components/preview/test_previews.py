"""Previews, pixel by pixel, from a sampler whose images tell what was asked of it."""

import numpy as np
import pytest
from toy_parts import ToySource, toy_spec

from components.interfaces import UserError
from components.preview.class_montage import class_montage
from components.preview.real_examples import first, one_of_each_class
from components.preview.reconstructions import reconstructions
from components.preview.sample_grid import sample_grid

SEED = 4


class ToySampler:
    """Image i is filled with seed + i; a reconstruction is the negative, plus the labels where they are told."""

    def sample(self, num_images, *, seed, labels=None):
        return np.stack([np.full((4, 4, 1), seed + index, np.uint8) for index in range(num_images)])

    def reconstruct(self, images, *, labels=None):
        shift = np.zeros(len(images)) if labels is None else np.asarray(labels)
        return 255 - images - shift.astype(np.uint8)[:, None, None, None]


class Unreadable:
    """Data that must not be touched."""

    @property
    def spec(self):
        raise AssertionError("read")


def stored(source, index) -> np.ndarray:
    """Return example `index` of the data as bytes."""
    batch = next(iter(source.batches(global_batch_size=64, seed=SEED, start_batch=index // 64)))
    return np.round(batch["image"].numpy()[index % 64] * 127.5 + 127.5).astype(np.uint8)


def labels_of(source) -> list[int]:
    return next(iter(source.batches(global_batch_size=64, seed=SEED, start_batch=0)))["label"].numpy().tolist()


@pytest.mark.parametrize("rows", [2, 5])
def test_class_montage_has_an_example_of_each_class_above_samples_in_turn(rows) -> None:
    source = ToySource(toy_spec(num_classes=3))
    images, columns = class_montage(ToySampler(), source, SEED, rows=rows)()
    assert columns == 3 and images.shape == (rows * 3, 4, 4, 1) and images.dtype == np.uint8
    for label in range(3):
        np.testing.assert_array_equal(images[label], stored(source, labels_of(source).index(label)))
    assert images[3:, 0, 0, 0].tolist() == [SEED + index for index in range((rows - 1) * 3)]


def test_class_montage_without_labels_has_the_first_ten_examples() -> None:
    source = ToySource(toy_spec(num_classes=0))
    images, columns = class_montage(ToySampler(), source, SEED)()
    assert columns == 10 and len(images) == 100
    np.testing.assert_array_equal(images[:10], [stored(source, index) for index in range(10)])


def test_class_that_the_data_lack_stays_black() -> None:
    source = ToySource(toy_spec(num_classes=2))
    source.batches = lambda **where: ToySource(toy_spec(num_classes=1)).batches(**where)
    row = one_of_each_class(source, SEED)
    assert row[0].any() and not row[1].any()


def test_first_examples_run_on_over_batches() -> None:
    source = ToySource(toy_spec(num_classes=3))
    images, labels = first(70, source, SEED)
    np.testing.assert_array_equal(images[69], stored(source, 69))
    assert len(images) == len(labels) == 70 and labels[:64].tolist() == labels_of(source)


def test_sample_grid_is_what_the_sampler_draws_and_needs_no_data() -> None:
    images, columns = sample_grid(ToySampler(), Unreadable(), SEED, rows=2, columns=3)()
    assert columns == 3 and images[:, 0, 0, 0].tolist() == [4, 5, 6, 7, 8, 9]
    assert len(sample_grid(ToySampler(), Unreadable(), SEED)().images) == 64


@pytest.mark.parametrize("num_classes", [0, 3])
def test_reconstructions_stand_below_their_originals(num_classes) -> None:
    source = ToySource(toy_spec(num_classes=num_classes))
    images, columns = reconstructions(ToySampler(), source, SEED, rows=2, columns=3)()
    assert columns == 3 and images.shape == (12, 4, 4, 1) and images.dtype == np.uint8
    for row in range(2):
        for column in range(3):
            index = row * 3 + column
            shift = labels_of(source)[index] if num_classes else 0
            original = stored(source, index)
            np.testing.assert_array_equal(images[row * 6 + column], original)
            np.testing.assert_array_equal(images[row * 6 + 3 + column], 255 - original - np.uint8(shift))


def test_reconstructions_by_a_sampler_that_makes_none_are_refused() -> None:
    class OnlySamples:
        def sample(self, num_images, *, seed, labels=None): ...

    with pytest.raises(UserError, match="needs a sampler that reconstructs. Received OnlySamples. Bind"):
        reconstructions(OnlySamples(), ToySource(), SEED)


@pytest.mark.parametrize("make", [class_montage, sample_grid, reconstructions])
def test_preview_is_the_same_at_two_calls_and_reads_no_data_before_the_first(make) -> None:
    make(ToySampler(), Unreadable(), SEED)
    source = ToySource()
    preview = make(ToySampler(), source, SEED)
    np.testing.assert_array_equal(preview().images, preview().images)
    np.testing.assert_array_equal(preview().images, make(ToySampler(), source, SEED)().images)
    assert not np.array_equal(preview().images, make(ToySampler(), source, SEED + 1)().images)
