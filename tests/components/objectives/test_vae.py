"""The single-graph VAE and its objective, against closed forms."""

import math

import numpy as np
import pytest
import tensorflow as tf

from components.interfaces import DataSpec, Networks
from components.loss_library import likelihood
from components.model_zoo import vae_networks
from components.objectives import vae
from components.stepper.randomness import ReplicaRandom

SPEC = DataSpec(image_shape=(4, 4, 1), num_classes=0, num_examples=9, name="toy", split="train", fingerprint="0")


@pytest.fixture
def model():
    return vae_networks.dense(SPEC, latent_dim=3, hidden=5)


def images(seed: int = 1) -> tf.Tensor:
    return tf.random.stateless_uniform([2, 4, 4, 1], [seed, 0])


def noise(seed: int = 2) -> tf.Tensor:
    return tf.random.stateless_normal([2, 3], [seed, 0])


def test_divergence_is_zero_at_the_prior_and_the_closed_form_elsewhere() -> None:
    assert vae_networks.divergence_from_prior(tf.zeros([1, 7]), tf.zeros([1, 7])).numpy() == [0.0]
    mean, log_variance = tf.constant([[1.0, -2.0]]), tf.constant([[0.0, math.log(4.0)]])
    # per latent (variance + mean^2 - 1 - log variance) / 2: (1 + 1 - 1 - 0) / 2 and (4 + 4 - 1 - log 4) / 2
    expected = 0.5 + (7 - math.log(4.0)) / 2
    np.testing.assert_allclose(vae_networks.divergence_from_prior(mean, log_variance), [expected], rtol=1e-6)


def test_model_output_is_the_pixels_and_the_divergence(model) -> None:
    output = model([images(), noise()], training=True)
    logits, divergence = model.logits_and_divergence(images(), noise(), training=True)
    assert output.shape == (2, 17)
    np.testing.assert_allclose(output[:, :-1], tf.sigmoid(logits), rtol=1e-6)
    np.testing.assert_allclose(output[:, -1], divergence, rtol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_model_switch_shuts_the_encoder_out_in_inference_only(model, jit_compile) -> None:
    call = tf.function(model, autograph=False, jit_compile=jit_compile)
    sampled = [call([images(seed), noise()], training=False)[:, :-1] for seed in (1, 5)]
    trained = [call([images(seed), noise()], training=True)[:, :-1] for seed in (1, 5)]
    rebuilt = [call([images(), noise(seed)], training=False, reconstruct=True)[:, :-1] for seed in (2, 6)]
    np.testing.assert_array_equal(*sampled)
    np.testing.assert_array_equal(*rebuilt)
    assert not np.allclose(*trained)


def test_model_has_the_parameters_of_the_article() -> None:
    spec = DataSpec(image_shape=(28, 28, 1), num_classes=0, num_examples=9, name="x", split="train", fingerprint="0")
    encoder = (784 * 128 + 128) + 2 * (128 * 64 + 64)
    decoder = (64 * 128 + 128) + (128 * 784 + 784)
    assert vae_networks.dense(spec).count_params() == encoder + decoder


@pytest.mark.parametrize(("beta", "free_nats"), [(1.0, 0.0), (4.0, 0.0), (1.0, 1e6)])
def test_objective_is_reconstruction_plus_weighted_divergence(model, beta, free_nats) -> None:
    objective = vae.NegativeElbo(likelihood.bernoulli, beta, free_nats)
    random = ReplicaRandom(seed=0, stream="0", step=tf.constant(3, tf.int64), repeat=0, per_replica_batch_size=2)
    batch = {"image": images() * 2 - 1, "label": tf.zeros([2], tf.int32)}
    losses = objective(Networks({"vae": model}, SPEC), batch, random=random)
    parts = losses.metrics
    expected = parts["vae/reconstruction"] + beta * np.maximum(parts["vae/kl_divergence"], free_nats)
    np.testing.assert_allclose(losses.players["vae"], expected, rtol=1e-6)
    pixels = model([images(), random.normal("posterior", [3])], training=True).numpy()[:, :-1].astype(np.float64)
    x = images().numpy().reshape(2, -1)
    by_hand = -(x * np.log(pixels) + (1 - x) * np.log(1 - pixels)).sum(axis=1)
    np.testing.assert_allclose(parts["vae/reconstruction"], by_hand, rtol=1e-4)
