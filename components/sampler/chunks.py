"""Any number of images by a function that makes a fixed number."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from components.interfaces import UserError


def in_chunks(
    images_of: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], labels: np.ndarray, seed: int, chunk_size: int
) -> np.ndarray:
    """Return uint8[N, H, W, C], image i from (seed, i, labels[i], chunk_size) alone.

    Args:
      images_of: (key int64[2], labels int32[chunk_size]) -> uint8[chunk_size, H, W, C].
      labels: N classes.
      seed: of the keys, in [-2^63, 2^63).
      chunk_size: images made at once; a larger request begins with the images of a smaller one.

    Raises:
      UserError: no image is asked for, or the seed is out of range.
    """
    count = len(labels)
    if not -(2**63) <= seed < 2**63:
        raise UserError(f"The seed of samples must be in [-2^63, 2^63). Received {seed}.")
    chunks = [
        images_of(tf.constant([seed, chunk], tf.int64), rows).numpy()
        for chunk, rows in enumerate(cut(labels.astype(np.int32), chunk_size))
    ]
    return np.concatenate(chunks)[:count]


def cut(rows: np.ndarray, chunk_size: int) -> np.ndarray:
    """Return [chunks, chunk_size, ...], the same type, from [N, ...]; what is missing from the last chunk is 0.

    Raises:
      UserError: N is 0.
    """
    count = len(rows)
    if count < 1:
        raise UserError(f"The number of images must be at least 1. Received {count}.")
    padded = np.zeros((-(-count // chunk_size) * chunk_size, *rows.shape[1:]), rows.dtype)
    padded[:count] = rows
    return padded.reshape(-1, chunk_size, *rows.shape[1:])
