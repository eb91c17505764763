"""Losses and a network that work on a CPU and that no TPU could train."""

import keras
import tensorflow as tf
from toy_parts import ToySource, toy_discriminator, toy_generator

from components.interfaces import Networks, PlayerLosses
from components.loss_library import adversarial
from components.objectives import gan
from components.stepper import strategy
from components.stepper.distributed_stepper import DistributedStepper


def through_python(real_logits, fake_logits):
    game = adversarial.hinge(real_logits, fake_logits)
    changed = tf.py_function(lambda value: value, [game.generator], tf.float32)
    return PlayerLosses(generator=tf.ensure_shape(changed, fake_logits.shape), discriminator=game.discriminator)


def through_text(real_logits, fake_logits):
    game = adversarial.hinge(real_logits, fake_logits)
    text = tf.strings.to_number(tf.as_string(game.generator))
    return PlayerLosses(generator=text + game.generator, discriminator=game.discriminator)


def of_the_positive(real_logits, fake_logits):
    game = adversarial.hinge(real_logits, fake_logits)
    mean = tf.reduce_mean(tf.boolean_mask(fake_logits, fake_logits > 0))
    return PlayerLosses(generator=game.generator + mean, discriminator=game.discriminator)


def pooled_at_random(real_logits, fake_logits):
    """XLA has no such pooling, which only its compilation tells."""
    game = adversarial.hinge(real_logits, fake_logits)
    picture = tf.reshape(fake_logits, [1, -1, 1, 1])
    pooled = tf.nn.fractional_max_pool(picture, [1.0, 1.5, 1.0, 1.0], seed=1)[0]
    return PlayerLosses(generator=game.generator + tf.reduce_mean(pooled), discriminator=game.discriminator)


class Unique(keras.layers.Layer):
    def call(self, inputs):
        values, positions = tf.unique(tf.reshape(inputs, [-1]))
        again = tf.reshape(tf.gather(values, positions), tf.shape(inputs))
        return inputs + tf.stop_gradient(again - inputs)  # nothing leads a gradient through tf.unique


def with_unique(spec):
    network = toy_discriminator(spec)
    images, labels = keras.Input(spec.image_shape), keras.Input((), dtype="int32")
    return keras.Model([images, labels], network([Unique()(images), labels]))


def toy_stepper(*, batch=8, discriminator=toy_discriminator, updates=None, hardware="one_device", **game):
    """Return a stepper over toy networks and the data that it takes."""
    from toy_games import players

    source, chosen = ToySource(), strategy.select(name=hardware).strategy
    with chosen.scope():
        networks = Networks(
            {"generator": toy_generator(source.spec), "discriminator": discriminator(source.spec)}, source.spec
        )
        stepper = DistributedStepper(
            networks=networks,
            copy_network=lambda name: toy_generator(source.spec),
            updates=updates or gan.alternating(**{"loss": adversarial.hinge, **game}, **players()),
            global_batch_size=batch,
            seed=0,
        )
    return stepper, networks, source
