"""Paths from one point of the latent space to another."""

from collections.abc import Callable, Mapping

import numpy as np

_PARALLEL = 1e-6  # of a sine: so close to one line, no arc is told from another


def linear(start: np.ndarray, end: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return float32[R, S, Z]: (1 - t) start + t end.

    Args:
      start: float32[R, Z].
      end: float32[R, Z].
      positions: float[S], each t in [0, 1].
    """
    t = positions[None, :, None]
    return ((1 - t) * start[:, None] + t * end[:, None]).astype(np.float32)


def spherical(start: np.ndarray, end: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return float32[R, S, Z]: sin((1 - t) a) / sin(a) start + sin(t a) / sin(a) end, a being the angle between them.

    Between vectors of one norm the norm stays what it is; latents of a normal prior, whose norms differ little, so stay
    where the prior has its mass. Vectors on one line, as all are of a single latent, have no such path: it is linear.

    Args:
      start: float32[R, Z].
      end: float32[R, Z].
      positions: float[S], each t in [0, 1].

    Reference: White, 2016, arXiv:1609.04468, section 2.1; Shoemake, 1985, doi:10.1145/325334.325242.
    """
    first, last = start.astype(np.float64)[:, None], end.astype(np.float64)[:, None]
    norms = np.linalg.norm(first, axis=-1, keepdims=True) * np.linalg.norm(last, axis=-1, keepdims=True)
    cosine = np.sum(first * last, axis=-1, keepdims=True) / np.where(norms > 0, norms, 1.0)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    sine = np.sin(angle)
    is_arc = (norms > 0) & (sine > _PARALLEL)
    safe = np.where(is_arc, sine, 1.0)
    t = positions[None, :, None]
    arc = np.sin((1 - t) * angle) / safe * first + np.sin(t * angle) / safe * last
    return np.where(is_arc, arc, linear(start, end, positions)).astype(np.float32)


PATHS: Mapping[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "spherical": spherical,
    "linear": linear,
}
