"""Reads generated digits with an independent classifier: are they the digits asked for, and as varied as real ones?

    python -m pipeline.main --mode=sample --workdir=runs/quickstart --num_images=5000 --output=digits.npz
    python -m tools.score_digits digits.npz

It scores a file; `--mode=evaluate` scores a run, by the same metrics. The classifier, `evaluator.classifier`, learns
four fifths of the embedded digits; the rest measures it, and stands beside the samples as what real digits score. The
Fréchet distance is that to the learnt digits: its unit is this classifier's own.
Exit status: 0 done; 2 a file that cannot be scored.
"""

import argparse
import sys
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.errors import UserError
from pipeline import quiet

_TRAIN_STEPS = 1600  # of the classifier
_BLOCK = 1000  # images that one Fréchet distance takes, as many as are held out: it depends on how many there are
_TWINS_AMONG = 80  # images of a class among which a duplicate is looked for: as many generated as real ones


@dataclass(frozen=True)
class Digits:
    """Images uint8[N, 28, 28, 1] and the classes int32[N] that they are, or were asked to be."""

    images: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Score:
    """What is said of a set of digits; see `evaluator.classes`, `frechet` and `diversity`."""

    count: int
    accuracy: float
    accuracy_least: float
    frechet: float  # to the digits that the classifier has learnt
    variety: float  # as a share of that of the real digits that are held out
    variety_least: float
    duplicates: float  # share that has another one of the class nearly like it


@dataclass(frozen=True)
class Yardstick:
    """What digits are measured by: a classifier's features, of what it has learnt and of what is held out."""

    network: Any
    learnt: Any  # SampleSet of 4,000
    held_out: Any  # SampleSet of 1,000
    recipe: str  # tells the classifier apart from others

    def real(self, count: int = _BLOCK) -> Score:
        """Return the score of the digits that are held out, in blocks as large as `count` samples are scored in."""
        return self._score_of(self.held_out, block_of(count))

    def score(self, digits: Digits) -> Score:
        """Return the score of `digits`; raises UserError for fewer than two of each class."""
        found = self.network(digits.images, digits.labels.astype(np.int32))
        return self._score_of(found, block_of(len(found)))

    def _score_of(self, found: Any, block: int) -> Score:
        from components.evaluator.classes import ClassAccuracy
        from components.evaluator.diversity import Diversity, NearDuplicates

        accuracy = ClassAccuracy().measure(self.held_out, found)
        variety = Diversity().measure(self.held_out, found)
        twins = NearDuplicates(most_per_class=_TWINS_AMONG).measure(self.held_out, found)
        return Score(
            count=len(found),
            accuracy=accuracy["class_accuracy"],
            accuracy_least=accuracy["class_accuracy_least"],
            frechet=block_distance(found.features, self.learnt.features, block),
            variety=variety["diversity"],
            variety_least=variety["diversity_least"],
            duplicates=twins["duplicates_of_generated"],
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Score the file that `argv` names, print a table, return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.score_digits", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("samples", help="npz of images uint8[N,28,28,1] and labels int32[N]")
    path = parser.parse_args(argv).samples
    try:
        samples = read_samples(path)
        quiet.start()
        measure = yardstick()
        report(measure.score(samples), measure.real(len(samples.images)))
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
    from components.data_source.tfds_source import TFDSSource
    from components.evaluator import classifier

    data = TFDSSource(name="mnist_5k")
    network = classifier.Classifier(train_steps=_TRAIN_STEPS).load(data)
    learnt, held_out = (network(*part) for part in classifier.parts(data))
    return Yardstick(network, learnt, held_out, f"{classifier.RECIPE} of {_TRAIN_STEPS} steps")


def block_of(count: int) -> int:
    """Return how many images one Fréchet distance takes where there are `count`."""
    return min(_BLOCK, count)


def block_distance(features: np.ndarray, learnt_features: np.ndarray, size: int) -> float:
    """Return the mean Fréchet distance of blocks of `size` rows.

    So sets of any number compare with real digits in blocks as large; rows beyond the last whole block are left out.
    """
    from components.evaluator.frechet import frechet_distance

    starts = range(0, len(features) - size + 1, size)
    return float(np.mean([frechet_distance(features[start : start + size], learnt_features) for start in starts]))


def report(samples: Score, real: Score) -> None:
    """Print both scores side by side, and diversity as a share of that of real digits."""
    print(f"Classifier: {real.accuracy:.2%} of {real.count:,} real digits that it has not seen are read rightly.")
    print(f"\n{'':32}samples  real digits")
    print(f"{'images':30}{samples.count:9,}{real.count:13,}")
    print(f"{'class accuracy':30}{samples.accuracy:9.2%}{real.accuracy:13.2%}")
    print(f"{'  of the class read worst':30}{samples.accuracy_least:9.2%}{real.accuracy_least:13.2%}")
    print(f"{'Fréchet distance in features':30}{samples.frechet:9.2f}{real.frechet:13.2f}")
    print(f"{'nearly the same as another':30}{samples.duplicates:9.2%}{real.duplicates:13.2%}")
    print(f"{'variety in features: mean':30}{samples.variety:9.2f}{real.variety:13.2f}")
    print(f"{'  of the least varied class':30}{samples.variety_least:9.2f}{real.variety_least:13.2f}")
    print("\nVariety: mean distance of two images of a class, as a share of the same for real digits.")


if __name__ == "__main__":
    sys.exit(main())
