"""Games of toy networks, and what comes of them on some hardware."""

import random

import keras
import numpy as np
import tensorflow as tf
from toy_parts import ToySource, toy_discriminator, toy_generator

from components.augmentation import consistency, diff_augment
from components.checkpointer.tf_checkpointer import TFCheckpointer
from components.interfaces import Networks, Player
from components.loss_library import adversarial, penalties, regularizers
from components.objectives import gan
from components.objectives.latent_consistency import latent_consistency
from components.sampler.image_sampler import ImageSampler
from components.stepper import strategy
from components.stepper.distributed_stepper import DistributedStepper
from pipeline.experiment import Experiment

B = 8


def trained(hardware, factories, updates, *, steps=5, spec=None, seed=7, label=tf.int32, **stepper_settings):
    """Return all numbers of a run of `steps` steps on `hardware`, and its metrics; labels come in the type `label`."""
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
            networks=networks, copy_network=copy, updates=updates, global_batch_size=B, seed=seed, **stepper_settings
        )
    replicas = chosen.num_replicas_in_sync
    data = source.batches(global_batch_size=B, seed=seed, start_batch=0).rebatch(B // replicas, drop_remainder=True)
    data = data.map(lambda batch: {**batch, "label": tf.cast(batch["label"], label)})
    iterator = iter(chosen.distribute_datasets_from_function(lambda context: data))
    metrics = stepper.run(iterator, steps)
    numbers = {f"{n}/{i}": v.numpy() for n, network in networks.items() for i, v in enumerate(network.variables)}
    for name, variables in stepper.state().items():
        numbers |= {f"{name}/{i}": np.asarray(v.numpy()) for i, v in enumerate(variables)}
    return numbers, metrics


def toy_experiment(**bound) -> Experiment:
    """Return an experiment of toy networks on one device; `updates` and `train_steps` are the caller's."""
    parts = {
        "data": ToySource(),
        "networks": TOYS,
        "global_batch_size": 4,
        "seed": 5,
        "strategy": lambda: strategy.select(name="one_device"),
        "stepper": DistributedStepper,
        "checkpointer": TFCheckpointer,
        "sampler": ImageSampler,
    }
    return Experiment(**{**parts, **bound})


def sgd(rate=1e-3, **settings):
    return lambda: keras.optimizers.SGD(rate, **settings)


def players(ema=None, **optimizer):
    made = {"optimizer": sgd(**optimizer)}
    return {"generator": Player(**made, ema_decay=ema), "discriminator": Player(**made)}


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
    "relativistic": lambda: gan.alternating(loss=adversarial.relativistic_average, **players()),
    "simultaneous": lambda: gan.simultaneous(loss=adversarial.relativistic_average, **players()),
    "penalised": lambda: gan.alternating(
        loss=adversarial.wasserstein, **players(), penalties=[penalties.wgan_gp, penalties.dragan], same_latents=True
    ),
    "lazy": lambda: gan.alternating(
        loss=adversarial.relativistic_pairing, **players(), penalties=[penalties.r1, penalties.r2], penalty_every=3
    ),
    "clipped": lambda: gan.alternating(loss=adversarial.hinge, **players(rate=0.1, global_clipnorm=0.01)),
    "accumulated": lambda: gan.alternating(loss=adversarial.non_saturating, **players(ema=0.9), accumulate=2),
    "remembered": lambda: gan.alternating(
        loss=adversarial.hinge,
        **players(),
        penalties=[regularizers.lecam, consistency.balanced_consistency],
        discriminator_repeats=2,
    ),
    "augmented": lambda: latent_consistency(
        updates=gan.simultaneous(
            loss=adversarial.hinge,
            **players(),
            augmentations=[diff_augment.color, diff_augment.translation, diff_augment.cutout],
        )
    ),
}
