"""The negative evidence lower bound, against closed forms."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf

from components.interfaces import Batch, DataSpec, Losses, Networks
from components.loss_library import likelihood
from components.model_zoo import vae_networks
from components.objectives import vae
from components.stepper.randomness import ReplicaRandom
from pipeline import api

SPEC = DataSpec(image_shape=(4, 4, 1), num_classes=2, num_examples=9, name="toy", split="train", fingerprint="0")


@pytest.fixture
def model():
    return vae_networks.dense(SPEC, latent_dim=3, hidden=5)


def batch() -> Batch:
    images = tf.random.stateless_uniform([2, 4, 4, 1], [1, 0]) * 2 - 1
    return {"image": images, "label": tf.constant([0, 1])}


def random_of(step: int | tf.Tensor = 3) -> ReplicaRandom:
    step = tf.convert_to_tensor(step, tf.int64)
    return ReplicaRandom(seed=0, stream="0", step=step, repeat=0, per_replica_batch_size=2)


def losses_of(model, step: int | tf.Tensor = 3, **options) -> Losses:
    objective = vae.NegativeElbo(**{"likelihood": likelihood.bernoulli, **options})
    return objective(Networks({"vae": model}, SPEC), batch(), random=random_of(step))


def constant(model, *, mean: float = 0.0, log_variance: float = 0.0, logit: float = 0.0):
    """Return the model with kernels of zero, so that its posterior and its pixels are the given ones."""
    for half, values in ((model.encoder, {"mean": mean, "log_variance": log_variance}), (model.decoder, {})):
        half.set_weights([np.zeros_like(weight) for weight in half.get_weights()])
        for name, value in values.items():
            bias = half.get_layer(name).bias
            bias.assign(tf.fill(bias.shape, value))
    # The last layer of either decoder with weights makes the logits.
    bias = [layer for layer in model.decoder.layers if layer.weights][-1].bias
    bias.assign(tf.fill(bias.shape, logit))
    return model


@pytest.mark.parametrize(
    "make",
    [
        lambda: vae_networks.dense(SPEC, latent_dim=3, hidden=5),
        lambda: vae_networks.dense(SPEC, latent_dim=3, hidden=5, conditional=True),
        lambda: vae_networks.convolutional(SPEC, latent_dim=3, widths=(2,), hidden=5, conditional=True),
    ],
)
@pytest.mark.parametrize(("mean", "log_variance", "logit"), [(0.0, 0.0, 0.0), (0.5, -1.0, 1.5)])
def test_negative_elbo_is_the_closed_form(make, mean, log_variance, logit) -> None:
    model = constant(make(), mean=mean, log_variance=log_variance, logit=logit)
    pixels = batch()["image"].numpy().astype(np.float64).reshape(2, 16) / 2 + 0.5
    divergence = 3 * (math.exp(log_variance) + mean**2 - 1 - log_variance) / 2
    p, s = 1 / (1 + math.exp(-logit)), 0.2
    bernoulli = -(pixels * math.log(p) + (1 - pixels) * math.log(1 - p)).sum(axis=1)
    gaussian = ((pixels - p) ** 2).sum(axis=1) / (2 * s**2) + 16 * math.log(s * math.sqrt(2 * math.pi))
    normal = functools.partial(likelihood.gaussian, standard_deviation=s)
    for of_pixels, reconstruction in ((likelihood.bernoulli, bernoulli), (normal, gaussian)):
        losses = losses_of(model, likelihood=of_pixels)
        np.testing.assert_allclose(losses.players["vae"], reconstruction + divergence, rtol=1e-4)
        np.testing.assert_allclose(losses.metrics["vae/reconstruction"], reconstruction, rtol=1e-4)
        np.testing.assert_allclose(losses.metrics["vae/kl_divergence"], [divergence] * 2, rtol=1e-5, atol=1e-6)


def test_negative_elbo_at_the_prior_with_grey_pixels_is_a_bit_a_pixel(model) -> None:
    np.testing.assert_allclose(losses_of(constant(model)).players["vae"], [16 * math.log(2)] * 2, rtol=1e-6)


@pytest.mark.parametrize(("beta", "free_nats"), [(1.0, 0.0), (4.0, 0.0), (0.0, 0.0), (1.0, 1e6), (2, 1)])
def test_loss_is_reconstruction_plus_weighted_divergence(model, beta, free_nats) -> None:
    losses = losses_of(model, beta=beta, free_nats=free_nats)
    parts = losses.metrics
    expected = parts["vae/reconstruction"] + beta * np.maximum(parts["vae/kl_divergence"], free_nats)
    np.testing.assert_allclose(losses.players["vae"], expected, rtol=1e-6)
    assert parts.keys() == {"vae/reconstruction", "vae/kl_divergence"}
    images = 0.5 * (batch()["image"] + 1)
    pixels = model([images, random_of().normal("posterior", [3])], training=True).numpy()[:, :-1].astype(np.float64)
    x = images.numpy().reshape(2, -1)
    by_hand = -(x * np.log(pixels) + (1 - x) * np.log(1 - pixels)).sum(axis=1)
    np.testing.assert_allclose(parts["vae/reconstruction"], by_hand, rtol=1e-4)


@pytest.mark.parametrize(("free_nats", "is_free"), [(1.0, False), (2.0, True)])
def test_free_nats_take_the_gradient_of_a_divergence_below_them_only(model, free_nats, is_free) -> None:
    constant(model, mean=1.0)  # 3 latents of half a nat each; the decoder looks at none of them
    bias = model.encoder.get_layer("mean").bias
    with tf.GradientTape() as tape:
        loss = losses_of(model, free_nats=free_nats).players["vae"]
    # The divergence's gradient by a mean of 1 is 1 in each of two rows.
    np.testing.assert_allclose(tape.gradient(loss, bias.value), [0.0 if is_free else 2.0] * 3)
    np.testing.assert_allclose(loss, [16 * math.log(2) + max(1.5, free_nats)] * 2, rtol=1e-6)


@pytest.mark.parametrize(("step", "weight"), [(0, 0.0), (1, 0.04), (50, 2.0), (100, 4.0), (10**9, 4.0)])
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_warm_up_raises_the_weight_linearly_and_then_keeps_it(model, step, weight, jit_compile) -> None:
    def compute(at: tf.Tensor):
        found = losses_of(model, at, beta=4.0, warm_up_steps=100)
        return found.players["vae"], dict(found.metrics)

    if jit_compile is not None:
        compute = tf.function(compute, autograph=False, jit_compile=jit_compile)
    loss, parts = compute(tf.constant(step, tf.int64))
    np.testing.assert_allclose(parts["vae/beta"], [weight] * 2, rtol=1e-6)
    np.testing.assert_allclose(loss, parts["vae/reconstruction"] + weight * parts["vae/kl_divergence"], rtol=1e-6)


def test_conditional_model_is_told_the_labels_of_the_batch() -> None:
    model = vae_networks.dense(SPEC, latent_dim=3, hidden=5, conditional=True)
    images = 0.5 * (batch()["image"] + 1)
    told = model([images, random_of().normal("posterior", [3]), batch()["label"]], training=True)
    np.testing.assert_allclose(losses_of(model).metrics["vae/kl_divergence"], told[:, -1], rtol=1e-6)


@pytest.mark.slow
def test_dense_model_learns_digits_and_uses_its_latents(tmp_path) -> None:
    params = ["TRAIN_STEPS = 500", "GLOBAL_BATCH_SIZE = 64", "tfds_source.TFDSSource.name = 'mnist_5k'"]
    run = api.build(["vae_tpu"], params, workdir=tmp_path)
    batches = run.batches()
    first = run.stepper.run(batches, 1)
    run.stepper.run(batches, 449)
    last = run.stepper.run(batches, 50)
    assert float(first["vae/loss"]) > 500
    assert 1 < float(last["vae/kl_divergence"]) < float(last["vae/loss"]) < 200
    assert float(last["vae/reconstruction"]) < 0.4 * float(first["vae/reconstruction"])
