"""Any number of rows by a function that takes a fixed number."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from components.interfaces import UserError


def in_chunks(function: Callable[..., tf.Tensor], *inputs: np.ndarray, chunk_size: int) -> np.ndarray:
    """Return [N, ...]: what a function of chunk_size rows makes of N.

    Args:
      function: [chunk_size, ...] of each input -> [chunk_size, ...], a row from that row alone.
      inputs: each [N, ...].
      chunk_size: rows given at once.

    Raises:
      UserError: N is 0.
    """
    chunks = zip(*(cut(rows, chunk_size) for rows in inputs), strict=True)
    return np.concatenate([function(*map(tf.constant, chunk)).numpy() for chunk in chunks])[: len(inputs[0])]


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
