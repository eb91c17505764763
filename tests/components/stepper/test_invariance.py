"""One replica and N take the same step."""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_parts import ToySource, toy_discriminator, toy_generator, toy_spec

from components.interfaces import Losses, Networks, Player, Update
from components.loss_library import adversarial, penalties
from components.model_zoo import cgan, dcgan
from components.objectives import gan
from components.stepper import strategy
from components.stepper.distributed_stepper import DistributedStepper

B = 8


def trained(hardware, factories, updates, *, steps=5, spec=None, seed=7):
    """Return all numbers of a run of `steps` steps on `hardware`, and its metrics."""
    source = ToySource(spec)
    chosen = strategy.select(name=hardware).strategy
    with chosen.scope():
        random.seed(0)  # Keras draws the seeds of initial weights from it
        networks = Networks({name: make(source.spec) for name, make in factories.items()}, source.spec)

        def copy(name):
            twin = factories[name](source.spec)
            twin.set_weights(networks[name].get_weights())
            return twin

        stepper = DistributedStepper(
            networks=networks, copy_network=copy, updates=updates, global_batch_size=B, seed=seed
        )
    replicas = chosen.num_replicas_in_sync
    data = source.batches(global_batch_size=B, seed=seed, start_batch=0).rebatch(B // replicas, drop_remainder=True)
    iterator = iter(chosen.distribute_datasets_from_function(lambda context: data))
    metrics = {name: float(value) for name, value in stepper.run(iterator, steps).items()}
    numbers = {f"{n}/{i}": v.numpy() for n, network in networks.items() for i, v in enumerate(network.variables)}
    for name, variables in stepper.state().items():
        numbers |= {f"{name}/{i}": np.asarray(v.numpy()) for i, v in enumerate(variables)}
    return numbers, metrics


def sgd(rate=1e-3):
    return lambda: keras.optimizers.SGD(rate)


def players(ema=None):
    return {"generator": Player(optimizer=sgd(), ema_decay=ema), "discriminator": Player(optimizer=sgd())}


def require_close(left, right):
    for name in left[0]:
        np.testing.assert_allclose(left[0][name], right[0][name], rtol=1e-5, atol=1e-5, err_msg=name)
    for name in left[1]:
        np.testing.assert_allclose(left[1][name], right[1][name], rtol=1e-4, atol=1e-5, err_msg=name)


TOYS = {"generator": toy_generator, "discriminator": toy_discriminator}
GAMES = {
    "alternating": lambda: gan.alternating(
        loss=adversarial.non_saturating, **players(ema=0.9), discriminator_repeats=2, noisy_labels=0.3
    ),
    "generator_first": lambda: gan.alternating(loss=adversarial.hinge, **players(), first="generator"),
    "simultaneous": lambda: gan.simultaneous(loss=adversarial.relativistic_average, **players()),
    "penalised": lambda: gan.alternating(
        loss=adversarial.wasserstein, **players(), penalties=[penalties.wgan_gp, penalties.dragan], same_latents=True
    ),
    "lazy": lambda: gan.alternating(
        loss=adversarial.relativistic_pairing, **players(), penalties=[penalties.r1, penalties.r2], penalty_every=3
    ),
}
FAST = ("alternating", "simultaneous", "lazy")


@pytest.mark.parametrize("game", [pytest.param(g, marks=[] if g in FAST else pytest.mark.slow) for g in GAMES])
@pytest.mark.parametrize("hardware", ["cpu:2", pytest.param("cpu:8", marks=pytest.mark.slow)])
def test_toy_game_on_replicas_is_that_on_one(game, hardware) -> None:
    require_close(trained("one_device", TOYS, GAMES[game]()), trained(hardware, TOYS, GAMES[game]()))


@pytest.mark.slow
@pytest.mark.parametrize("zoo", [cgan, dcgan])
@pytest.mark.parametrize("hardware", ["cpu:2", "cpu:8"])
def test_real_networks_on_replicas_are_those_on_one(zoo, hardware) -> None:
    factories = {"generator": zoo.generator, "discriminator": zoo.discriminator}
    spec = toy_spec(8, 8, 1, num_classes=10)
    one = trained("one_device", factories, GAMES["alternating"](), spec=spec)
    require_close(one, trained(hardware, factories, GAMES["alternating"](), spec=spec))


class OneWeight(keras.Model):
    """output = weight * mean of the image."""

    def __init__(self):
        super().__init__()
        self.weight = self.add_weight(shape=(), initializer="ones", name="weight")
        self.built = True

    def call(self, images):
        return self.weight * tf.reduce_mean(images, axis=[1, 2, 3])


def squared(networks, batch, *, random):
    return Losses({"only": tf.square(networks["only"](batch["image"]) - 1.0)})


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2", "cpu:8"])
def test_one_sgd_step_divides_by_the_global_batch_and_by_nothing_else(hardware) -> None:
    source = ToySource()
    image = next(iter(source.batches(global_batch_size=B, seed=7, start_batch=0)))["image"].numpy()
    means = image.mean(axis=(1, 2, 3))
    by_hand = 1.0 - 0.5 * np.mean(2 * (means - 1.0) * means)
    update = Update(objective=squared, players={"only": Player(optimizer=sgd(0.5))})
    numbers, metrics = trained(hardware, {"only": lambda spec: OneWeight()}, [update], steps=1)
    np.testing.assert_allclose(numbers["only/0"], by_hand, rtol=1e-5)
    np.testing.assert_allclose(metrics["only/loss"], np.mean((means - 1.0) ** 2), rtol=1e-5)


def test_average_follows_the_formula_with_its_warm_up() -> None:
    update = Update(objective=squared, players={"only": Player(optimizer=sgd(0.5), ema_decay=0.15)})
    factory = {"only": lambda spec: OneWeight()}
    weights = [1.0] + [float(trained("one_device", factory, [update], steps=n)[0]["only/0"]) for n in (1, 2, 3)]
    average = weights[0]
    for n, weight in enumerate(weights[1:], start=1):
        decay = min(0.15, (1 + n) / (10 + n))
        average = decay * average + (1 - decay) * weight
    numbers, _ = trained("one_device", factory, [update], steps=3)
    np.testing.assert_allclose(numbers["only/average/0"], average, rtol=1e-5)
