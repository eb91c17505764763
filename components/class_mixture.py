"""Classes as rows of weights, so that a network can be asked for something between them.

A layer that learns a vector, a gain or a bias for every class takes `rows` times them. Outside of `mixing` that picks
those of the label; inside, it is their mean by the weights of the mixture. So a network whose layers all ask for `rows`
can be interpolated between classes, though its input is a label; one that reads the label itself cannot.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import keras
import tensorflow as tf

_WEIGHTS: ContextVar[tf.Tensor | None] = ContextVar("weights", default=None)


@contextmanager
def mixing(weights: tf.Tensor) -> Iterator[None]:
    """Let networks that are called inside see mixtures of classes instead of their labels.

    Args:
      weights: float32[B, K], the share of each class; each row sums to 1.
    """
    token = _WEIGHTS.set(weights)
    try:
        yield
    finally:
        _WEIGHTS.reset(token)


def is_mixing() -> bool:
    """Say whether classes are being mixed."""
    return _WEIGHTS.get() is not None


def rows(labels: tf.Tensor, num_classes: int, dtype: str | None = None) -> tf.Tensor:
    """Return float[B, K]: the one-hot rows of labels int32[B], or the weights of the mixture being asked for."""
    weights = _WEIGHTS.get()
    if weights is None:
        return keras.ops.one_hot(labels, num_classes, dtype=dtype)
    return keras.ops.cast(weights, dtype or keras.config.floatx())
