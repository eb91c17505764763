"""Samples of the prior and reconstructions, told the class where the model is."""

import numpy as np
import pytest
import tensorflow as tf
from toy_parts import toy_generator, toy_spec

from components import draws
from components.interfaces import Encoder, Networks, Reconstructor, UserError
from components.model_zoo import vae_networks
from components.sampler.image_sampler import ImageSampler
from components.sampler.vae_sampler import VAESampler


def model(conditional: bool = False):
    return vae_networks.dense(toy_spec(), latent_dim=2, hidden=3, conditional=conditional)


def sampler(vae=None, **options) -> VAESampler:
    return VAESampler(Networks({"vae": vae or model(True)}, toy_spec()), chunk_size=4, **options)


def originals(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, [count, 4, 4, 1], dtype=np.uint8)


def as_bytes(logits: tf.Tensor) -> np.ndarray:
    return np.round(tf.sigmoid(logits).numpy() * 255).reshape(-1, 4, 4, 1).astype(np.uint8)


def test_sample_is_the_decoded_prior() -> None:
    vae = model()
    latents = draws.normal([100, 2], tf.constant([3, 0], tf.int64))[:4]
    np.testing.assert_array_equal(sampler(vae).sample(6, seed=3)[:4], as_bytes(vae.decoder(latents)))


def test_sample_of_a_conditional_model_is_that_of_its_labels() -> None:
    vae = model(True)
    drawer = sampler(vae)
    latents = draws.normal([100, 2], tf.constant([3, 0], tf.int64))[:4]
    by_hand = as_bytes(vae.decoder([latents, tf.constant([1, 0, 0, 1])]))
    np.testing.assert_array_equal(drawer.sample(4, seed=3, labels=[1, 0, 0, 1]), by_hand)
    zeros, ones = (drawer.sample(4, seed=3, labels=[label] * 4) for label in (0, 1))
    assert not np.array_equal(zeros, ones)
    np.testing.assert_array_equal(drawer.sample(3, seed=3), drawer.sample(3, seed=3, labels=[0, 1, 0]))


def test_sample_of_a_model_that_is_told_no_class_is_the_same_for_all() -> None:
    drawer = sampler(model())
    np.testing.assert_array_equal(
        drawer.sample(3, seed=1, labels=[0, 0, 0]), drawer.sample(3, seed=1, labels=[1, 1, 1])
    )


@pytest.mark.parametrize("conditional", [False, True])
def test_sample_of_labels_that_do_not_fit_is_refused(conditional) -> None:
    for labels, words in (([0, 2], r"in \[0, 2\). Received 2"), ([0], "Received 1 for 2")):
        with pytest.raises(UserError, match=words):
            sampler(model(conditional)).sample(2, seed=0, labels=labels)


@pytest.mark.parametrize("count", [1, 4, 9])
@pytest.mark.parametrize("conditional", [False, True])
def test_reconstruction_is_the_decoded_mean_of_any_number_of_images(count, conditional) -> None:
    vae = model(conditional)
    labels = [index % 2 for index in range(count)]
    told = [tf.constant(labels)] if conditional else []
    pixels = tf.constant(originals(count) / 255.0, tf.float32)
    mean, _ = vae.encoder([pixels, *told] if told else pixels)
    by_hand = as_bytes(vae.decoder([mean, *told] if told else mean))
    found = sampler(vae).reconstruct(originals(count), labels=labels)
    assert found.dtype == np.uint8 and found.shape == (count, 4, 4, 1)
    assert np.abs(found.astype(int) - by_hand.astype(int)).max() <= 1  # a rounding, where a pixel lies between bytes


def test_reconstruction_is_repeatable_and_takes_no_notice_of_its_neighbours() -> None:
    drawer, images, labels = sampler(), originals(7), [0, 1, 0, 1, 0, 1, 0]
    whole = drawer.reconstruct(images, labels=labels)
    np.testing.assert_array_equal(whole, drawer.reconstruct(images, labels=labels))
    np.testing.assert_array_equal(whole[4:], drawer.reconstruct(images[4:], labels=labels[4:]))


@pytest.mark.parametrize("conditional", [False, True])
def test_code_of_an_image_is_the_mean_that_its_reconstruction_is_decoded_from(conditional) -> None:
    drawer, labels = sampler(model(conditional)), [0, 1, 1, 0, 1]
    codes = drawer.encode(originals(5), labels=labels)
    assert codes.shape == (5, 2) and codes.dtype == np.float32
    again, wanted = drawer.decode(codes, labels), drawer.reconstruct(originals(5), labels=labels)
    assert np.abs(again.astype(int) - wanted.astype(int)).max() <= 1


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (originals(2), [0, 2], r"in \[0, 2\). Received 2"),
        (originals(2), [0], "Received 1 for 2"),
        (originals(2), None, "Received no labels"),
        (originals(0), [], "at least 1. Received 0"),
        (originals(2) / 255.0, [0, 1], "Received float64"),
        (originals(2)[:, :3], [0, 1], r"Received uint8\[2, 3, 4, 1\]"),
        (originals(1)[0], [0], r"Received uint8\[4, 4, 1\]"),
    ],
)
def test_reconstruction_of_what_does_not_fit_is_refused(images, labels, words) -> None:
    with pytest.raises(UserError, match=words):
        sampler().reconstruct(images, labels=labels)


def test_sampler_of_an_autoencoder_reconstructs_and_that_of_a_generator_does_not() -> None:
    assert isinstance(sampler(), Reconstructor) and isinstance(sampler(), Encoder)
    networks = Networks({"generator": toy_generator(toy_spec())}, toy_spec())
    assert not isinstance(ImageSampler(networks), Reconstructor)
    assert not isinstance(ImageSampler(networks), Encoder)
