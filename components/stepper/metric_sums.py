"""The metrics of an update, summed on the device over replicas and steps."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from components.stepper.audit import replica_sums

_ROOM = 32  # metrics; more make the update be traced once again


class MetricSums:
    """The sums of one update's metrics since they were last read.

    Its first trace says which there are. Made, and given room, inside strategy.scope().

    Attributes:
      names: of the metrics, in order; empty before the first trace.
    """

    def __init__(self) -> None:
        """Start from 0."""
        self.names: list[str] = []
        self._sums = replica_sums(_ROOM)

    @property
    def lacks_room(self) -> bool:
        """Whether the last trace had more metrics than can be held; what it traced adds nothing."""
        return len(self.names) > self._sums.shape[0]

    def make_room(self) -> None:
        """Hold as many as the last trace had."""
        if self.lacks_room:
            self._sums = replica_sums(len(self.names))

    def add(self, metrics: Mapping[str, tf.Tensor]) -> None:
        """Add this replica's share {name: float32[]} of one move."""
        self.names = list(metrics)
        if not self.lacks_room:
            more = self._sums.shape[0] - len(metrics)
            self._sums.assign_add(tf.pad(tf.stack(list(metrics.values())), [[0, more]]))

    def take(self, moves: int) -> dict[str, float]:
        """Return {name: mean over so many moves} and start again from 0; the device is read once."""
        sums = self._sums.numpy()
        self._sums.assign(tf.zeros_like(self._sums))
        return dict(zip(self.names, (sums / np.float32(moves)).tolist(), strict=False)) if moves else {}
