"""Whether the generator's part of an adversarial loss depends on what the discriminator says of real images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import tensorflow as tf

from components.dependence import depends
from components.interfaces import Moment, happening_at
from components.outside import outside


def depends_on_first(function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], size: int) -> bool:
    """Say whether a function of two float32[size] uses the value of the first.

    Its graph tells: a gradient would not, as none passes through a `stop_gradient` or a comparison. What is remembered
    counts as a use.
    """

    def ask(first: tf.Tensor, second: tf.Tensor) -> list[tf.Tensor]:
        memory = _Memory()
        with happening_at(Moment(_Random(size), memory)):
            return [function(first, second), *memory.told]

    inputs = [tf.TensorSpec([size]), tf.TensorSpec([size])]
    return outside(lambda: depends(ask, inputs, 0))  # neither the step's graph nor its tapes see it


@dataclass(frozen=True)
class _Random:
    """Stands for the draws of a move: only what leads where is asked."""

    size: int

    @property
    def shared(self) -> "_Random":
        return self

    @property
    def step(self) -> tf.Tensor:
        return tf.zeros([], tf.int64)

    def normal(self, purpose: str, shape: Sequence[int] = ()) -> tf.Tensor:
        return tf.zeros([self.size, *shape])

    def uniform(self, purpose: str, shape: Sequence[int] = ()) -> tf.Tensor:
        return tf.zeros([self.size, *shape])

    def integers(self, purpose: str, upper: int, shape: Sequence[int] = ()) -> tf.Tensor:
        return tf.zeros([self.size, *shape], tf.int32)

    def occasion(self, purpose: str) -> str:
        return purpose


@dataclass(frozen=True)
class _Memory:
    """Stands for the memory of a move, and notes what it is told."""

    told: list[tf.Tensor] = field(default_factory=list)

    def average(self, name: str, values: tf.Tensor, *, decay: float | tf.Tensor) -> tf.Tensor:
        self.told.append(values)
        return tf.zeros([])
