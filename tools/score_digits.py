"""Reads generated digits with an independent classifier: are they the digits asked for, and as varied as real ones?

    python -m pipeline.main --mode=sample --workdir=runs/quickstart --num_images=5000 --output=digits.npz
    python -m tools.score_digits digits.npz

The classifier learns four fifths of the embedded digits, shifted and turned at random; the rest measures it, and stands
beside the samples as what real digits score. The Fréchet distance is that to the learnt digits, in the classifier's
features: its unit is this classifier's own. The classifier is kept in $XDG_CACHE_HOME/gantry, or ~/.cache/gantry.
Exit status: 0 done; 2 a file that cannot be scored.
"""

import argparse
import hashlib
import os
import sys
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from components.errors import UserError
from pipeline import quiet
from tools.frechet import frechet_distance

_EPOCHS = 25
RECIPE = "1"  # of the classifier, and part of the name it is kept under; count up when _train changes
_LEARNT = 4000  # of the 5,000 real digits
_BLOCK = 1000  # images that one Fréchet distance takes, as many as are held out: it depends on how many there are
_MOST_PER_CLASS = 500  # images of a class compared pairwise
_TWINS_AMONG = 80  # images of a class among which a duplicate is looked for: as many generated as real ones
_DUPLICATE = 0.25  # nearer than this share of the class's mean distance of real digits is nearly the same picture


@dataclass(frozen=True)
class Digits:
    """Images uint8[N, 28, 28, 1] and the classes int32[N] that they are, or were asked to be."""

    images: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Score:
    """What is said of a set of digits; arrays hold one number a class, NaN where the set has too few of it."""

    count: int
    accuracy: float  # share that is read as the digit asked for
    class_accuracy: np.ndarray
    feature_distance: np.ndarray  # mean over pairs of images of the class that are read as such, in features
    pixel_distance: np.ndarray  # the same in pixels
    duplicates: float  # share that has an image of the same class nearly like it
    frechet: float  # distance to the digits that the classifier has learnt, in features; NaN without them

    def variety(self, real: "Score") -> float:
        """Return the variety in features of the least varied class, as a share of that of real digits."""
        return float(np.nanmin(self.feature_distance / real.feature_distance))


@dataclass(frozen=True)
class Yardstick:
    """What digits are measured by: a classifier, its features of what it has learnt, and what real digits score."""

    classifier: Any
    learnt_features: np.ndarray  # float32[4000, 128]
    real: Score  # of the digits that are held out

    def score(self, digits: Digits) -> Score:
        """Return the score of `digits`."""
        return score(digits, self.classifier, self.real, self.learnt_features)


