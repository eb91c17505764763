"""The evaluator: certificates, real images beside generated ones, and metrics of VAEs against the model itself."""

import json
import math
import random
import typing
from dataclasses import dataclass, replace
from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_parts import ToySource, toy_generator, toy_spec

from components.evaluator import real_images
from components.evaluator.classes import ClassAccuracy
from components.evaluator.conversion import Conversion
from components.evaluator.diversity import Diversity
from components.evaluator.extractor import FeatureNetwork
from components.evaluator.frechet import FrechetDistance, frechet_distance
from components.evaluator.metric import Trained
from components.evaluator.neighbours import PrecisionRecall
from components.evaluator.sample_evaluator import SampleEvaluator
from components.evaluator.vae_metrics import ActiveUnits, ImportanceWeightedBound, NegativeElbo, ReconstructionError
from components.interfaces import Networks, Player, UserError
from components.loss_library import likelihood
from components.model_zoo import dcgan, vae_networks
from components.model_zoo.generator_conditioning import GeneratorConditioning
from components.objectives import vae
from components.sampler.image_sampler import ImageSampler
from components.sampler.vae_sampler import VAESampler


@dataclass(frozen=True)
class Pixels:
    """An extractor whose features are pixels, and whose logits say which half of the image is brighter."""

    gives: ClassVar[frozenset] = frozenset({"logits", "classes"})

    def load(self, data):
        height, width, channels = data.spec.image_shape
        conversion = Conversion(size=(height, width), channels=channels, low=0.0, high=1.0)

        def function(images):
            flat = tf.reshape(images, [images.shape[0], -1])
            return flat, flat[:, :2]

        return FeatureNetwork(function, conversion, certificate={"extractor": "pixels"}, classes=True)


@dataclass(frozen=True)
class Truth:
    """A sampler that draws the real images themselves, from `start` on."""

    source: ToySource
    conditional: bool = True

    def sample(self, num_images, *, seed, labels=None):
        return real_images.first(num_images, self.source, seed=seed)[0]


def evaluator(source=None, sampler=None, **settings) -> SampleEvaluator:
    source = source or ToySource()
    networks = Networks({"generator": toy_generator(source.spec)}, source.spec)
    chosen = {"extractor": Pixels(), "metrics": [FrechetDistance(), ClassAccuracy()], "num_real": 60}
    return SampleEvaluator(
        networks=networks,
        averaged=("generator",),
        sampler=sampler or ImageSampler(networks),
        data=source,
        updates=[],
        **{**chosen, **settings},
    )


def test_evaluation_without_a_metric_is_refused() -> None:
    for ask in (lambda one: one.prepare(), lambda one: one.evaluate(1)):
        with pytest.raises(UserError, match=r"must hold one.*Received \[\]"):
            ask(evaluator(metrics=[]))


@pytest.fixture(scope="module", params=[1, 3])
def scored(request):
    return evaluator(ToySource(toy_spec(4, 4, request.param))), request.param


def test_number_is_the_mean_over_seeds_beside_that_of_real_images(scored) -> None:
    made, channels = scored
    one = made.evaluate(7)["frechet_distance"]
    source = ToySource(toy_spec(4, 4, channels))
    images, labels = real_images.first(60, source)
    features = images.reshape(60, -1) / 255.0
    fakes = [made._sampler.sample(60, seed=seed, labels=labels.tolist()).reshape(60, -1) / 255.0 for seed in (0, 1, 2)]
    values = [frechet_distance(features, fake) for fake in fakes]
    np.testing.assert_allclose(one.certificate["value_of_each_seed"], values, rtol=1e-5)
    np.testing.assert_allclose([one.value, one.spread], [np.mean(values), np.std(values, ddof=1)], rtol=1e-5)
    np.testing.assert_allclose(one.real, frechet_distance(features[:30], features[30:]), rtol=1e-5)
    assert one.better == "lower"


