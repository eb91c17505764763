"""Toy data and toy networks."""

import keras
import numpy as np
import tensorflow as tf

from components.interfaces import DataSpec, HostShard, Moment, happening_at
from components.stepper.randomness import ReplicaRandom


def toy_spec(*shape: int, num_classes: int = 2) -> DataSpec:
    return DataSpec(
        image_shape=shape or (4, 4, 1),
        num_classes=num_classes,
        num_examples=1000,
        name="toy",
        split="train",
        fingerprint="0",
    )


class ToySource:
    """Batch i is a function of (seed, i): pixels uniform in [-1, 1], labels uniform."""

    def __init__(self, spec: DataSpec | None = None) -> None:
        self.spec = spec or toy_spec()

    def batches(self, *, global_batch_size, seed, start_batch, host=HostShard()):  # noqa: B008
        rows = global_batch_size // host.count
        classes = max(1, self.spec.num_classes)

        def batch(index):
            key = tf.stack([tf.constant(seed, tf.int64), index])
            shape = [global_batch_size, *self.spec.image_shape]
            image = tf.random.stateless_uniform(shape, key, -1, 1, alg="philox")
            label = tf.random.stateless_uniform(shape[:1], key, 0, classes, tf.int32, alg="philox")
            own = slice(host.index * rows, (host.index + 1) * rows)
            return {"image": image[own], "label": label[own]}

        return tf.data.Dataset.range(start_batch, tf.int64.max).map(batch)


def toy_generator(spec: DataSpec) -> keras.Model:
    latents, labels = keras.Input((3,)), keras.Input((), dtype="int32")
    one_hot = keras.ops.one_hot(labels, max(1, spec.num_classes))
    x = keras.layers.Dense(6)(keras.layers.Concatenate()([latents, one_hot]))
    x = keras.layers.BatchNormalization(synchronized=True)(x)
    x = keras.layers.Dense(int(np.prod(spec.image_shape)), activation="tanh")(x)
    return keras.Model([latents, labels], keras.layers.Reshape(spec.image_shape)(x))


def toy_discriminator(spec: DataSpec) -> keras.Model:
    images, labels = keras.Input(spec.image_shape), keras.Input((), dtype="int32")
    x = keras.layers.Dense(5, activation="relu")(keras.layers.Flatten()(images))
    x = keras.layers.BatchNormalization(synchronized=True)(x)
    return keras.Model([images, labels], {"logits": keras.layers.Dense(1)(x)[:, 0]})


def toy_random(step: int = 0, rows: int = 4) -> ReplicaRandom:
    return ReplicaRandom(seed=1, stream="0", step=tf.constant(step, tf.int64), repeat=0, per_replica_batch_size=rows)


class ToyCritic:
    """A function of images and their labels' kind as a `Critic` that has judged `real` and `fake`."""

    def __init__(self, function, real, fake) -> None:
        self._function, self._real, self._fake = function, real, fake

    def __call__(self, images, *, labels_of="real"):
        return self._function(images)

    @property
    def real_logits(self):
        return self(self._real)

    @property
    def fake_logits(self):
        return self(self._fake, labels_of="fake")


class ToyMemory:
    """A `Memory` that tells the averages it is given, 0 where none, and notes what it was asked to follow."""

    def __init__(self, **averages: float) -> None:
        self.averages, self.followed = averages, {}

    def average(self, name, values, *, decay):
        if tf.executing_eagerly():
            self.followed[name] = (np.asarray(values), float(decay))
        return tf.constant(self.averages.get(name.rpartition("/")[2], 0.0))


def in_a_move(random=None, memory=None):
    return happening_at(Moment(random or toy_random(), memory or ToyMemory()))
