"""Samples are a function of (seed, labels)."""

import functools

import keras
import numpy as np
import pytest
from toy_parts import toy_generator, toy_spec

from components.interfaces import Decoder, Networks, UserError
from components.model_zoo import dcgan, vae_networks
from components.sampler.class_labels import chosen
from components.sampler.image_sampler import ImageSampler
from components.sampler.latent_draws import latents_of
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


@pytest.mark.parametrize("chunk_size", [3, 7, 100])
def test_image_depends_on_its_seed_and_number_and_not_on_how_many_are_made_or_at_once(chunk_size) -> None:
    network = toy_generator(toy_spec())
    networks = Networks({"generator": network}, toy_spec())
    whole = ImageSampler(networks).sample(250, seed=8)
    for count in (1, 101, 250):
        found = ImageSampler(networks, chunk_size=chunk_size).sample(count, seed=8)
        assert np.abs(found.astype(int) - whole[:count].astype(int)).max() <= 1  # a rounding, between two bytes


@pytest.mark.parametrize("truncation", [None, 0.5])
def test_latents_of_fewer_are_the_first_of_more_and_no_two_are_the_same(truncation) -> None:
    many = latents_of(1000, 3, seed=4, truncation=truncation)
    for count in (1, 10, 100, 101):
        np.testing.assert_array_equal(latents_of(count, 3, seed=4, truncation=truncation), many[:count])
    assert len(np.unique(many, axis=0)) == 1000 and many.dtype == np.float32
    assert not np.array_equal(many, latents_of(1000, 3, seed=5, truncation=truncation))


@pytest.mark.parametrize("truncation", [0.0, -1.0, float("nan"), float("inf")])
def test_truncation_that_is_no_bound_is_refused(truncation) -> None:
    with pytest.raises(UserError, match=f"above 0. Received {truncation}"):
        sampler().latents(2, seed=0, truncation=truncation)


def test_sample_is_the_decoded_latents_of_its_seed() -> None:
    drawer = sampler()
    assert isinstance(drawer, Decoder) and drawer.latent_dim == 3
    np.testing.assert_array_equal(
        drawer.sample(5, seed=6, labels=[1, 0, 1, 1, 0]), drawer.decode(drawer.latents(5, seed=6), [1, 0, 1, 1, 0])
    )


def scattered(name, network) -> Networks:
    """Return a network in which every class makes a difference to see."""
    draws = np.random.default_rng(0)
    for weight in network.trainable_variables:
        weight.assign(0.3 * draws.normal(size=weight.shape))
    return Networks({name: network}, toy_spec(num_classes=3))


def generator(conditioning) -> ImageSampler:
    made = dcgan.generator(toy_spec(num_classes=3), latent_dim=3, widths=(32, 16), conditioning=conditioning)
    return ImageSampler(scattered("generator", made))


CONDITIONAL = {
    **{way: functools.partial(generator, way) for way in ("one_hot", "embedding", "batch_norm")},
    "vae": lambda: VAESampler(
        scattered("vae", vae_networks.dense(toy_spec(num_classes=3), latent_dim=3, hidden=9, conditional=True))
    ),
}


@pytest.mark.parametrize("way", CONDITIONAL)
def test_mixture_of_one_class_is_that_class_and_between_two_lies_something_else(way) -> None:
    drawer = CONDITIONAL[way]()
    latents = np.repeat(drawer.latents(1, seed=1), 3, axis=0)
    pure = drawer.decode(latents, [0, 1, 2])
    assert len(np.unique(pure, axis=0)) == 3
    np.testing.assert_array_equal(drawer.decode(latents, np.eye(3)), pure)
    halves = drawer.decode(latents, [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.2, 0.3, 0.5]])
    assert not any((half == one).all() for half in halves for one in pure)
    np.testing.assert_array_equal(halves, drawer.decode(latents, [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.2, 0.3, 0.5]]))


def test_mixture_of_classes_is_their_mean_where_the_network_is_linear_in_them() -> None:
    """A network that shows the row it is told: images are -1 + 2 times the shares."""
    from components.model_zoo.conditioning import OneHot

    latents, labels = keras.Input((3,)), keras.Input((), dtype="int32")
    shown = keras.ops.reshape(OneHot(3)(labels), (-1, 1, 1, 3)) * 2.0 - 1.0 + 0 * keras.ops.sum(latents)
    spec = toy_spec(1, 1, 3, num_classes=3)
    drawer = ImageSampler(Networks({"generator": keras.Model([latents, labels], shown)}, spec))
    found = drawer.decode(np.zeros([2, 3]), [[0.2, 0.8, 0.0], [0.0, 0.4, 0.6]])
    np.testing.assert_array_equal(found.reshape(2, 3), [[51, 204, 0], [0, 102, 153]])


def test_mixture_for_a_network_that_reads_the_label_itself_is_refused() -> None:
    with pytest.raises(UserError, match="reads its labels in another way.*--class_change=halfway"):
        sampler().decode(np.zeros([1, 3]), [[0.5, 0.5]])


def test_mixture_for_a_network_without_a_class_plays_no_part() -> None:
    drawer = generator("none")
    latents = drawer.latents(2, seed=0)
    np.testing.assert_array_equal(drawer.decode(latents, [[0.5, 0.3, 0.2]] * 2), drawer.decode(latents, [0, 1]))


@pytest.mark.parametrize(
    ("latents", "labels", "words"),
    [
        (np.zeros([2, 4]), [0, 1], r"float32\[N, 3\]. Received \[2, 4\]"),
        (np.zeros([2, 3]), [0], "Received 1 for 2"),
        (np.zeros([2, 3]), [[1.0, 0.0]], r"float32\[2, 2\], at least 0.*Received float32\[1, 2\]"),
        (np.zeros([1, 3]), [[0.9, 0.3]], "sums to 1"),
        (np.zeros([1, 3]), [[1.5, -0.5]], "from -0.5 to 1.5"),
        (np.zeros([0, 3]), [], "at least 1"),
    ],
)
def test_latents_or_classes_that_do_not_fit_are_refused(latents, labels, words) -> None:
    with pytest.raises(UserError, match=words):
        sampler().decode(latents, labels)


@pytest.mark.parametrize("count", [1, 7, 23])
def test_classes_in_turn_are_balanced_for_any_count(count) -> None:
    drawn = chosen(count, None, toy_spec(num_classes=10))
    times = np.bincount(drawn, minlength=10)
    assert len(drawn) == count and times.max() - times.min() <= 1


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
