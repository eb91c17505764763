"""What happens beside training: each action is called with every visit to the device and knows when it is due."""

import math
from collections.abc import Callable, Mapping, Sequence

from components.interfaces import Action, Auditing, Curating, Evaluator, Measurement, Preview, UserError, Writer
from pipeline import grid
from pipeline.build import Run
from pipeline.listening import Means
from pipeline.status import StatusLine

EVALUATION = "evaluation"  # before the name of a metric that an evaluator gives
_SHOWN = 4  # names in one message


def every(steps: int, last: int, action: Action) -> Action:
    """Return `action` for the multiples of `steps` and for step `last` only."""

    def act(step: int, metrics: Mapping[str, float]) -> None:
        if is_due(step, steps, last):
            action(step, metrics)

    return act


def is_due(step: int, steps: int, last: int) -> bool:
    """Say whether `step` is a multiple of `steps`, or the last one."""
    return step % steps == 0 or step == last


class NumericalFault(UserError):
    """Numbers of a run are no longer finite.

    Attributes:
      names: of metrics, or of variables where all metrics are finite.
      since: the step after which this happened.
      step: the step at which it was noticed.
    """

    def __init__(self, names: Sequence[str], since: int, step: int) -> None:
        """Tell what, and about when."""
        self.names, self.since, self.step = list(names), since, step
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        super().__init__(
            f"Training needs finite numbers. At or before step {step} these were not: {', '.join(names[:_SHOWN])}"
            f"{more}. The last good checkpoint is kept. Lower the learning rates, or choose another loss, and start "
            "again from it or anew."
        )


def refuse_nan(step: int, metrics: Mapping[str, float], since: int = 0) -> None:
    """Stop the run before weights that are lost are saved over good ones.

    Raises:
      NumericalFault: a metric is NaN or infinite.
    """
    lost = [name for name, value in metrics.items() if not math.isfinite(value)]
    if lost:
        raise NumericalFault(lost, since, step)


def refuse_lost(run: Run, step: int, since: int = 0) -> None:
    """Stop the run where a number that a checkpoint would hold is not finite.

    Raises:
      NumericalFault: weights, an optimizer's averages or the like hold NaN or infinity.
    """
    if isinstance(run.stepper, Auditing) and (lost := run.stepper.lost()):
        raise NumericalFault(lost, since, step)


def require_finite(run: Run) -> Action:
    """Return the action that refuses numbers that are not finite: of metrics always, of all that a run holds when due.

    That is before any of it is logged, saved, sampled or evaluated.
    """
    seen, experiment = run.step, run.experiment
    periods = [experiment.log_every, experiment.save_every, experiment.sample_every, experiment.evaluate_every]

    def act(step: int, metrics: Mapping[str, float]) -> None:
        nonlocal seen
        refuse_nan(step, metrics, seen)
        if not any(is_due(step, period, experiment.train_steps) for period in periods if period):
            return
        refuse_lost(run, step, seen)
        seen = step

    return act


def log(
    run: Run,
    writers: Sequence[Writer],
    status: StatusLine,
    means: Means | None = None,
    listeners: Sequence[Action] = (),
) -> Action:
    """Return the action that shows the status, writes curves and tells listeners.

    Each point is a mean over the steps since the last, of which `means` holds what came before this start.
    """
    experiment = run.experiment
    means = means or Means()
    seen = run.step

    def add(step: int, metrics: Mapping[str, float]) -> None:
        nonlocal seen
        point = means.add(metrics, step - seen)
        seen = step
        status.show(step, point)
        if is_due(step, experiment.log_every, experiment.train_steps):
            status.keep(step, point)
            means.clear()
            for writer in writers:
                writer.scalars(step, {**point, "timing/images_per_second": status.images_per_second})
            for listen in listeners:
                listen(step, point)

    return add


def draw(previews: Mapping[str, Preview], writers: Sequence[Writer]) -> Action:
    """Return the action that draws every preview and gives the picture to every writer."""

    def act(step: int, metrics: Mapping[str, float]) -> None:
        for name, preview in previews.items():
            images, columns = preview()
            picture = grid.tile(images, columns)
            for writer in writers:
                writer.images(step, name, picture)

    return act


def save(run: Run) -> Action:
    """Return the action that saves a checkpoint."""
    return lambda step, metrics: run.checkpointer.save(step)


def evaluate(
    evaluator: Evaluator,
    listeners: Sequence[Action],
    keep: Callable[[int, Mapping[str, Measurement]], None] = lambda step, found: None,
) -> Action:
    """Return the action that scores the networks and tells listeners (step, {"evaluation/METRIC": value}).

    Args:
      evaluator: scores them as they stand.
      listeners: told in order.
      keep: told first, certificates and all.
    """

    def act(step: int, metrics: Mapping[str, float]) -> None:
        found = evaluator.evaluate(step)
        keep(step, found)
        values = {f"{EVALUATION}/{name}": one.value for name, one in found.items()}
        for listener in listeners:
            listener(step, values)

    return act


def save_best(run: Run) -> Action:
    """Return the action that saves a step which is better than all before."""

    def act(step: int, metrics: Mapping[str, float]) -> None:
        best = run.checkpointer.best if isinstance(run.checkpointer, Curating) else None
        if best is not None and best.step == step:
            run.checkpointer.save(step)

    return act
