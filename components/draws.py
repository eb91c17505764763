"""Random numbers made of random bits: pure functions of (shape, key), alike with and without XLA, for every area.

TensorFlow's automatic choice of algorithm differs with and without XLA; Philox gives the same bits on both, but not the
same fractions and normal numbers: those we make of the bits ourselves.
"""

import math
from collections.abc import Sequence

import tensorflow as tf

ALGORITHM = "philox"
_BITS = 23  # one fewer than float32 has, so that the middle of the last step below 1 is not rounded to 1
_STEP = 2.0**-_BITS


def fractions(shape: Sequence[int], key: tf.Tensor) -> tf.Tensor:
    """Return float32[*shape], uniform over the multiples of 2^-23 in [0, 1).

    Args:
      shape: of what is drawn.
      key: int64[2]; the same key gives the same numbers.
    """
    bits = tf.random.stateless_uniform(shape, key, minval=None, maxval=None, dtype=tf.uint32, alg=ALGORITHM)
    return tf.cast(tf.bitwise.right_shift(bits, tf.constant(32 - _BITS, tf.uint32)), tf.float32) * _STEP


def normal(shape: Sequence[int], key: tf.Tensor) -> tf.Tensor:
    """Return float32[*shape], standard normal, between -5.5 and 5.5; see `fractions`."""
    return tf.math.ndtri(fractions(shape, key) + 0.5 * _STEP)


def truncated_normal(shape: Sequence[int], key: tf.Tensor, threshold: float) -> tf.Tensor:
    """Return float32[*shape], standard normal given that none is beyond [-threshold, threshold].

    sqrt(2) erfinv(erf(threshold / sqrt(2)) (2 u - 1)), with the u in (0, 1) that `normal` of the same key takes: each
    number is on the side of 0 on which that of `normal` is, and nearer to 0.

    Args:
      shape: of what is drawn.
      key: int64[2].
      threshold: above 0.

    Reference: Brock et al., 2019, arXiv:1809.11096, section 3.1, where numbers beyond the threshold are drawn again
    until none is. The distribution is the same; deviation: the inverse of its distribution function draws once.
    """
    centred = 2.0 * (fractions(shape, key) + 0.5 * _STEP) - 1.0
    numbers = math.sqrt(2.0) * tf.math.erfinv(math.erf(threshold / math.sqrt(2.0)) * centred)
    return tf.clip_by_value(numbers, -threshold, threshold)  # against rounding
