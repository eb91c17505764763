"""Samples are a function of (seed, labels)."""

import keras
import numpy as np
import pytest
from toy_parts import toy_generator, toy_spec

from components.interfaces import Networks, UserError
from components.sampler.image_sampler import ImageSampler
from components.sampler.vae_sampler import VAESampler


def sampler(**options):
    return ImageSampler(Networks({"generator": toy_generator(toy_spec())}, toy_spec()), **options)


def test_sample_is_repeatable_and_another_seed_another_sample() -> None:
    drawer = sampler(chunk_size=4)
    first = drawer.sample(6, seed=1)
    assert first.shape == (6, 4, 4, 1) and first.dtype == np.uint8
    np.testing.assert_array_equal(first, drawer.sample(6, seed=1))
    assert not np.array_equal(first, drawer.sample(6, seed=2))


def test_sample_of_more_begins_with_the_sample_of_less() -> None:
    drawer = sampler(chunk_size=4)
    np.testing.assert_array_equal(drawer.sample(9, seed=1)[:5], drawer.sample(5, seed=1))


def test_sample_without_labels_takes_the_classes_in_turn() -> None:
    drawer = sampler()
    np.testing.assert_array_equal(drawer.sample(5, seed=0), drawer.sample(5, seed=0, labels=[0, 1, 0, 1, 0]))
    assert not np.array_equal(drawer.sample(5, seed=0), drawer.sample(5, seed=0, labels=[1, 1, 1, 1, 1]))


@pytest.mark.parametrize(("value", "byte"), [(-1.0, 0), (0.0, 128), (1.0, 255), (2.0, 255), (-0.5, 64)])
def test_sample_maps_minus_one_to_one_onto_bytes(value, byte) -> None:
    latents, labels = keras.Input((3,)), keras.Input((), dtype="int32")
    images = keras.ops.reshape(keras.ops.sum(latents, axis=-1) * 0 + value, (-1, 1, 1, 1))
    networks = Networks({"generator": keras.Model([latents, labels], images)}, toy_spec(1, 1, 1))
    assert ImageSampler(networks).sample(1, seed=0).item() == byte


@pytest.mark.parametrize(
    ("count", "labels", "words"),
    [(2, [0, 2], "in \\[0, 2\\). Received 2"), (3, [0], "Received 1 for 3"), (0, None, "at least 1"), (1, [-1], "-1")],
)
def test_sample_of_labels_that_do_not_fit_is_refused(count, labels, words) -> None:
    with pytest.raises(UserError, match=words):
        sampler().sample(count, seed=0, labels=labels)


def test_sampler_without_its_network_is_refused() -> None:
    for kind in (ImageSampler, VAESampler):
        with pytest.raises(UserError, match="Received other"):
            kind(Networks({"other": toy_generator(toy_spec())}, toy_spec()))
