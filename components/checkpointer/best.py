"""Which checkpoint of a run is the best by one metric."""

import math
from collections.abc import Collection, Mapping
from typing import Any, Literal

from components.interfaces import BestCheckpoint, UserError


class Best:
    """The best value of a metric so far, and the step that it is of.

    Args:
      metric: its name; None: nothing is followed.
      direction: "min": the smallest is the best; "max": the largest.

    Attributes:
      found: the best so far; None: no value has come yet.

    Raises:
      UserError: another direction.
    """

    def __init__(self, metric: str | None, direction: Literal["min", "max"]) -> None:
        """Nothing has been found."""
        if direction not in ("min", "max"):
            raise UserError(f"`TFCheckpointer.best_direction` must be 'min' or 'max'. Received {direction!r}.")
        self.metric = metric
        self._direction = direction
        self.found: BestCheckpoint | None = None

    def take(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Say whether the metric is among `metrics` and better than ever; it is then the best, and of `step`."""
        value = metrics.get(self.metric) if self.metric is not None else None
        if self.metric is None or value is None or not math.isfinite(value):
            return False
        sign = 1 if self._direction == "min" else -1
        if self.found is not None and sign * value >= sign * self.found.value:
            return False
        self.found = BestCheckpoint(step, self.metric, float(value))
        return True

    def state(self) -> dict[str, Any] | None:
        """Return what `restore` takes, as JSON can say it."""
        return None if self.found is None else {**self.found._asdict(), "direction": self._direction}

    def restore(self, state: Mapping[str, Any] | None, steps: Collection[int]) -> str:
        """Go on from a state.

        Args:
          state: as `state` gave it, in this run or before.
          steps: of the checkpoints there are.

        Returns:
          Why the best is found anew, in a few words; "": it is not.
        """
        self.found = None
        if state is None or self.metric is None:
            return ""
        if (state["metric"], state["direction"]) != (self.metric, self._direction):
            return f"it was the {state['direction']} of {state['metric']}"
        if state["step"] not in steps:
            return f"the checkpoint of step {state['step']} is gone"
        self.found = BestCheckpoint(int(state["step"]), self.metric, float(state["value"]))
        return ""
