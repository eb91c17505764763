"""Who hears of metrics beside the curves: the best checkpoint, and the watch over the quality of a run."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from components.interfaces import Action, Auditing, Checkpointer, Curating, Stepper, UserError, Watch
from pipeline.configs.faults import did_you_mean
from pipeline.stop import StopSignal


class Means:
    """The means of metrics over the steps since the last log point; saved with the run, so that a resume goes on."""

    def __init__(self) -> None:
        """Nothing has come."""
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, metrics: Mapping[str, float], steps: int) -> dict[str, float]:
        """Take the means over `steps` more steps; return those since the last log point."""
        for name, value in metrics.items():
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = total + value * steps, count + steps
        return {name: total / count for name, (total, count) in self._sums.items()}

    def clear(self) -> None:
        """Begin the next point."""
        self._sums.clear()

    def state(self) -> dict[str, Any]:
        """Return what `restore` takes."""
        return {name: list(pair) for name, pair in self._sums.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._sums = {name: (float(total), int(count)) for name, (total, count) in state.items()}


def prepare(checkpointer: Checkpointer, means: Means, watch: Watch | None) -> None:
    """Let checkpoints hold what listeners remember; call it before anything is restored."""
    if isinstance(checkpointer, Curating):
        checkpointer.remember("means", means)
        if watch:
            checkpointer.remember("watch", watch)


def require_known(
    stepper: Stepper, checkpointer: Checkpointer, watch: Watch | None, announced: Collection[str] = ()
) -> None:
    """Refuse a metric that is waited for and never comes.

    Args:
      stepper: rehearsed.
      checkpointer: may know the best checkpoint by a metric.
      watch: may follow one.
      announced: the names of metrics that others than the stepper give, such as an evaluator.

    Raises:
      UserError: the name of a metric that nothing produces.
    """
    if not isinstance(stepper, Auditing):
        return
    known = {*stepper.metrics, *announced}
    awaited: list[tuple[str, object, Sequence[str]]] = []
    if isinstance(checkpointer, Curating):
        awaited.append(("best_metric", checkpointer, checkpointer.metrics))
    if watch:
        awaited.append(("metric", watch, watch.metrics))
    for parameter, part, names in awaited:
        for name in names:
            if name not in known:
                raise UserError(
                    f"`{type(part).__name__}.{parameter}` must be a metric of this run. Received {name!r}. "
                    f"{did_you_mean(name, known, is_short_listed=False)} There are: {', '.join(sorted(known))}."
                )


def listeners(checkpointer: Checkpointer, watch: Watch | None, stop: StopSignal) -> list[Action]:
    """Return what hears of all metrics, those of training and of evaluations, before the step is saved."""
    heard: list[Action] = []
    if isinstance(checkpointer, Curating) and checkpointer.metrics:
        heard.append(checkpointer.observe)
    if watch:

        def follow(step: int, metrics: Mapping[str, float]) -> None:
            watch.observe(step, metrics)
            if watch.reason_to_stop():
                stop.enough()

        heard.append(follow)
    return heard


def ending(checkpointer: Checkpointer, watch: Watch | None) -> str:
    """Return why a run is over before its last step and which checkpoint is the best; "": it is not over."""
    reason = watch.reason_to_stop() if watch else ""
    return f"{reason}{_best(checkpointer)}" if reason else ""


def finish(checkpointer: Checkpointer) -> None:
    """Return when nothing is being written any more; raises UserError where something could not be."""
    if isinstance(checkpointer, Curating):
        checkpointer.finish()


def _best(checkpointer: Checkpointer) -> str:
    best = checkpointer.best if isinstance(checkpointer, Curating) else None
    return f"; the best checkpoint is of step {best.step}, {best.metric} = {best.value:.6g}" if best else ""
