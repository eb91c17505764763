"""Checkpoints in TensorFlow's format, one folder each, visible only when whole."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import tensorflow as tf
from absl import logging

from components.interfaces import Positive, UserError

_PREFIX = "variables"
# What reading a truncated, bit-flipped or half-deleted checkpoint raises; a wrong shape is a ValueError and no damage.
_DAMAGE = (tf.errors.OpError, IndexError)


class TFCheckpointer:
    """Keeps the newest checkpoints of a run; see `interfaces.Checkpointer`.

    A checkpoint is written beside its place and moved there by one rename, so a kill at any moment leaves whole ones
    only. TensorFlow's own index file, "checkpoint", is not used: where it is damaged, a run would start from 0 in
    silence.

    Args:
      directory: made at the first save.
      state: {name: variables}; a restore must match each of them, and nothing in the file may be left over.
      keep: how many of the newest to keep, at least 1.
    """

    def __init__(self, directory: str, state: Mapping[str, Sequence[tf.Variable]], *, keep: Positive = 3) -> None:
        """Bind the variables; nothing is written."""
        if keep < 1:
            raise UserError(f"`TFCheckpointer.keep` must be at least 1. Received {keep}.")
        self._directory = Path(directory)
        self._keep = keep
        self._damaged: set[int] = set()  # steps that were passed over, until a save sets them aside
        self._checkpoint = tf.train.Checkpoint(state={name: list(variables) for name, variables in state.items()})

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints there are, oldest first."""
        found = (re.fullmatch(r"step-(\d+)", path.name) for path in self._directory.glob("step-*"))
        return sorted(int(match[1]) for match in found if match)

    def restore_latest(self) -> int:
        """Restore the newest whole checkpoint and return its step; 0 where there is none yet.

        Raises:
          UserError: there are checkpoints and none can be read, or they hold other variables.
        """
        steps = self.steps()
        for step in reversed(steps):
            try:
                self._read(step)
                return step
            except _DAMAGE as error:
                self._damaged.add(step)
                logging.warning("Checkpoint %d is damaged and passed over: %s", step, str(error).splitlines()[0])
        if steps:
            raise UserError(
                f"A run goes on from a whole checkpoint. All of {self._directory} are damaged: steps "
                f"{', '.join(map(str, steps))}. Restore the folder from a copy, or start anew with --overwrite."
            )
        return 0

    def restore(self, step: int) -> None:
        """Restore the checkpoint of one step.

        Raises:
          UserError: there is none of that step, it is damaged, or it holds other variables.
        """
        known = ", ".join(map(str, self.steps())) or "none"
        if not self._path(step).is_dir():
            raise UserError(f"There is no checkpoint of step {step} in {self._directory}. There are: {known}.")
        try:
            self._read(step)
        except _DAMAGE as error:
            raise UserError(f"{self._path(step)} is damaged: {error}. Use another step; there are: {known}.") from error

    def _read(self, step: int) -> None:
        path = self._path(step)
        try:
            self._checkpoint.read(str(path / _PREFIX)).assert_consumed()
        except (ValueError, AssertionError) as error:
            raise UserError(
                f"A checkpoint must hold exactly the variables of the run. {path} does not fit: {error} "
                "Use the config that the run was started with."
            ) from error

    def save(self, step: int) -> None:
        """Save all state as that of `step`; drop the oldest beyond `keep`, set aside damaged ones passed over."""
        whole, growing = self._path(step), self._directory / f"writing-{step}"
        if whole.is_dir() and step not in self._damaged:
            return
        shutil.rmtree(growing, ignore_errors=True)
        growing.mkdir(parents=True)
        self._checkpoint.write(str(growing / _PREFIX))
        self._set_damaged_aside()
        growing.rename(whole)
        for old in self.steps()[: -self._keep]:
            shutil.rmtree(self._path(old))

    def _set_damaged_aside(self) -> None:
        """Rename what was passed over, which else counts among the newest and stands in the way of its own step."""
        for step in self._damaged:
            aside = self._directory / f"damaged-{step}"
            shutil.rmtree(aside, ignore_errors=True)
            self._path(step).rename(aside)
        self._damaged.clear()

    def _path(self, step: int) -> Path:
        return self._directory / f"step-{step:09d}"
