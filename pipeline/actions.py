"""What happens beside training: each action is called with every visit to the device and knows when it is due."""

import math
from collections.abc import Callable, Mapping, Sequence

from components.interfaces import Action, Evaluator, Measurement, Preview, UserError, Writer
from pipeline import grid
from pipeline.build import Run
from pipeline.status import StatusLine


def every(steps: int, last: int, action: Action) -> Action:
    """Return `action` for the multiples of `steps` and for step `last` only."""

    def act(step: int, metrics: Mapping[str, float]) -> None:
        if is_due(step, steps, last):
            action(step, metrics)

    return act


def is_due(step: int, steps: int, last: int) -> bool:
    """Say whether `step` is a multiple of `steps`, or the last one."""
    return step % steps == 0 or step == last


def refuse_nan(step: int, metrics: Mapping[str, float]) -> None:
    """Stop the run before weights that are lost are saved over good ones.

    Raises:
      UserError: a metric is NaN or infinite.
    """
    lost = [name for name, value in metrics.items() if not math.isfinite(value)]
    if lost:
        raise UserError(
            f"Training needs finite numbers. At or before step {step} these were not: {', '.join(lost)}. The last good "
            "checkpoint is kept. Lower the learning rates, or choose another loss, and start again from it or anew."
        )


def log(run: Run, writers: Sequence[Writer], status: StatusLine) -> Action:
    """Return the action that shows the status and writes curves, each point a mean over the steps since the last."""
    experiment = run.experiment
    sums: dict[str, tuple[float, int]] = {}
    seen = run.step

    def add(step: int, metrics: Mapping[str, float]) -> None:
        nonlocal seen
        for name, value in metrics.items():
            total, count = sums.get(name, (0.0, 0))
            sums[name] = total + value * (step - seen), count + step - seen
        seen = step
        means = {name: total / count for name, (total, count) in sums.items()}
        status.show(step, means)
        if is_due(step, experiment.log_every, experiment.train_steps):
            status.keep(step, means)
            for writer in writers:
                writer.scalars(step, {**means, "timing/images_per_second": status.images_per_second})
            sums.clear()

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
        values = {f"evaluation/{name}": one.value for name, one in found.items()}
        for listener in listeners:
            listener(step, values)

    return act