def test_certificate_tells_what_the_number_depends_on(scored) -> None:
    made, _ = scored
    certificate = made.evaluate(7)["class_accuracy"].certificate
    expected = {
        "checkpoint_step": 7,
        "weights": "moving averages of generator",
        "data": "toy",
        "split": "train",
        "fingerprint": "0",
        "num_real": 60,
        "num_fake": 60,
        "num_real_against_real": [30, 30],
        "seeds": [0, 1, 2],
        "extractor": "pixels",
        "metric": "ClassAccuracy()",
        "conditional": True,
    }
    assert expected.items() <= certificate.items()
    assert "antialiased bicubic" in certificate["resizer"]
    assert json.loads(json.dumps(certificate)) == certificate


def test_evaluation_made_twice_gives_the_same_numbers(scored) -> None:
    made, channels = scored
    assert made.evaluate(7) == made.evaluate(7)


def test_real_images_in_the_place_of_generated_ones_score_as_real_ones() -> None:
    source = ToySource()
    found = evaluator(source, Truth(source), metrics=[FrechetDistance(), PrecisionRecall()], num_real=200).evaluate(0)
    first, *others = found["frechet_distance"].certificate["value_of_each_seed"]
    assert first < 1e-9  # seed 0 draws the very images
    assert max(others) < 2 * found["frechet_distance"].real
    assert abs(found["precision"].value - found["precision"].real) < 0.1


@pytest.mark.parametrize("conditioning", typing.get_args(GeneratorConditioning))
def test_model_that_is_told_the_class_is_known_before_its_first_step(conditioning) -> None:
    """At first conditional batch normalisation makes the same of all classes."""
    spec = toy_spec(8, 8, 1, num_classes=3)
    sampler = ImageSampler(Networks({"generator": dcgan.generator(spec, conditioning=conditioning)}, spec))
    assert sampler.conditional == (conditioning != "none")


def test_class_is_not_asked_of_a_model_that_draws_none_on_request() -> None:
    source = ToySource()
    latents, labels = keras.Input((3,)), keras.Input((), dtype="int32")
    flat = keras.layers.Dense(16, activation="tanh")(latents)
    images = keras.layers.Reshape((4, 4, 1))(flat)
    unconditional = keras.Model([latents, labels], images)
    sampler = ImageSampler(Networks({"generator": unconditional}, source.spec))
    assert not sampler.conditional
    assert ImageSampler(Networks({"generator": toy_generator(source.spec)}, source.spec)).conditional
    found = evaluator(source, sampler, metrics=[ClassAccuracy(), Diversity()]).evaluate(0)
    assert set(found) == {"diversity", "diversity_least"}
    assert found["diversity"].certificate["conditional"] is False


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"seeds": (0, 1)}, "at least three"),
        ({"seeds": (0, 1, 1)}, "at least three"),
        ({"metrics": [FrechetDistance(), FrechetDistance()]}, "Received twice: frechet_distance"),
    ],
)
def test_settings_that_tell_nothing_are_refused_when_it_is_made(settings, told) -> None:
    with pytest.raises(UserError, match=told):
        evaluator(**settings)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"num_real": 1001}, "at most the size of the data"),
        ({"metrics": [PrecisionRecall(k=40)]}, "needs at least 41 images a set. Received 30"),
        ({"metrics": [PrecisionRecall(k=20)], "num_fake": 20}, "needs at least 21 images a set. Received 20"),
        ({"split": "test"}, "data that have splits"),
    ],
)
def test_too_few_images_and_no_such_split_are_refused_before_training(settings, told) -> None:
    with pytest.raises(UserError, match=told):
        evaluator(**settings).prepare()


def test_metric_that_the_extractor_cannot_serve_is_refused() -> None:
    class Bare(Pixels):
        gives = frozenset({"logits"})

    with pytest.raises(UserError, match="ClassAccuracy` needs an extractor that reads the classes.*Bare"):
        evaluator(extractor=Bare())


# --- VAEs ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[False, True])
def trained(request) -> Trained:
    spec = toy_spec()
    random.seed(0)  # Keras draws the seeds of initial weights from it
    model = vae_networks.dense(spec, latent_dim=2, hidden=4, conditional=request.param)
    updates = vae.negative_elbo(likelihood=likelihood.bernoulli, vae=Player(optimizer=keras.optimizers.SGD), beta=3.0)
    images, labels = real_images.first(30, ToySource(spec))
    return Trained(networks=Networks({"vae": model}, spec), updates=updates, images=images, labels=labels)


