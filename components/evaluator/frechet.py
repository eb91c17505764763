"""The Fréchet distance between two sets of features, each taken as a Gaussian.

Reference: Dowson and Landau, 1982, doi:10.1016/0047-259X(82)90077-X; for images: Heusel et al., 2017, arXiv:1706.08500,
equation 6. The distance is squared there, and here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from components.evaluator.metric import Better, Need, SampleSet, require_count


@dataclass(frozen=True, kw_only=True)
class FrechetDistance:
    """`frechet_distance`: squared, in squared units of the features; 0 for equal sets.

    It is biased upward by about 1 / N: compare only distances of equally large sets, in features of one extractor. Of
    fewer images than features it is finite and right, and mostly bias.

    Reference: Heusel et al., 2017, arXiv:1706.08500, equation 6.
    """

    better: ClassVar[Mapping[str, Better]] = {"frechet_distance": "lower"}
    needs: ClassVar[frozenset[Need]] = frozenset()

    def measure(self, real: SampleSet, fake: SampleSet) -> dict[str, float]:
        """Return {"frechet_distance": number >= 0}; a set needs 2 images."""
        require_count("FrechetDistance", 2, real, fake)
        return {"frechet_distance": frechet_distance(real.features, fake.features)}


def frechet_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the squared Fréchet distance of the Gaussians that two sets of features have the moments of.

    Args:
      first: float[N, D], N at least 2.
      second: float[M, D], M at least 2.

    Returns:
      A number >= 0, in squared units of the features.
    """
    return gaussian_distance(*_moments(first), *_moments(second))


def gaussian_distance(
    first_mean: np.ndarray, first_covariance: np.ndarray, second_mean: np.ndarray, second_covariance: np.ndarray
) -> float:
    """Return the squared Fréchet distance of two Gaussians.

    |m1 - m2|^2 + tr S1 + tr S2 - 2 tr (S1^1/2 S2 S1^1/2)^1/2. The last trace is the sum of the singular values of
    S1^1/2 S2^1/2: their squares are the eigenvalues of the symmetric product, whose smallest would be lost to rounding
    before their roots are taken. Nothing is complex, whatever the rank.

    Args:
      first_mean: m1, float[D].
      first_covariance: S1, float[D, D], symmetric and positive semi-definite; it may be singular.
      second_mean: m2, float[D].
      second_covariance: S2, likewise.
    """
    apart = first_mean - second_mean
    overlap = np.linalg.svd(_root(first_covariance) @ _root(second_covariance), compute_uv=False).sum()
    distance = apart @ apart + np.trace(first_covariance) + np.trace(second_covariance) - 2.0 * overlap
    return max(0.0, float(distance))


def _moments(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.asarray(features, np.float64)
    return rows.mean(axis=0), np.atleast_2d(np.cov(rows, rowvar=False))


def _root(covariance: np.ndarray) -> np.ndarray:
    """Return the symmetric square root; eigenvalues that rounding made negative count as 0."""
    values, vectors = np.linalg.eigh(np.asarray(covariance, np.float64))
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
