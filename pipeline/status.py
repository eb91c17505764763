"""One line that tells the truth about a run in progress."""

import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import tensorflow as tf

from pipeline.quantities import clock, short, size

_REDRAW_SECONDS = 0.2
_SHOWN = re.compile(r"(.+)/(loss|accuracy|reconstruction|kl_divergence)")  # the other metrics are for the curves


class StatusLine:
    """Shows step, epoch, images, speed, losses and accuracies, memory and time left.

    In a terminal one line is redrawn, and each log point's line stands; elsewhere, in a notebook or a log file, there
    are the log points' lines only.

    Args:
      start_step: where this start of the run begins.
      last_step: where it ends.
      images_per_step: real images that a step draws, on all replicas together.
      stream: where to write.
      num_examples: of one epoch; 0 where that is not known, and no epoch is shown.
    """

    def __init__(
        self,
        start_step: int,
        last_step: int,
        images_per_step: int,
        stream: TextIO | None = None,
        *,
        num_examples: int = 0,
    ) -> None:
        """Start the clock."""
        self._stream = stream or sys.stdout
        self._terminal = self._stream.isatty()
        self._last_step = last_step
        self._images_per_step = images_per_step
        self._num_examples = num_examples
        self._point = (start_step, time.monotonic())
        self._drawn = 0.0
        self.images_per_second = 0.0  # since the log point before

    def show(self, step: int, means: Mapping[str, float]) -> None:
        """Redraw the line, in a terminal only and not more often than an eye follows."""
        now = time.monotonic()
        self._measure(step, now)
        if self._terminal and now - self._drawn > _REDRAW_SECONDS:
            self._drawn = now
            # Cut to the terminal's width: a line that wraps could not be redrawn.
            self._stream.write("\r\x1b[K" + self._text(step, means)[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()

    def keep(self, step: int, means: Mapping[str, float]) -> None:
        """Leave the line of a log point standing, and measure speed anew from here."""
        self.tell(self._text(step, means))
        self._point = (step, time.monotonic())

    def tell(self, text: str) -> None:
        """Leave a line of its own standing."""
        self._stream.write(("\r\x1b[K" if self._terminal else "") + text + "\n")
        self._stream.flush()

    def _measure(self, step: int, now: float) -> None:
        begin, since = self._point
        self.images_per_second = (step - begin) * self._images_per_step / max(now - since, 1e-9)

    def _text(self, step: int, means: Mapping[str, float]) -> str:
        left = (self._last_step - step) * self._images_per_step / max(self.images_per_second, 1e-9)
        images = f"{short(step * self._images_per_step)} images, {self.images_per_second:,.0f}/s"
        parts = [f"step {step}/{self._last_step}", *self._epoch(step), images]
        return " | ".join([*parts, *players(means), *memory(), f"{clock(left)} left"])

    def _epoch(self, step: int) -> list[str]:
        if not self._num_examples:
            return []
        seen, last = (count * self._images_per_step / self._num_examples for count in (step, self._last_step))
        return [f"epoch {seen:.1f}/{last:.1f}"]


def players(means: Mapping[str, float]) -> list[str]:
    """Return what a person follows of each player: `generator/loss 0.9731, accuracy 31.2%`."""
    told: dict[str, list[str]] = {}
    for name, value in means.items():
        if found := _SHOWN.fullmatch(name):
            player, term = found.groups()
            number = f"{value:.1%}" if term == "accuracy" else f"{value:.4f}"
            told.setdefault(player, []).append(f"{term} {number}")
    return [f"{player}/{', '.join(terms)}" for player, terms in told.items()]


def memory() -> list[str]:
    """Return what this process holds of the host's memory, and of its fullest GPU's where there is one, for a person.

    The list is empty where the system does not tell.
    """
    held = []
    if (pages := Path("/proc/self/statm")).exists():
        held.append(size(int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")))
    try:
        devices = [device.name for device in tf.config.list_logical_devices("GPU")]
        on_gpu = [tf.config.experimental.get_memory_info(name)["current"] for name in devices]
    except (ValueError, tf.errors.OpError):  # this kind of device keeps no count
        on_gpu = []
    return [*held, f"GPU {size(max(on_gpu))}"] if on_gpu else held
