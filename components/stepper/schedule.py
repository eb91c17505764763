"""Which moves a step makes, and which of them are one call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from components.interfaces import Update


@dataclass(frozen=True)
class Call:
    """Moves that are traced as one function.

    Attributes:
      updates: the indices of those made, in order, each once.
      first: the first of the step's batches that they take.
      batches: how many; an update takes as many of them, from the first on, as it accumulates.
    """

    updates: tuple[int, ...]
    first: int
    batches: int


class Schedule:
    """The moves of every step of a list of updates.

    Args:
      updates: of a step, in order.

    Attributes:
      batches_per_step: those that the update with the most of them takes.
    """

    def __init__(self, updates: Sequence[Update]) -> None:
        """Count the batches of a step."""
        self._updates = updates
        self.batches_per_step = max(update.repeats * update.accumulate for update in updates)

    def due(self, step: int) -> tuple[bool, ...]:
        """Say which updates are made in a step."""
        return tuple(step % update.every == 0 for update in self._updates)

    def moves(self, due: Sequence[bool] | None = None) -> Iterator[Call]:
        """Yield each move of a step by itself; None: of one in which every update is due."""
        for index, update in enumerate(self._updates):
            for number in range(update.repeats if due is None or due[index] else 0):
                yield Call((index,), number * update.accumulate, update.accumulate)

    def calls(self, due: Sequence[bool] | None = None) -> Iterator[Call]:
        """Yield the moves of a step, those in one call that follow each other and are made once in every step.

        What one move does not need of another is then computed beside it. A repeated move is a call of its own, traced
        once for all repeats, and so is one that is not always due, for it must be left out by the host.
        """
        for own, moves in groupby(self.moves(), lambda move: None if self._is_always_once(move) else move):
            together = list(moves)
            if own is None:
                yield Call(tuple(move.updates[0] for move in together), 0, max(move.batches for move in together))
            elif due is None or due[own.updates[0]]:
                yield own

    def _is_always_once(self, move: Call) -> bool:
        update = self._updates[move.updates[0]]
        return update.repeats == update.every == 1
