"""What belongs to one move of one update: its random draws and what it remembers; part of the interfaces.

Layers that draw in training and losses that remember find theirs here, as they get no argument for it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

import tensorflow as tf


class Random(Protocol):
    """Stateless draws of one update, keyed by (run seed, update, purpose, step, repeat).

    A draw is made for the whole global batch and a replica takes its own rows, so the numbers depend neither on how
    many replicas there are nor on what was drawn before. The same purpose gives the same numbers.
    """

    @property
    def shared(self) -> "Random":
        """Draws that all updates of a step have in common."""
        ...

    def normal(self, purpose: str, shape: Sequence[int] = ()) -> tf.Tensor:
        """Return float32[B, *shape], standard normal."""
        ...

    def uniform(self, purpose: str, shape: Sequence[int] = ()) -> tf.Tensor:
        """Return float32[B, *shape], uniform in [0, 1)."""
        ...

    def integers(self, purpose: str, upper: int, shape: Sequence[int] = ()) -> tf.Tensor:
        """Return int32[B, *shape], uniform in [0, upper)."""
        ...

    def occasion(self, purpose: str) -> str:
        """Return `purpose/n` with n counting the calls, for draws that must differ from one call to the next."""
        ...

    @property
    def step(self) -> tf.Tensor:
        """The step being run, int64[], for what changes in the course of training."""
        ...


class Memory(Protocol):
    """Numbers that an update keeps from one step to the next; they are saved with the run."""

    def average(self, name: str, values: tf.Tensor, *, decay: float | tf.Tensor) -> tf.Tensor:
        """Return the moving average float32[] as it stood before this move; it starts at 0 and has no gradient.

        Afterwards it is decay * average + (1 - decay) * the mean of `values` float32[B] over the global batch.
        """
        ...


class Moment(NamedTuple):
    """What belongs to one move of one update."""

    random: Random
    memory: Memory


_MOMENT: ContextVar[Moment | None] = ContextVar("moment", default=None)


@contextmanager
def happening_at(moment: Moment) -> Iterator[None]:
    """Let layers that draw in training (dropout) and losses that remember find theirs: they get no argument for it."""
    token = _MOMENT.set(moment)
    try:
        yield
    finally:
        _MOMENT.reset(token)


def current_random() -> Random:
    """Return the `Random` of the update being computed; raises RuntimeError outside of one."""
    return _current("A layer draws random numbers only inside an update. Call the network with training=False.").random


def current_memory() -> Memory:
    """Return the `Memory` of the update being computed; raises RuntimeError outside of one."""
    return _current("A loss remembers only inside an update.").memory


def _current(rule: str) -> Moment:
    moment = _MOMENT.get()
    if moment is None:
        raise RuntimeError(rule)
    return moment
