"""Losses and penalties that compute nothing."""

from collections.abc import Callable
from typing import Annotated

import tensorflow as tf
from annotated_types import Ge

from components.interfaces import PlayerLosses


def hinge(real_logits: tf.Tensor, fake_logits: tf.Tensor, *, margin: float = 1.0) -> PlayerLosses:
    raise NotImplementedError


def non_saturating(
    real_logits: tf.Tensor, fake_logits: tf.Tensor, *, smoothing: Annotated[float, Ge(0)] = 0.0
) -> PlayerLosses:
    raise NotImplementedError


def gradient_penalty(
    critic: Callable[[tf.Tensor], tf.Tensor], real: tf.Tensor, fake: tf.Tensor, *, seed: int
) -> tf.Tensor:
    raise NotImplementedError
