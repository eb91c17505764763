"""The single-graph VAE: its switch, its sizes and its divergence, for every kind of it."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from components.interfaces import DataSpec, UserError
from components.model_zoo import vae_networks

BATCH = 3
LATENT_DIM = 2
KINDS = {
    "dense": lambda spec, **options: vae_networks.dense(spec, latent_dim=LATENT_DIM, hidden=5, **options),
    "convolutional": lambda spec, **options: vae_networks.convolutional(
        spec, latent_dim=LATENT_DIM, widths=(3, 4), hidden=5, **options
    ),
}


def spec(*shape: int, num_classes: int = 3) -> DataSpec:
    return DataSpec(
        image_shape=shape or (8, 4, 2),
        num_classes=num_classes,
        num_examples=9,
        name="toy",
        split="train",
        fingerprint="0",
    )


@pytest.fixture(params=[(name, conditional) for name in KINDS for conditional in (False, True)], ids=str)
def model(request):
    name, conditional = request.param
    keras.utils.set_random_seed(1)
    return KINDS[name](spec(), conditional=conditional)


def inputs(model, *, images: int = 1, random: int = 2, labels: int = 0) -> list[tf.Tensor]:
    """Return the inputs of a model, each a function of its seed."""
    found = [
        tf.random.stateless_uniform([BATCH, 8, 4, 2], [images, 0]),
        tf.random.stateless_normal([BATCH, LATENT_DIM], [random, 0]),
    ]
    return [*found, tf.constant([0, 1, 2]) if labels == 0 else tf.constant([2, 0, 1])][: 3 if model.conditional else 2]


def test_divergence_is_zero_at_the_prior_and_the_closed_form_elsewhere() -> None:
    assert vae_networks.divergence_from_prior(tf.zeros([1, 7]), tf.zeros([1, 7])).numpy() == [0.0]
    mean, log_variance = tf.constant([[1.0, -2.0]]), tf.constant([[0.0, math.log(4.0)]])
    # per latent (variance + mean^2 - 1 - log variance) / 2: (1 + 1 - 1 - 0) / 2 and (4 + 4 - 1 - log 4) / 2
    expected = 0.5 + (7 - math.log(4.0)) / 2
    np.testing.assert_allclose(vae_networks.divergence_from_prior(mean, log_variance), [expected], rtol=1e-6)


def test_divergence_is_that_of_a_monte_carlo_estimate() -> None:
    mean, variance = 0.7, 0.3
    draws = np.random.default_rng(0).normal(mean, math.sqrt(variance), 400_000)
    density = -((draws - mean) ** 2) / (2 * variance) - 0.5 * math.log(variance)
    prior = -(draws**2) / 2
    exact = vae_networks.divergence_from_prior(tf.constant([[mean]]), tf.constant([[math.log(variance)]]))
    np.testing.assert_allclose(exact, [np.mean(density - prior)], rtol=0.01)


def test_output_is_the_pixels_and_the_divergence(model) -> None:
    output = model(inputs(model), training=True)
    logits, divergence = model.logits_and_divergence(*inputs(model), training=True)
    assert output.shape == (BATCH, 8 * 4 * 2 + 1) and output.dtype == tf.float32
    np.testing.assert_allclose(output[:, :-1], tf.sigmoid(logits), rtol=1e-6)
    np.testing.assert_allclose(output[:, -1], divergence, rtol=1e-6)


def test_latents_in_training_are_mean_plus_deviation_times_random(model) -> None:
    images, random, *labels = inputs(model)
    mean, log_variance = model.encoder([images, *labels] if labels else images)
    latents = tf.constant(mean.numpy() + np.exp(log_variance.numpy() / 2) * random.numpy())
    by_hand = model.decoder([latents, *labels] if labels else latents)
    np.testing.assert_allclose(model(inputs(model), training=True)[:, :-1], tf.sigmoid(by_hand), rtol=1e-5)


def test_sampling_ignores_the_images_and_reconstruction_the_random_vector(model) -> None:
    sampled = [model(inputs(model, images=seed), training=False)[:, :-1] for seed in (1, 5)]
    rebuilt = [model(inputs(model, random=seed), training=False, reconstruct=True) for seed in (2, 6)]
    np.testing.assert_array_equal(*sampled)
    np.testing.assert_array_equal(*rebuilt)
    for changed in ({"images": 5}, {"random": 6}):
        trained = [model(inputs(model, **one), training=True)[:, :-1] for one in ({}, changed)]
        assert not np.allclose(*trained)


@pytest.mark.parametrize("mode", [{"training": True}, {"training": False}, {"training": False, "reconstruct": True}])
def test_graph_eager_and_xla_agree(model, mode) -> None:
    eager = model(inputs(model), **mode)
    for jit_compile in (False, True):
        call = tf.function(lambda *x: model(list(x), **mode), autograph=False, jit_compile=jit_compile)
        np.testing.assert_allclose(call(*inputs(model)), eager, rtol=1e-5, atol=1e-6)


def test_row_does_not_depend_on_the_others(model) -> None:
    whole = model(inputs(model), training=True)
    alone = model([one[:1] for one in inputs(model)], training=True)
    np.testing.assert_allclose(whole[:1], alone, rtol=1e-5)


def test_every_weight_has_a_finite_gradient_in_training(model) -> None:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(inputs(model), training=True))
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    assert len(gradients) == len(model.variables) and all(np.isfinite(one).all() for one in gradients)


def test_saved_model_comes_back_as_it_was(model, tmp_path) -> None:
    model.save(tmp_path / "vae.keras")
    again = keras.models.load_model(tmp_path / "vae.keras")
    assert (again.latent_dim, again.conditional) == (LATENT_DIM, model.conditional)
    for mode in ({"training": True}, {"training": False}, {"reconstruct": True}):
        np.testing.assert_array_equal(again(inputs(model), **mode), model(inputs(model), **mode))


def test_bfloat16_leaves_pixels_and_divergence_in_float32() -> None:
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        for kind in KINDS.values():
            model = kind(spec(), conditional=True)
            assert model(inputs(model), training=True).dtype == tf.float32
    finally:
        keras.config.set_dtype_policy(policy)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_label_reaches_both_halves_of_a_conditional_model_and_no_other(kind) -> None:
    model = kind(spec(), conditional=True)
    for mode in ({"training": False}, {"reconstruct": True}):
        outputs = [model(inputs(model, labels=labels), **mode) for labels in (0, 1)]
        assert not np.allclose(outputs[0][:, :-1], outputs[1][:, :-1])
        assert not np.allclose(outputs[0][:, -1], outputs[1][:, -1])
    with pytest.raises(ValueError, match="Pass labels"):
        model(inputs(model)[:2])
    assert len(kind(spec()).encoder.inputs) == len(kind(spec()).decoder.inputs) == 1
    with pytest.raises(UserError, match="needs labelled data"):
        kind(spec(num_classes=0), conditional=True)


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 16, 3), (4, 4, 1)])
def test_convolutional_model_fits_every_multiple_of_its_halvings(shape) -> None:
    model = KINDS["convolutional"](spec(*shape))
    assert model([tf.zeros([1, *shape]), tf.zeros([1, LATENT_DIM])]).shape == (1, math.prod(shape) + 1)


def test_convolutional_model_of_a_size_that_cannot_be_halved_is_refused() -> None:
    with pytest.raises(UserError, match="multiples of 8. Received 28 x 28"):
        vae_networks.convolutional(spec(28, 28, 1), widths=(2, 2, 2))


def test_dense_model_has_the_parameters_of_the_article() -> None:
    encoder = (784 * 128 + 128) + 2 * (128 * 64 + 64)
    decoder = (64 * 128 + 128) + (128 * 784 + 784)
    digits = spec(28, 28, 1, num_classes=10)
    assert vae_networks.dense(digits).count_params() == encoder + decoder
    assert vae_networks.dense(digits, conditional=True).count_params() == encoder + decoder + 2 * 10 * 128


def test_convolutional_model_has_the_parameters_counted_by_hand() -> None:
    maps = (16 * 1 * 32 + 32) + (16 * 32 * 64 + 64)
    encoder = maps + (7 * 7 * 64 * 256 + 256) + 2 * (256 * 64 + 64)
    decoder = (64 * 256 + 256) + (256 * 7 * 7 * 64 + 7 * 7 * 64) + (16 * 64 * 32 + 32) + (16 * 32 * 1 + 1)
    digits = spec(28, 28, 1, num_classes=10)
    assert vae_networks.convolutional(digits).count_params() == encoder + decoder
    assert vae_networks.convolutional(digits, conditional=True).count_params() == encoder + decoder + 2 * 10 * 256
