"""The features of a small classifier that learns the labels of the data, once, on this machine."""

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from components.evaluator import cached_files, real_images
from components.evaluator.conversion import Conversion
from components.evaluator.extractor import FeatureNetwork
from components.evaluator.metric import Need
from components.interfaces import DataSource, Positive, UserError

RECIPE = "2"  # of the classifier, and part of the name it is kept under; count up when what is trained changes
_BATCH = 64
_MOST = 25_000  # examples that are read
_LARGEST = 64  # pixels a side; larger images are resized to it
_SHIFT = 2  # pixels
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile)


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """128 features, and logits of the classes of the data, of two convolutions and a hidden layer.

    It learns four fifths of the run's own examples, shifted and turned at random, and is measured on the rest. It is
    kept in $XDG_CACHE_HOME/gantry, or ~/.cache/gantry, under a fingerprint of what it has learnt, and needs no network.
    The unit of its features is its own: compare numbers of one classifier only, whose hash the certificate tells.

    Attributes:
      train_steps: of 64 images.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({"logits", "classes"})
    train_steps: Positive = 1600

    def load(self, data: DataSource) -> FeatureNetwork:
        """Return it, trained at the first call; raises UserError for data without labels."""
        if data.spec.num_classes < 2:
            raise UserError(
                f"`Classifier` learns the labels of the data. Received {data.spec.name}, which has "
                f"{data.spec.num_classes or 'no'} classes. Bind `SampleEvaluator.extractor` to "
                "@inception_2015.Inception2015() or @keras_model.KerasModel()."
            )
        learnt, held_out = parts(data)
        height, width, channels = learnt[0].shape[1:]
        size = min(height, _LARGEST), min(width, _LARGEST)
        conversion = Conversion(size=size, channels=channels, low=0.0, high=1.0)
        model = self._model(conversion, *learnt, data.spec.num_classes)
        certificate = {"extractor": f"classifier of {data.spec.name}", "extractor_hash": _hash_of(model)}
        network = FeatureNetwork(
            lambda images: tuple(model(images, training=False)), conversion, certificate=certificate, classes=True
        )
        logits = network(*held_out).logits
        right = 0.0 if logits is None else float((logits.argmax(axis=1) == held_out[1]).mean())
        network.certificate["extractor_accuracy"] = round(right, 4)  # on what it has not seen
        return network

    def _model(self, conversion: Conversion, images: np.ndarray, labels: np.ndarray, num_classes: int) -> keras.Model:
        """Return keras.Model: float32[B, H, W, C] in [0, 1] -> (features float32[B, 128], logits float32[B, K])."""
        digest = hashlib.sha256(images.tobytes() + labels.tobytes() + repr((images.shape, num_classes)).encode())
        path = cached_files.folder() / f"classifier-{digest.hexdigest()[:16]}-{RECIPE}-{self.train_steps}.keras"
        if found := _kept(path):
            return found
        print(f"Training the classifier once; it is kept in {path}.", flush=True)
        model = _trained(conversion, images, labels, num_classes, self.train_steps)
        cached_files.write(path, lambda place: model.save(place))
        return model


def parts(data: DataSource) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return what the classifier learns and what is held out, each uint8[N, H, W, C] and int32[N]; always alike."""
    images, labels = real_images.first(min(data.spec.num_examples, _MOST), data)
    learnt = len(images) * 4 // 5
    return (images[:learnt], labels[:learnt]), (images[learnt:], labels[learnt:])


def _kept(path: Path) -> keras.Model | None:
    """Return the classifier in a file; None where there is none that can be read."""
    if not path.exists():
        return None
    try:
        return keras.saving.load_model(path, compile=False)
    except _UNREADABLE as error:
        print(f"{path} cannot be read ({type(error).__name__}).", flush=True)
        return None


def _trained(
    conversion: Conversion, images: np.ndarray, labels: np.ndarray, num_classes: int, train_steps: int
) -> keras.Model:
    """Return the classifier; every draw has a seed of its own, so that no random state of the process is touched."""
    inputs, outputs = _network((*conversion.size, conversion.channels), num_classes)
    classifier = keras.Model(inputs, outputs[1])
    rates = keras.optimizers.schedules.CosineDecay(2e-3, train_steps)
    classifier.compile(keras.optimizers.Adam(rates), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    random, count = np.random.default_rng(0), len(images)
    converted = np.concatenate([conversion(tf.constant(part)) for part in np.array_split(images, -(-count // 1000))])
    height, width = conversion.size
    around = ((0, 0), (_SHIFT, _SHIFT), (_SHIFT, _SHIFT), (0, 0))
    padded = np.pad(converted, around, mode="edge")
    views = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(1, 2))  # [N, 5, 5, C, H, W]
    left = train_steps
    while left > 0:
        order = random.permutation(count)[: left * _BATCH]
        down, right = random.integers(0, 2 * _SHIFT + 1, (2, len(order)))
        shifted = np.moveaxis(views[order, down, right], 1, -1)
        classifier.fit(shifted, labels[order], batch_size=_BATCH, shuffle=False, verbose=0)
        left -= -(-len(order) // _BATCH)
    return keras.Model(inputs, outputs)


def _network(shape: tuple[int, ...], num_classes: int) -> tuple[keras.KerasTensor, list[keras.KerasTensor]]:
    def seeded(seed: int) -> keras.Initializer:
        return keras.initializers.GlorotUniform(seed=seed)

    images = keras.Input(shape, dtype="float32")
    x = layers.RandomRotation(0.04, fill_mode="nearest", seed=1)(images)
    for seed, channels in ((2, 32), (3, 64)):
        x = layers.Conv2D(channels, 3, padding="same", activation="relu", kernel_initializer=seeded(seed))(x)
        x = layers.MaxPooling2D(padding="same")(x)
    x = layers.Dropout(0.3, seed=4)(layers.Flatten()(x))
    features = layers.Dense(128, activation="relu", kernel_initializer=seeded(5))(x)
    logits = layers.Dense(num_classes, kernel_initializer=seeded(6))(layers.Dropout(0.5, seed=7)(features))
    return images, [features, logits]


def _hash_of(model: keras.Model) -> str:
    """Return a hash of the weights; that of the file would tell when it was written."""
    weights = b"".join(np.ascontiguousarray(weight).tobytes() for weight in model.get_weights())
    return hashlib.sha256(weights).hexdigest()[:16]
