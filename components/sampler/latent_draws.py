"""The latents that samples are decoded from."""

import math

import numpy as np
import tensorflow as tf

from components import draws
from components.interfaces import UserError

_ROWS = 100  # drawn under one key; another number would give other latents


def latents_of(num_images: int, latent_dim: int, *, seed: int, truncation: float | None = None) -> np.ndarray:
    """Return float32[N, Z], row i from (seed, i) alone: fewer are the first of more.

    Args:
      num_images: N, at least 1.
      latent_dim: Z.
      seed: of the draws, in [-2^63, 2^63).
      truncation: None: standard normal; else within [-truncation, truncation], see `draws.truncated_normal`.

    Raises:
      UserError: no image is asked for, or a seed or a truncation out of range.
    """
    if num_images < 1:
        raise UserError(f"The number of images must be at least 1. Received {num_images}.")
    if not -(2**63) <= seed < 2**63:
        raise UserError(f"The seed of samples must be in [-2^63, 2^63). Received {seed}.")
    if truncation is not None and not (truncation > 0 and math.isfinite(truncation)):
        raise UserError(
            f"A truncation is the largest value of a latent, above 0. Received {truncation}. Use 0.5 for typical "
            "images, or 2 for varied ones."
        )
    parts = []
    for block in range(-(-num_images // _ROWS)):
        shape, key = [_ROWS, latent_dim], tf.constant([seed, block], tf.int64)
        drawn = draws.normal(shape, key) if truncation is None else draws.truncated_normal(shape, key, truncation)
        parts.append(drawn.numpy())
    return np.concatenate(parts)[:num_images]
