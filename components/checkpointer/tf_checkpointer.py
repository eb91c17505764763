"""Checkpoints in TensorFlow's format, one folder each, visible only when whole."""

import functools
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import tensorflow as tf
from absl import logging

from components.checkpointer import checksums, matching, notes, retention
from components.checkpointer.background import Background, Snapshot
from components.checkpointer.best import Best
from components.errors import storage_fault
from components.interfaces import BestCheckpoint, Positive, Remembering, UserError

_PREFIX = "variables"
_UNFINISHED = ("writing-*", "dropping-*")  # what a kill may leave behind
# What reading a truncated, bit-flipped or half-deleted checkpoint raises, where no checksums tell of it before.
_DAMAGE = (tf.errors.OpError, IndexError)


class DamageError(Exception):
    """A checkpoint is not what was written; the message says in a few words why."""


class TFCheckpointer:
    """Keeps the newest checkpoints of a run, and some for ever; see `interfaces.Checkpointer`.

    A checkpoint is written beside its place, sealed with checksums of its files and moved there by one rename, so a
    kill at any moment leaves whole ones only, and what is damaged later is noticed. TensorFlow's own index file,
    "checkpoint", is not used: where it is damaged, a run would start from 0 in silence.

    Args:
      directory: made at the first save.
      state: {name: variables}; a restore must match each of them, and nothing in the file may be left over.
      keep: how many of the newest to keep, at least 1.
      keep_every_steps: of each so many steps, from the first multiple on, the first checkpoint is kept for ever: that
        of the multiple itself where it is saved. None: only the newest are kept.
      best_metric: a metric, such as "generator/loss" or one of the evaluator's; a step with a value better than ever
        is saved at once, and kept until there is a better one. Values come at log points (means over the steps
        since the last) and at evaluations. None: no checkpoint is the best.
      best_direction: whether the smallest or the largest value is the best.
      asynchronous: whether a checkpoint is written while training goes on, from a copy of all variables on the host;
        one at a time. What goes wrong shows at the next save, or at the end. A kill loses what is being written.

    Attributes:
      metrics: the metric named, if one is.

    Raises:
      UserError: `keep` or `keep_every_steps` is below 1, or `best_direction` is another word.
    """

    def __init__(
        self,
        directory: str,
        state: Mapping[str, Sequence[tf.Variable]],
        *,
        keep: Positive = 3,
        keep_every_steps: Positive | None = None,
        best_metric: str | None = None,
        best_direction: Literal["min", "max"] = "min",
        asynchronous: bool = False,
    ) -> None:
        """Bind the variables; nothing is written."""
        for name, value in (("keep", keep), ("keep_every_steps", keep_every_steps)):
            if value is not None and value < 1:
                raise UserError(f"`TFCheckpointer.{name}` must be at least 1. Received {value}.")
        self._directory = Path(directory)
        self._keep = keep
        self._keep_every_steps = keep_every_steps
        self._damaged: set[int] = set()  # steps that were passed over, until a save sets them aside
        self._is_in_use = False  # from the first restore or save on the directory is expected to stay
        self._state = {name: list(variables) for name, variables in state.items()}
        self._checkpoint = tf.train.Checkpoint(state=self._state)
        self._best = Best(best_metric, best_direction)
        self.metrics = () if best_metric is None else (best_metric,)
        self._remembered: dict[str, Remembering] = {}
        self._background = Background() if asynchronous else None
        self._snapshot: Snapshot | None = None

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints there are, oldest first."""
        found = (re.fullmatch(r"step-(\d+)", path.name) for path in self._directory.glob("step-*"))
        return sorted(int(match[1]) for match in found if match)

    @property
    def best(self) -> BestCheckpoint | None:
        """The best checkpoint so far; None: no value of the metric has come, or none was named."""
        return self._best.found

    def observe(self, step: int, metrics: Mapping[str, float]) -> None:
        """Note whether `metrics` make `step`, which is saved next, the best; others than that named are passed over."""
        self._best.take(step, metrics)

    def remember(self, name: str, part: Remembering) -> None:
        """Save and restore the numbers of `part` with every checkpoint from now on."""
        self._remembered[name] = part

    def finish(self) -> None:
        """Return when nothing is being written any more; raises UserError where what was could not be."""
        if self._background:
            self._background.finish()

    # --- restoring ---------------------------------------------------------------------------------------------------

    def restore_latest(self) -> int:
        """Restore the newest whole checkpoint and return its step; 0 where there is none yet.

        Damaged ones that were passed over are told of in one line of the log.

        Raises:
          UserError: there are checkpoints and none is whole, or they hold other variables.
        """
        self.finish()
        damage: dict[int, str] = {}
        while left := [step for step in self.steps() if step not in damage]:
            try:
                self._read(left[-1])
            except DamageError as error:
                if self._path(left[-1]).is_dir():  # else a training that goes on has dropped it in the meantime
                    damage[left[-1]] = str(error)
                continue
            if damage:
                logging.warning("Damaged checkpoints: %s. That of step %d is used.", _told(damage), left[-1])
            self._damaged |= damage.keys()
            return left[-1]
        if damage:
            raise UserError(
                f"A run goes on from a whole checkpoint. All of {self._directory} are damaged: {_told(damage)}. "
                "Restore the folder from a copy, or start anew with --overwrite."
            )
        return 0

    def restore(self, step: int) -> None:
        """Restore the checkpoint of one step.

        Raises:
          UserError: there is none of that step, it is damaged, or it holds other variables.
        """
        self.finish()
        known = ", ".join(map(str, self.steps())) or "none"
        if not self._path(step).is_dir():
            raise UserError(f"There is no checkpoint of step {step} in {self._directory}. There are: {known}.")
        try:
            self._read(step)
        except DamageError as error:
            raise UserError(f"{self._path(step)} is damaged: {error}. Use another step; there are: {known}.") from error

    def restore_best(self) -> int:
        """Restore the best checkpoint, as the newest whole one tells, and return its step.

        Raises:
          UserError: none is known, or what holds it is damaged.
        """
        for step in reversed(self.steps()):
            if checksums.fault(self._path(step), step) is None:
                record = notes.read(self._path(step))["best"]
                break
        else:
            record = None
        if record is None:
            raise UserError(
                f"A run knows its best checkpoint by a metric. That of {self._directory} has named none, or has saved "
                "no value of it yet. Bind `TFCheckpointer.best_metric`, or take a step: "
                f"{', '.join(map(str, self.steps())) or 'there is none'}."
            )
        self.restore(record["step"])
        return int(record["step"])

    def _read(self, step: int) -> None:
        """Restore a step after all checks, so that a refusal leaves every variable as it was.

        Raises:
          DamageError: its files are not those that were written.
          UserError: it holds other variables.
        """
        path = self._path(step)
        is_sealed = checksums.is_sealed(path)
        if is_sealed and (fault := checksums.fault(path, step)):
            raise DamageError(fault)
        notes.read(path)  # a later version's is refused first
        try:
            self._require_match(path)
            self._checkpoint.read(str(path / _PREFIX)).assert_consumed()
        except _DAMAGE as error:
            if is_sealed and path.is_dir():  # the files are right: it is something else, such as a lack of memory
                raise
            raise DamageError(str(error).splitlines()[0]) from error
        self._is_in_use = True
        self._take_up(notes.read(path))

    def _take_up(self, found: Mapping[str, Any]) -> None:
        """Go on from the notes of the checkpoint just restored."""
        if reason := self._best.restore(found["best"], self.steps()):
            logging.warning("Which checkpoint is the best is found anew: %s.", reason)
        for name, part in self._remembered.items():
            part.restore(found["remembered"].get(name, {}))

    def _require_match(self, path: Path) -> None:
        if mismatch := matching.mismatch(str(path / _PREFIX), self._state):
            raise UserError(
                f"A checkpoint must hold exactly the variables of the run. {path} does not fit; {mismatch}. "
                "Use the config that the run was started with."
            )

    # --- saving ------------------------------------------------------------------------------------------------------

    def save(self, step: int) -> None:
        """Save all state as that of `step`; drop old ones beyond what is kept, set aside damaged ones passed over.

        Raises:
          UserError: there is no room, or the folder cannot be written or is gone; older checkpoints stay as they are.
        """
        self.finish()
        if self._path(step).is_dir() and step not in self._damaged:
            return
        remembered = {name: part.state() for name, part in self._remembered.items()}
        best = self.best.step if self.best else None
        told = functools.partial(notes.write, best=self._best.state(), remembered=remembered)
        if not self._background:
            self._write(step, self._checkpoint, told, best)
            return
        self._snapshot = self._snapshot or Snapshot(self._state)
        self._snapshot.take()
        self._background.start(functools.partial(self._write, step, self._snapshot.checkpoint, told, best))

    def _write(
        self, step: int, checkpoint: tf.train.Checkpoint, note: Callable[[Path], None], best: int | None
    ) -> None:
        whole, growing = self._path(step), self._directory / f"writing-{step}"
        try:
            self._require_directory()
            self._remove_unfinished()
            growing.mkdir()
            checkpoint.write(str(growing / _PREFIX))
            note(growing)
            checksums.seal(growing, step)
            self._set_damaged_aside()
            growing.rename(whole)
            checksums.flush(self._directory)
            self._drop_old(best)
        except (OSError, tf.errors.OpError) as error:
            shutil.rmtree(growing, ignore_errors=True)  # gives its room back
            reason = storage_fault(error)
            if reason is None:
                raise
            raise self._unwritable(step, reason) from error

    def _require_directory(self) -> None:
        """Make the directory before the first save; one that vanishes later is not made anew, without its run."""
        if not self._is_in_use:
            self._directory.mkdir(parents=True, exist_ok=True)
        self._is_in_use = True

    def _unwritable(self, step: int, reason: str) -> UserError:
        steps = self.steps()
        kept = f"The newest whole one is of step {steps[-1]}" if steps else "There is none yet"
        return UserError(
            f"A checkpoint needs room in a folder that can be written. That of step {step} was not saved in "
            f"{self._directory}: {reason}. {kept}. Make room, or put the folder back; the same command goes on from "
            "there."
        )

    def _set_damaged_aside(self) -> None:
        """Rename what was passed over, which else counts among the newest and stands in the way of its own step."""
        for step in sorted(self._damaged):
            aside = self._directory / f"damaged-{step}"
            shutil.rmtree(aside, ignore_errors=True)
            if self._path(step).is_dir():
                self._path(step).rename(aside)
            self._damaged.remove(step)

    def _drop_old(self, best: int | None) -> None:
        """Delete what is not kept, each by a rename first: a kill would else leave half of one among the whole ones."""
        steps = self.steps()
        kept = retention.kept(steps, newest=self._keep, every=self._keep_every_steps, best=best)
        for step in steps:
            if step not in kept:
                dropping = self._directory / f"dropping-{step}"
                self._path(step).rename(dropping)
                shutil.rmtree(dropping)

    def _remove_unfinished(self) -> None:
        for pattern in _UNFINISHED:
            for path in self._directory.glob(pattern):
                shutil.rmtree(path)

    def _path(self, step: int) -> Path:
        return self._directory / f"step-{step:09d}"


def _told(damage: Mapping[int, str]) -> str:
    """Return "steps 1, 2 (why the newest of them is)"."""
    return f"step{'s' if len(damage) > 1 else ''} {', '.join(map(str, sorted(damage)))} ({damage[max(damage)]})"
