"""Random numbers made of random bits: pure functions of (shape, key), alike with and without XLA, for every area.

TensorFlow's automatic choice of algorithm differs with and without XLA; Philox gives the same bits on both, but not the
same fractions and normal numbers: those we make of the bits ourselves.
"""

import math
from collections.abc import Sequence

import tensorflow as tf

VERSION = 2  # goes up when a seed gives other numbers than before
_PHILOX = 1  # as TensorFlow's kernels number their algorithms
_BITS = 23  # one fewer than float32 has, so that the middle of the last step below 1 is not rounded to 1
_STEP = 2.0**-_BITS


def bits(shape: Sequence[int], key: tf.Tensor) -> tf.Tensor:
    """Return uint32[*shape], every bit drawn; see `fractions`.

    The first half of the key is Philox's key, the second the upper half of its counter: two draws have no block in
    common. TensorFlow's own way from seed to key draws a key of them first, in some twenty operations.

    Reference: Salmon et al., 2011, doi:10.1145/2063384.2063405, section 2.3 (streams by key and by counter).
    """
    return tf.raw_ops.StatelessRandomUniformFullIntV2(shape=shape, alg=_PHILOX, dtype=tf.uint32, **_begin(key))


def integers(shape: Sequence[int], key: tf.Tensor, upper: int) -> tf.Tensor:
    """Return int32[*shape], uniform in [0, upper); see `fractions`."""
    return tf.raw_ops.StatelessRandomUniformIntV2(shape=shape, alg=_PHILOX, minval=0, maxval=upper, **_begin(key))


def _begin(key: tf.Tensor) -> dict[str, tf.Tensor]:
    who, when = tf.unstack(key)
    return {"key": tf.bitcast(tf.stack([who]), tf.uint64), "counter": tf.bitcast(tf.stack([0, when]), tf.uint64)}


def fractions(shape: Sequence[int], key: tf.Tensor) -> tf.Tensor:
    """Return float32[*shape], uniform over the multiples of 2^-23 in [0, 1).

    Args:
      shape: of what is drawn.
      key: int64[2]; the same key gives the same numbers.
    """
    drawn = bits(shape, key)
    return tf.cast(tf.bitwise.right_shift(drawn, tf.constant(32 - _BITS, tf.uint32)), tf.float32) * _STEP


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
