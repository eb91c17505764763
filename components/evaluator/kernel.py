"""The kernel distance: the squared maximum mean discrepancy of two sets of features, without bias."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from components.evaluator.metric import Better, Need, SampleSet, require_count
from components.interfaces import Positive


@dataclass(frozen=True, kw_only=True)
class KernelDistance:
    """`kernel_distance` (KID) and `kernel_distance_spread`: the mean over blocks, and their standard deviation.

    Kernel (x . y / D + 1)^3. Unbiased, so that sets of any size compare; near 0, and at times below it, for two sets of
    one kind.

    Attributes:
      block_size: images of a set in a block; of sets smaller than two blocks, half a set.

    Reference: Binkowski et al., 2018, arXiv:1801.01401, section 4. Their blocks are drawn at random; these lie side by
    side in sets that are in random order, and share no image.
    """

    better: ClassVar[Mapping[str, Better]] = {"kernel_distance": "lower", "kernel_distance_spread": None}
    needs: ClassVar[frozenset[Need]] = frozenset()
    block_size: Positive = 1000

    def measure(self, real: SampleSet, fake: SampleSet) -> dict[str, float]:
        """Return both numbers; a set needs 4 images."""
        require_count("KernelDistance", 4, real, fake)
        shared = min(len(real), len(fake))
        size = max(2, min(self.block_size, shared // 2))
        blocks = [slice(start, start + size) for start in range(0, shared - size + 1, size)]
        found = [squared_discrepancy(real.features[block], fake.features[block]) for block in blocks]
        return {"kernel_distance": float(np.mean(found)), "kernel_distance_spread": float(np.std(found, ddof=1))}


def squared_discrepancy(first: np.ndarray, second: np.ndarray) -> float:
    """Return the unbiased estimate of the squared maximum mean discrepancy under the kernel (x . y / D + 1)^3.

    sum_{i != j} k(x_i, x_j) / (N (N - 1)) + sum_{i != j} k(y_i, y_j) / (M (M - 1)) - 2 sum_{i, j} k(x_i, y_j) / (N M).

    Args:
      first: x, float[N, D], N at least 2.
      second: y, float[M, D], M at least 2.

    Reference: Gretton et al., 2012, Journal of Machine Learning Research 13, equation 3.
    """
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    return _mean_of_pairs(x) + _mean_of_pairs(y) - 2.0 * float(_kernel(x, y).mean())


def _mean_of_pairs(rows: np.ndarray) -> float:
    values = _kernel(rows, rows)
    return float((values.sum() - np.trace(values)) / (len(rows) * (len(rows) - 1)))


def _kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x @ y.T / x.shape[1] + 1.0) ** 3
