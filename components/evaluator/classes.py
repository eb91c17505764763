"""What the extractor's classes say of generated images: are they distinct, varied, and those asked for?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from components.evaluator.metric import Better, Need, SampleSet, require_count
from components.interfaces import Positive


@dataclass(frozen=True, kw_only=True)
class InceptionScore:
    """`inception_score`: exp of the mean divergence of an image's classes from those of all; from 1 to K.

    It does not look at the real images. With the extractor `Inception2015` it is the published score; with another it
    has that one's scale.

    Attributes:
      splits: parts of the generated images that are scored apart; the score is their mean. Each split biases it upward
        the less the larger it is.

    Reference: Salimans et al., 2016, arXiv:1606.03498, section 4.
    """

    better: ClassVar[Mapping[str, Better]] = {"inception_score": "higher"}
    needs: ClassVar[frozenset[Need]] = frozenset({"logits"})
    splits: Positive = 10

    def measure(self, real: SampleSet, fake: SampleSet) -> dict[str, float]:
        """Return {"inception_score": number in [1, K]}; a set needs one image a split."""
        require_count("InceptionScore", self.splits, fake)
        scores = [inception_score(part) for part in np.array_split(_logits(fake), self.splits)]
        return {"inception_score": float(np.mean(scores))}


@dataclass(frozen=True, kw_only=True)
class ClassAccuracy:
    """`class_accuracy`: share of generated images that are read as the class asked for; of conditional models.

    `class_accuracy_least`: that of the class that is read worst.
    """

    better: ClassVar[Mapping[str, Better]] = {"class_accuracy": "higher", "class_accuracy_least": "higher"}
    needs: ClassVar[frozenset[Need]] = frozenset({"logits", "classes", "request"})

    def measure(self, real: SampleSet, fake: SampleSet) -> dict[str, float]:
        """Return both shares in [0, 1]; a set needs 1 image."""
        require_count("ClassAccuracy", 1, fake)
        right = rightly_read(fake)
        least = min(float(right[fake.labels == label].mean()) for label in np.unique(fake.labels))
        return {"class_accuracy": float(right.mean()), "class_accuracy_least": least}


def inception_score(logits: np.ndarray) -> float:
    """Return exp(mean over images of KL(p(class | image) || p(class))) of logits float[N, K], N at least 1."""
    shifted = np.asarray(logits, np.float64)
    shifted = shifted - shifted.max(axis=1, keepdims=True)
    log_each = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    each = np.exp(log_each)
    of_all = each.mean(axis=0)
    # A class that no image is of adds nothing: 0 log 0 = 0.
    log_all = np.log(np.where(of_all > 0, of_all, 1.0))
    divergence = np.where(each > 0, each * (log_each - log_all), 0.0).sum(axis=1).mean()
    return max(1.0, float(np.exp(divergence)))


def rightly_read(found: SampleSet) -> np.ndarray:
    """Return bool[N]: whether the likeliest class is the label."""
    return _logits(found).argmax(axis=1) == found.labels


def _logits(found: SampleSet) -> np.ndarray:
    if found.logits is None:
        raise TypeError("The evaluator gives this metric to no extractor without logits.")
    return found.logits
