"""Fidelity and coverage by nearest neighbours in feature space.

A set's manifold is the union of the closed balls about its members that reach to their k-th nearest neighbour.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from components.evaluator.distances import squared_distances
from components.evaluator.metric import Better, Need, SampleSet, in_rows, require_count
from components.interfaces import Positive

_ROUNDING = 1 + 1e-9  # of a radius: its own k-th neighbour lies inside


@dataclass(frozen=True, kw_only=True)
class PrecisionRecall:
    """`precision`: share of generated images on the manifold of real ones; `recall`: of real ones on the generated.

    Attributes:
      k: neighbours.
      most: the first so many images of either set are compared.

    Reference: Kynkaanniemi et al., 2019, arXiv:1904.06991, equations 1 and 2.
    """

    better: ClassVar[Mapping[str, Better]] = {"precision": "higher", "recall": "higher"}
    needs: ClassVar[frozenset[Need]] = frozenset()
    k: Positive = 3
    most: Positive = 10_000

    def measure(self, real: SampleSet, fake: SampleSet) -> dict[str, float]:
        """Return both shares in [0, 1]; a set needs k + 1 images."""
        require_count("PrecisionRecall", self.k + 1, real, fake)
        x, y = real.features[: self.most], fake.features[: self.most]
        return {"precision": share_inside(y, x, self.k), "recall": share_inside(x, y, self.k)}


@dataclass(frozen=True, kw_only=True)
class DensityCoverage:
    """`density`: how many balls of real images a generated one lies in, over k; `coverage`: share of balls not empty.

    Density is about 1 for sets of one kind and may exceed it; coverage is at most 1.

    Attributes:
      k: neighbours.
      most: the first so many images of either set are compared.

    Reference: Naeem et al., 2020, arXiv:2002.09797, equations 3 and 4.
    """

    better: ClassVar[Mapping[str, Better]] = {"density": "higher", "coverage": "higher"}
    needs: ClassVar[frozenset[Need]] = frozenset()
    k: Positive = 5
    most: Positive = 10_000

    def measure(self, real: SampleSet, fake: SampleSet) -> dict[str, float]:
        """Return both numbers; a set needs k + 1 images."""
        require_count("DensityCoverage", self.k + 1, real, fake)
        x, y = real.features[: self.most], fake.features[: self.most]
        reach = squared_radii(x, self.k)
        inside = in_rows(lambda rows: (squared_distances(rows, x) <= reach).sum(axis=1), y)
        nearest = in_rows(lambda rows: squared_distances(rows, y).min(axis=1), x)
        return {"density": float(inside.mean() / self.k), "coverage": float((nearest <= reach).mean())}


def share_inside(points: np.ndarray, members: np.ndarray, k: int) -> float:
    """Return the share of points float[N, D] on the manifold of members float[M, D], M above k."""
    reach = squared_radii(members, k)
    return float(in_rows(lambda rows: (squared_distances(rows, members) <= reach).any(axis=1), points).mean())


def squared_radii(members: np.ndarray, k: int) -> np.ndarray:
    """Return float64[M]: the squared distance of each member float[M, D] to its k-th nearest other one."""
    return _ROUNDING * in_rows(
        lambda rows: np.partition(squared_distances(rows, members), k, axis=1)[:, k],  # the nearest is itself
        members,
    )
