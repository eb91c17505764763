"""Euclidean distances between rows, exact where it matters: the same row is at distance 0."""

import numpy as np

_ROUNDING = 1e-12  # of the squared lengths: what lies below is nothing but rounding


def squared_distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the squared Euclidean distances float64[N, M] of rows float[N, D] and float[M, D]."""
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    lengths = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None]
    squares = lengths - 2.0 * (x @ y.T)
    return np.where(squares <= _ROUNDING * lengths, 0.0, squares)


def mean_distance(rows: np.ndarray) -> float:
    """Return the mean Euclidean distance over the pairs of rows float[N, D]; 0 of fewer than two."""
    pairs = len(rows) * (len(rows) - 1)
    return float(np.sqrt(squared_distances(rows, rows)).sum() / pairs) if pairs else 0.0
