"""How varied the images of a class are, and how many of them are copies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from components.evaluator.classes import rightly_read
from components.evaluator.distances import mean_distance, squared_distances
from components.evaluator.metric import Better, Need, SampleSet, in_rows, require_count
from components.interfaces import Positive, UserError


@dataclass(frozen=True, kw_only=True)
class Diversity:
    """`diversity`: mean distance of two images of a class in features, as a share of the same for real ones.

    It is the mean over the classes, `diversity_least` that of the least varied one; 0 is one image for ever. Where the
    extractor reads the classes, only generated images that are read as theirs count: a wrong class is an error, not
    variety. Of a model without classes it is the distance of any two images.

    Attributes:
      most_per_class: images of a class that are compared pairwise.
    """

    better: ClassVar[Mapping[str, Better]] = {"diversity": "higher", "diversity_least": "higher"}
    needs: ClassVar[frozenset[Need]] = frozenset()
    most_per_class: Positive = 500

    def measure(self, real: SampleSet, fake: SampleSet) -> dict[str, float]:
        """Return both shares; some class needs 2 images in either set."""
        require_count("Diversity", 2, real, fake)
        shares = []
        for label, of_real, of_fake in by_class(real, fake):
            counted = of_fake[rightly_read(of_fake)] if of_fake.classes else of_fake
            shares.append(_share(self._distance(counted), self._distance(of_real), label))
        if not shares:
            raise UserError(
                "`Diversity` needs a class with at least 2 images in either set. Received none. Raise `num_real` and "
                "`num_fake` of the evaluator to several images a class, or leave the metric out."
            )
        return {"diversity": float(np.mean(shares)), "diversity_least": min(shares)}

    def _distance(self, found: SampleSet) -> float:
        return mean_distance(found.features[: self.most_per_class])


@dataclass(frozen=True, kw_only=True)
class NearDuplicates:
    """`duplicates_of_real`: share of generated images that are nearly the same as a real one of the class.

    `duplicates_of_generated`: as another generated one. Nearly the same: nearer in pixels than `nearness` times the
    mean distance of two real images of the class. The real images' own share says how many such pairs the data have.

    Attributes:
      nearness: share of the mean distance.
      most_per_class: generated images of a class that are looked at.
    """

    better: ClassVar[Mapping[str, Better]] = {"duplicates_of_real": "lower", "duplicates_of_generated": "lower"}
    needs: ClassVar[frozenset[Need]] = frozenset()
    nearness: Annotated[float, Gt(0)] = 0.25
    most_per_class: Positive = 500

    def measure(self, real: SampleSet, fake: SampleSet) -> dict[str, float]:
        """Return both shares in [0, 1]; some class needs 2 images in either set."""
        require_count("NearDuplicates", 2, real, fake)
        copies: list[np.ndarray] = []
        twins: list[np.ndarray] = []
        for _, of_real, of_fake in by_class(real, fake):
            originals, drawn = pixels(of_real), pixels(of_fake[: self.most_per_class])
            near = (self.nearness * mean_distance(originals[: self.most_per_class])) ** 2
            copies.append(in_rows(lambda rows, to=originals: squared_distances(rows, to).min(axis=1), drawn) <= near)
            apart = squared_distances(drawn, drawn)
            np.fill_diagonal(apart, np.inf)
            twins.append(apart.min(axis=1) <= near)
        if not copies:
            raise UserError(
                "`NearDuplicates` needs a class with at least 2 images in either set. Received none. Raise `num_real` "
                "and `num_fake` of the evaluator to several images a class, or leave the metric out."
            )
        return {
            "duplicates_of_real": float(np.concatenate(copies).mean()),
            "duplicates_of_generated": float(np.concatenate(twins).mean()),
        }


def by_class(real: SampleSet, fake: SampleSet) -> Iterator[tuple[int, SampleSet, SampleSet]]:
    """Yield (class, real images of it, generated ones) of each class of which both have two."""
    for label in np.intersect1d(real.labels, fake.labels):
        of_real, of_fake = (found[np.flatnonzero(found.labels == label)] for found in (real, fake))
        if min(len(of_real), len(of_fake)) >= 2:
            yield int(label), of_real, of_fake


def pixels(found: SampleSet) -> np.ndarray:
    """Return float64[N, H * W * C] in [0, 1]."""
    return found.images.reshape(len(found), -1) / 255.0


def _share(of_fake: float, of_real: float, label: int) -> float:
    if of_real:
        return of_fake / of_real
    if of_fake:
        raise UserError(
            f"`Diversity` is a share of that of real images. Received class {label}, whose real images are all alike "
            "to the extractor. Use more real images, another extractor, or leave the metric out."
        )
    return 1.0
