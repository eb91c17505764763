"""After a numerical fault: where it arose, and back to the last good checkpoint, if that was asked for."""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from components.interfaces import Action, Auditing, UserError
from pipeline import listening
from pipeline.actions import NumericalFault, refuse_lost, refuse_nan
from pipeline.build import Run, build
from pipeline.run_folder import RunFolder
from pipeline.stop import StopSignal
from pipeline.train import train


class Origin(NamedTuple):
    """Where a fault arose: the step that the run would have reached by it, and what in that step."""

    step: int
    where: str  # "": it could not be told


def resumed(run: Run, folder: RunFolder) -> Run:
    """Return the run with the data seed of its last rollback at or before its step, which was restored."""
    seeds = [one["data_seed"] for one in folder.rollbacks() if one["step"] <= run.step]
    return _with_data_seed(run, seeds[-1]) if seeds else run


def train_through(
    run: Run, folder: RunFolder, actions_of: Callable[[Run], Sequence[Action]], stop: StopSignal
) -> tuple[Run, int]:
    """Train, and roll back where numbers are no longer finite and the experiment allows it.

    Args:
      run: restored.
      folder: of the run; tells of the rollbacks so far.
      actions_of: makes the actions of a run that goes on from where it stands.
      stop: as `train` takes it.

    Returns:
      The run as it was trained last, and the step that it reached.

    Raises:
      UserError: a fault, and no rollback is left.
    """
    rollbacks = folder.rollbacks() if run.experiment.max_rollbacks else []
    while True:
        try:
            step = train(run, actions_of(run), stop)
            refuse_lost(run, step)  # a run that was stopped between two looks is saved all the same
            return run, step
        except NumericalFault as fault:
            origin = _located(run, folder, fault)
            said = _said(fault, origin)
            if len(rollbacks) >= run.experiment.max_rollbacks:
                raise UserError(f"{said} {_remedy(run, len(rollbacks))}") from fault
            good = _restore_good(run, folder)
            first = _first_seed(run, rollbacks)
            seed = data_seed(first, len(rollbacks) + 1)
            what = origin.where or ", ".join(fault.names)
            rollback = {"step": good, "data_seed": seed, "first_seed": first, "fault_step": origin.step, "fault": what}
            rollbacks = [*rollbacks, rollback]
            if run.hardware.is_chief:
                folder.record_rollback(rollback)
                left = run.experiment.max_rollbacks - len(rollbacks)
                print(f"{said} Back to step {good}, real images in another order ({left} rollbacks left).", flush=True)
            run.hardware.wait_for_all()
            run = _with_data_seed(run, seed)


def data_seed(seed: int, number: int) -> int:
    """Return the seed of the order of real images after a number of rollbacks: a function of the run's seed and it."""
    digest = hashlib.blake2b(f"{seed}/rollback/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _first_seed(run: Run, rollbacks: Sequence[dict[str, Any]]) -> int:
    return int(rollbacks[0]["first_seed"]) if rollbacks else run.experiment.seed


def _with_data_seed(run: Run, seed: int) -> Run:
    """Return the run with other batches; latents and all else that is drawn keep the run's seed, in the stepper."""
    return dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, seed=seed))


def _said(fault: NumericalFault, origin: Origin) -> str:
    lost = ", ".join(fault.names[:3]) + (f" and {len(fault.names) - 3} more" if len(fault.names) > 3 else "")
    where = origin.where or "the layer could not be told, as it did not recur one step at a time"
    return f"Training needs finite numbers. In step {origin.step} these were not: {lost}. First was, {where}."


def _remedy(run: Run, count: int) -> str:
    tried = f"It was rolled back {count} times, each time with real images in another order. " if count else ""
    more = (
        "raise `Experiment.max_rollbacks`" if count else "bind `Experiment.max_rollbacks` to go on with other batches"
    )
    return (
        f"{tried}The last good checkpoint is kept. Lower the learning rates, choose another loss, or {more}, and go on "
        "from it or start anew."
    )


# --- where it arose --------------------------------------------------------------------------------------------------


def _located(run: Run, folder: RunFolder, fault: NumericalFault) -> Origin:
    """Repeat the steps since the last good checkpoint, which are a function of (seed, step), until the fault recurs."""
    if run.hardware.is_chief:
        print(f"Numbers are not finite at step {fault.step}; looking for the first.", flush=True)
    try:
        return _recurring(run, folder, fault)
    except (tf.errors.OpError, RuntimeError, NotImplementedError, ValueError) as error:
        return Origin(fault.step, f"as far as could be told: {', '.join(fault.names[:3])} ({type(error).__name__})")


def _recurring(run: Run, folder: RunFolder, fault: NumericalFault) -> Origin:
    step, loop = _restore_good(run, folder), run.experiment.steps_per_loop
    batches = run.batches()
    while step < fault.since:
        count = min(loop - step % loop, fault.since - step)
        run.stepper.run(batches, count)
        step += count
    while step < fault.step:
        before = _values(run)
        lost = _lost_in_a_step(run, batches)
        step += 1
        if lost:
            where = ""
            if isinstance(run.stepper, Auditing) and len(tf.config.list_logical_devices("TPU")) == 0:
                _assign(run, before)
                where = run.stepper.inspect(run.batches())
            return Origin(step, where or f"in {', '.join(lost[:3])}")
    return Origin(fault.step, "")


def _lost_in_a_step(run: Run, batches: Any) -> list[str]:
    metrics = run.stepper.run(batches, 1)
    try:
        refuse_nan(run.step, metrics)
        refuse_lost(run, run.step)
    except NumericalFault as fault:
        return fault.names
    return []


# --- the last good state ---------------------------------------------------------------------------------------------


def _restore_good(run: Run, folder: RunFolder) -> int:
    """Restore the newest checkpoint, or the start of a run that has none, and return its step."""
    listening.finish(run.checkpointer)
    run.hardware.wait_for_all()
    step = run.checkpointer.restore_latest()
    if step == 0:  # initial weights are a function of the seed: made anew, they are those that the run began with
        first = dataclasses.replace(run.experiment, seed=_first_seed(run, folder.rollbacks()))
        spec = run.networks.spec
        _assign(run, _values(build(first, hardware=run.hardware, spec=spec, checkpoints=folder.checkpoints)))
    return step


def _variables(run: Run) -> list[Any]:
    return [variable for variables in run.state().values() for variable in variables]


def _values(run: Run) -> list[np.ndarray]:
    return [np.asarray(v.numpy()) for v in _variables(run)]


def _assign(run: Run, values: Sequence[np.ndarray]) -> None:
    with run.hardware.strategy.scope():
        for variable, value in zip(_variables(run), values, strict=True):
            variable.assign(value)