def main(argv: Sequence[str] | None = None) -> int:
    """Score the file that `argv` names, print a table, return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.score_digits", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("samples", help="npz of images uint8[N,28,28,1] and labels int32[N]")
    path = parser.parse_args(argv).samples
    try:
        samples = read_samples(path)
        quiet.start()
        measure = yardstick()
        report(measure.score(samples), measure.real)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0


def read_samples(path: str) -> Digits:
    """Return the digits in an npz file; raises UserError for anything that is not such a file."""
    rule = "Samples are an npz file of `images` uint8[N,28,28,1] and `labels` int32[N] in 0 to 9."
    remedy = "Write one by python -m pipeline.main --mode=sample --num_images=5000 --output=FILE.npz."
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            images, labels = archive["images"], archive["labels"]
    except (OSError, ValueError, LookupError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{rule} Received {path}: {' '.join(str(error).split())} {remedy}") from error
    received = f"{path}: images {images.dtype}{list(images.shape)}, labels {labels.dtype}{list(labels.shape)}"
    fits = images.dtype == np.uint8 and images.shape[1:] == (28, 28, 1) and len(images) > 0
    if not fits or labels.shape != images.shape[:1] or labels.dtype.kind not in "iu":
        raise UserError(f"{rule} Received {received}. {remedy}")
    if labels.min() < 0 or labels.max() > 9:
        raise UserError(f"{rule} Received labels from {labels.min()} to {labels.max()} in {path}. {remedy}")
    return Digits(images, labels)


def yardstick() -> Yardstick:
    """Return what digits are measured by; the classifier is trained at the first call and kept."""
    learnt, held_out = real_digits()
    classifier = cached_classifier(learnt)
    features, _ = classifier.predict(learnt.images, batch_size=500, verbose=0)
    return Yardstick(classifier, features, score(held_out, classifier, learnt_features=features))


def real_digits() -> tuple[Digits, Digits]:
    """Return the embedded digits in two parts, to learn from and held out; cut at random, always alike."""
    from components.data_source.tfds_source import TFDSSource

    source = TFDSSource(name="mnist_5k")
    batch = next(iter(source.batches(global_batch_size=5000, seed=0, start_batch=0)))  # one epoch: each digit once
    images = np.round(batch["image"].numpy() * 127.5 + 127.5).astype(np.uint8)
    labels = batch["label"].numpy()
    return Digits(images[:_LEARNT], labels[:_LEARNT]), Digits(images[_LEARNT:], labels[_LEARNT:])


def cached_classifier(learnt: Digits) -> Any:
    """Return the classifier of these digits, trained at the first call and kept in a file."""
    import keras

    fingerprint = hashlib.sha256(learnt.images.tobytes() + learnt.labels.tobytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gantry"
    path = cache / f"digit_classifier-{fingerprint}-{RECIPE}.keras"
    if path.exists():
        return keras.saving.load_model(path)
    print(f"Training the classifier once; it is kept in {path}.", flush=True)
    classifier = _train(learnt)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.keras")
        classifier.save(unfinished)
        unfinished.replace(path)
    except OSError as error:
        raise UserError(f"The cache must be writable. Received {cache}: {error}. Set XDG_CACHE_HOME.") from error
    return classifier


def _train(digits: Digits) -> Any:
    """Return a keras.Model: images [B, 28, 28, 1] of 0 to 255 -> (features float32[B, 128], logits float32[B, 10])."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(0)
    count = len(digits.images)
    images = keras.Input((28, 28, 1))
    x = layers.RandomRotation(0.04, fill_mode="constant", fill_value=0.0)(layers.Rescaling(1 / 255)(images))
    for channels in (32, 64):
        x = layers.MaxPooling2D()(layers.Conv2D(channels, 3, padding="same", activation="relu")(x))
    features = layers.Dense(128, activation="relu")(layers.Dropout(0.3)(layers.Flatten()(x)))
    logits = layers.Dense(10)(layers.Dropout(0.5)(features))
    rates = keras.optimizers.schedules.CosineDecay(2e-3, _EPOCHS * -(-count // 64))
    classifier = keras.Model(images, logits)
    classifier.compile(keras.optimizers.Adam(rates), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    random = np.random.default_rng(0)
    padded = np.pad(digits.images[..., 0], ((0, 0), (2, 2), (2, 2)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (28, 28), axis=(1, 2))  # [N, 5, 5, 28, 28]
    for _ in range(_EPOCHS):
        down, right = random.integers(0, 5, (2, count))
        shifted = views[np.arange(count), down, right, :, :, None]
        classifier.fit(shifted, digits.labels, batch_size=64, verbose=0)
    return keras.Model(images, [features, logits])


def score(
    digits: Digits, classifier: Any, real: Score | None = None, learnt_features: np.ndarray | None = None
) -> Score:
    """Return the score of `digits`.

    Args:
      digits: to be scored.
      classifier: as `cached_classifier` returns it.
      real: gives the scale of duplicates; None: `digits` are themselves the real ones.
      learnt_features: of the digits that the Fréchet distance is to; None: it is NaN.
    """
    features, logits = classifier.predict(digits.images, batch_size=500, verbose=0)
    right = logits.argmax(axis=-1) == digits.labels
    pixels = digits.images.reshape(len(digits.images), -1) / np.float32(255)
    class_accuracy, feature_distance, pixel_distance = np.full((3, 10), np.nan)
    twins: list[bool] = []
    for digit in np.unique(digits.labels):
        asked = digits.labels == digit
        class_accuracy[digit] = right[asked].mean()
        chosen = np.flatnonzero(asked & right)[:_MOST_PER_CLASS]  # a wrong digit is an error, not variety
        if asked.sum() < 2:
            continue  # variety has no meaning
        pairs = max(1, len(chosen) * (len(chosen) - 1))  # of fewer than two rightly read digits the variety is 0
        distances = _distances(pixels[chosen])
        feature_distance[digit] = _distances(features[chosen]).sum() / pairs
        pixel_distance[digit] = distances.sum() / pairs
        scale = pixel_distance[digit] if real is None else real.pixel_distance[digit]
        np.fill_diagonal(distances, np.inf)
        twins.extend(distances[:, :_TWINS_AMONG].min(axis=1, initial=np.inf) < _DUPLICATE * scale)
    duplicates = float(np.mean(twins)) if twins else float("nan")
    frechet = float("nan") if learnt_features is None else block_distance(features, learnt_features)
    return Score(len(right), float(right.mean()), class_accuracy, feature_distance, pixel_distance, duplicates, frechet)


def block_distance(features: np.ndarray, learnt_features: np.ndarray) -> float:
    """Return the mean Fréchet distance of blocks of 1,000 rows, or of all rows where they are fewer.

    So sets of any size compare with the real digits that are held out; rows beyond the last whole block are left out.
    """
    if len(features) < 2:
        return float("nan")  # no covariance
    size = min(_BLOCK, len(features))
    starts = range(0, len(features) - size + 1, size)
    return float(np.mean([frechet_distance(features[start : start + size], learnt_features) for start in starts]))


def _distances(rows: np.ndarray) -> np.ndarray:
    """Return the Euclidean distances float[N, N] of rows float[N, D]."""
    squares = (rows**2).sum(axis=1)
    return np.sqrt(np.maximum(squares[:, None] + squares[None] - 2 * rows @ rows.T, 0.0) * (1 - np.eye(len(rows))))


def report(samples: Score, real: Score) -> None:
    """Print both scores side by side, and diversity as a ratio to that of real digits."""
    print(f"Classifier: {real.accuracy:.2%} of {real.count:,} real digits that it has not seen are read rightly.")
    print(f"\n{'':32}samples  real digits")
    print(f"{'images':30}{samples.count:9,}{real.count:13,}")
    print(f"{'class accuracy':30}{samples.accuracy:9.2%}{real.accuracy:13.2%}")
    print(f"{'Fréchet distance in features':30}{samples.frechet:9.2f}{real.frechet:13.2f}")
    print(f"{'nearly the same as another':30}{samples.duplicates:9.2%}{real.duplicates:13.2%}")
    asked = np.flatnonzero(~np.isnan(samples.class_accuracy))
    features = (samples.feature_distance / real.feature_distance)[asked]
    pixels = (samples.pixel_distance / real.pixel_distance)[asked]
    for name, ratios in (("features", features), ("pixels", pixels)):
        print(f"{f'variety in {name}: mean':30}{ratios.mean():9.2f}{1.0:13.2f}")
        print(f"{'  of the least varied class':30}{ratios.min():9.2f}{1.0:13.2f}")
    print("\nclass  accuracy  real accuracy  variety in features  in pixels")
    columns = zip(asked, samples.class_accuracy[asked], real.class_accuracy[asked], features, pixels, strict=True)
    for digit, accuracy, real_accuracy, in_features, in_pixels in columns:
        print(f"{digit:5}{accuracy:10.1%}{real_accuracy:15.1%}{in_features:21.2f}{in_pixels:11.2f}")
    print("\nVariety: mean distance of two images of a class, as a share of the same for real digits.")


if __name__ == "__main__":
    sys.exit(main())
