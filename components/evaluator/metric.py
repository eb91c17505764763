"""What metrics are given and what they promise."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from components.interfaces import Networks, Update, UserError

Better = Literal["lower", "higher"] | None  # None: neither way, such as a spread
Need = Literal["logits", "classes", "request"]


@dataclass(frozen=True, kw_only=True)
class SampleSet:
    """Images and what an extractor makes of them, row by row.

    Attributes:
      images: uint8[N, H, W, C].
      labels: int32[N]: the classes that they are, or were asked to be; zeros where images are drawn without.
      features: float64[N, D], finite.
      logits: float64[N, K] of the extractor's classes; None where it has none.
      classes: whether those are the classes that `labels` count.
    """

    images: np.ndarray
    labels: np.ndarray
    features: np.ndarray
    logits: np.ndarray | None = None
    classes: bool = False

    def __len__(self) -> int:
        """Return N."""
        return len(self.images)

    def __getitem__(self, rows: slice | np.ndarray) -> "SampleSet":
        """Return some of the rows."""
        logits = None if self.logits is None else self.logits[rows]
        return SampleSet(
            images=self.images[rows],
            labels=self.labels[rows],
            features=self.features[rows],
            logits=logits,
            classes=self.classes,
        )


class Metric(Protocol):
    """Compares generated images with real ones.

    Attributes:
      better: {name of a number: which way is better}, all that `measure` returns.
      needs: "logits": an extractor that has them; "classes": one that reads the classes of the data; "request": a model
        that draws a class on request. A metric that lacks the last is left out, of any other need it is an error.
    """

    better: Mapping[str, Better]
    needs: frozenset[Need]

    def measure(self, real: SampleSet, fake: SampleSet) -> Mapping[str, float]:
        """Return finite numbers; raises UserError for sets too small, with the number needed."""
        ...


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model, how it was trained, and real images.

    Attributes:
      networks: those that images are drawn from.
      updates: of the training.
      images: uint8[N, H, W, C].
      labels: int32[N].
    """

    networks: Networks
    updates: Sequence[Update]
    images: np.ndarray
    labels: np.ndarray


class ModelMetric(Protocol):
    """Measures a model by what it makes of real images; `better` as in `Metric`."""

    better: Mapping[str, Better]

    def measure_model(self, trained: Trained, seed: int) -> Mapping[str, float]:
        """Return finite numbers, the same for the same seed."""
        ...


def require_count(metric: str, needed: int, *sets: SampleSet) -> None:
    """Raise UserError where a set has fewer images than a metric takes."""
    fewest = min(map(len, sets))
    if fewest < needed:
        raise UserError(
            f"`{metric}` needs at least {needed} images a set. Received {fewest}. Raise `num_real` or `num_fake` of "
            "the evaluator (real images are also compared half against half), or leave the metric out."
        )


def in_rows(function: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, most: int = 1000) -> np.ndarray:
    """Return a function's results of blocks of rows, one after the other, so that no N x N matrix is ever held."""
    return np.concatenate([function(rows[start : start + most]) for start in range(0, len(rows), most)])
