"""Warns where the quality of a run falls, and stops it early where that was asked for."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from absl import logging

from components.interfaces import Positive, Sampler, Share, UserError

_ACCURACY = "discriminator/accuracy"
_CERTAIN = 0.99  # a discriminator that is right so often leaves the generator nothing to learn from
_SEED = 0


class QualityWatch:
    """Follows the mean of the last values of one number; see `interfaces.Watch`.

    The number is a metric by name, such as one of the evaluator's. Where none is named it is the variance of samples,
    over images and averaged over pixels that lie in [0, 1], which falls when a generator collapses; a mean
    discriminator accuracy above 0.99 counts as a fall too. Values come at log points and at evaluations.

    Args:
      sampler: draws the images whose variance is followed; the same latents each time.
      metric: a name; None: sample variance and discriminator accuracy.
      direction: whether a good metric is small ("min") or large ("max"); without a metric, "max".
      window: how many values the mean is over. The first mean is that of so many values.
      fall: in [0, 1); the quality has fallen where the mean is worse than the best one by more than this share of it.
      stop_after: the run ends so many steps after the best mean, or without a metric after the quality fell, if nothing
        better came; None: never. Bind `TFCheckpointer.best_metric` to keep the best checkpoint.
      num_images: how many samples their variance is over.

    Attributes:
      metrics: without which it sees nothing.

    Raises:
      UserError: a direction without a metric, or fewer than 2 images.
    """

    def __init__(
        self,
        sampler: Sampler,
        *,
        metric: str | None = None,
        direction: Literal["min", "max"] = "max",
        window: Positive = 5,
        fall: Share = 0.5,
        stop_after: Positive | None = None,
        num_images: Positive = 64,
    ) -> None:
        """Nothing has been seen."""
        if num_images < 2:
            raise UserError(f"`QualityWatch.num_images` must be at least 2 for a variance. Received {num_images}.")
        if metric is None and direction == "min":
            raise UserError(
                "`QualityWatch.direction` = 'min' tells what is good of a metric. Received it without one; sample "
                "variance is followed, of which more is good. Bind `QualityWatch.metric`, or leave the direction out."
            )
        self.metrics = (metric or _ACCURACY,)
        self._sampler = sampler
        self._metric = metric
        self._sign = 1.0 if direction == "max" else -1.0
        self._window, self._fall, self._stop_after, self._num_images = window, fall, stop_after, num_images
        self._best: float | None = None
        self._best_step: int | None = None
        self._fallen_since: int | None = None
        self.restore({})

    def observe(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take one value, unless `metrics` lack it, and warn in one line where the quality has fallen."""
        if self.metrics[0] not in metrics:
            return
        value = metrics[self.metrics[0]]
        self._values.append(float(value) if self._metric else self._variance())
        self._accuracies.append(float(value))
        self._step = step
        if len(self._values) < self._window:
            return
        mean = self._sign * float(np.mean(self._values))
        if self._best is None or mean > self._best:
            self._best, self._best_step = mean, step
        is_won = self._metric is None and float(np.mean(self._accuracies)) > _CERTAIN
        has_fallen = mean < self._best - self._fall * abs(self._best) or is_won
        if has_fallen and self._fallen_since is None:
            logging.warning("The quality of the run has fallen at step %d: %s.", step, self._told(mean, is_won))
        if not has_fallen:
            self._fallen_since = None
        elif self._fallen_since is None:
            self._fallen_since = step

    def reason_to_stop(self) -> str:
        """Return why the run is over, in a few words; "": it goes on."""
        since = self._best_step if self._metric else self._fallen_since
        if self._stop_after is None or since is None or self._step - since < self._stop_after:
            return ""
        if self._metric:
            return f"the mean of {self._metric} has not improved since step {since}"
        return f"the quality has fallen at step {since} and not recovered"

    def state(self) -> dict[str, Any]:
        """Return what decisions depend on."""
        return {
            "metric": self.metrics[0],
            "values": list(self._values),
            "accuracies": list(self._accuracies),
            "step": self._step,
            "best": self._best,
            "best_step": self._best_step,
            "fallen_since": self._fallen_since,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; begin anew where it is of another metric."""
        if state.get("metric") != self.metrics[0]:
            state = {}
        self._values = deque[float](state.get("values", ()), maxlen=self._window)
        self._accuracies = deque[float](state.get("accuracies", ()), maxlen=self._window)
        self._step = int(state.get("step", 0))
        self._best = state.get("best")
        self._best_step = state.get("best_step")
        self._fallen_since = state.get("fallen_since")

    def _variance(self) -> float:
        """Return the variance over images, averaged over pixels in [0, 1]."""
        images = np.asarray(self._sampler.sample(self._num_images, seed=_SEED)) / 255.0
        return float(np.mean(np.var(images, axis=0)))

    def _told(self, mean: float, is_won: bool) -> str:
        if is_won:
            return f"the discriminator is right in {100 * float(np.mean(self._accuracies)):.1f} % of the cases"
        name = self._metric or "the variance of samples"
        best = self._sign * (self._best or 0.0)
        return f"the mean of {name} is {self._sign * mean:.4g}, after {best:.4g} at step {self._best_step}"
