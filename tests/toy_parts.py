"""Toy data and toy networks."""

import keras
import numpy as np
import tensorflow as tf

from components.interfaces import DataSpec, HostShard


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
