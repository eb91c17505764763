"""Whether the generator's part of an adversarial loss depends on what the discriminator says of real images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import tensorflow as tf

from components.interfaces import Moment, happening_at
from components.outside import outside


def depends_on_first(function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], size: int) -> bool:
    """Say whether a function of two float32[size] uses the value of the first.

    Its graph tells: a gradient would not, as none passes through a `stop_gradient` or a comparison. What is done inside
    a function that is called in the graph counts as a use, and so does a value that is remembered.
    """

    def ask() -> bool:
        with tf.Graph().as_default():
            first, second = (tf.compat.v1.placeholder(tf.float32, [size]) for _ in range(2))
            memory = _Memory()
            with happening_at(Moment(_Random(size), memory)):
                value = tf.convert_to_tensor(function(first, second))
            return _leads_to(first.op, [value.op, *(one.op for one in memory.told)])

    return outside(ask)  # a graph of its own, which neither the step's graph nor its tapes see


def _leads_to(source: tf.Operation, ends: Sequence[tf.Operation]) -> bool:
    waiting, seen = list(ends), set()
    while waiting:
        operation = waiting.pop()
        if operation is source:
            return True
        if operation.name not in seen:
            seen.add(operation.name)
            waiting += [*(one.op for one in operation.inputs), *operation.control_inputs]
    return False


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