def test_negative_elbo_is_reconstruction_and_divergence_without_the_training_s_weight(trained) -> None:
    found = NegativeElbo().measure_model(trained, 0)
    assert found["negative_elbo"] == pytest.approx(found["reconstruction"] + found["kl_divergence"])
    model = trained.networks["vae"]
    inputs = [trained.images / 255.0, np.zeros((30, 2)), trained.labels][: 2 + model.conditional]
    np.testing.assert_allclose(found["kl_divergence"], np.mean(model(inputs, training=False)[:, -1]), rtol=1e-4)
    assert found == NegativeElbo().measure_model(trained, 0) != NegativeElbo().measure_model(trained, 1)


@pytest.mark.slow
def test_importance_weighted_bound_tightens_and_is_the_elbo_for_one_draw(trained) -> None:
    elbo = [NegativeElbo().measure_model(trained, seed)["negative_elbo"] for seed in range(8)]
    of_draws = [
        [ImportanceWeightedBound(num_samples=k).measure_model(trained, seed).popitem()[1] for seed in range(8)]
        for k in (1, 20)
    ]
    one, many = map(np.mean, of_draws)
    # Of one draw the divergence is estimated, in the ELBO it is exact: equal in the mean.
    assert one == pytest.approx(np.mean(elbo), abs=0.1)
    assert many < np.mean(elbo)


@pytest.mark.slow
def test_importance_weighted_bound_nears_the_integral_over_the_prior(trained) -> None:
    few = replace(trained, images=trained.images[:2], labels=trained.labels[:2])
    model, draws = trained.networks["vae"], np.random.default_rng(0)
    before = model.encoder.get_weights()
    for name, constant in (("mean", 0.3), ("log_variance", 0.4)):  # a posterior that is wide enough for few draws
        layer = model.encoder.get_layer(name)
        layer.set_weights([np.zeros(layer.kernel.shape), np.full(layer.bias.shape, constant)])
    found = ImportanceWeightedBound(num_samples=1000).measure_model(few, 0)["importance_weighted_bound"]
    model.encoder.set_weights(before)
    latents = draws.normal(size=(20_000, 2)).astype(np.float32)
    exact = []
    for image, label in zip(few.images, few.labels, strict=True):
        inputs = [latents, np.full(20_000, label)] if model.conditional else latents
        pixels = image.reshape(-1) / 255.0
        p = 1 / (1 + np.exp(-np.asarray(model.decoder(inputs), np.float64)))
        log_likelihood = (pixels * np.log(p) + (1 - pixels) * np.log(1 - p)).sum(axis=1)
        exact.append(-np.log(np.exp(log_likelihood).mean()))
    assert found == pytest.approx(np.mean(exact), abs=0.05)


def test_reconstruction_error_and_active_units_are_those_of_the_posteriors_means(trained) -> None:
    sampler = VAESampler(trained.networks)
    images = sampler.reconstruct(trained.images, labels=trained.labels.tolist())
    expected = ((images / 255.0 - trained.images / 255.0) ** 2).mean()
    found = ReconstructionError().measure_model(trained, 0)["reconstruction_error"]
    assert found == pytest.approx(expected, abs=0.002)
    model = trained.networks["vae"]
    inputs = [trained.images / 255.0, trained.labels] if model.conditional else trained.images / 255.0
    variances = np.asarray(model.encoder(inputs)[0]).var(axis=0)
    between = float(variances.mean())
    assert ActiveUnits(threshold=between).measure_model(trained, 0) == {"active_units": 1.0}
    assert ActiveUnits(threshold=1e9).measure_model(trained, 0) == {"active_units": 0.0}
    assert math.isfinite(found)


def test_model_metric_of_a_run_without_a_vae_is_refused() -> None:
    with pytest.raises(UserError, match="Received the networks generator"):
        evaluator(model_metrics=[NegativeElbo()]).evaluate(0)
