"""One line that tells the truth about a run in progress."""

import sys
import time
from collections.abc import Mapping
from typing import TextIO

_REDRAW_SECONDS = 0.2


class StatusLine:
    """Shows step, speed, losses and time left: one line redrawn in a terminal, one line a log point elsewhere.

    Args:
      start_step: where this start of the run begins.
      last_step: where it ends.
      images_per_step: the global batch size.
      stream: where to write.
    """

    def __init__(self, start_step: int, last_step: int, images_per_step: int, stream: TextIO | None = None) -> None:
        """Start the clock."""
        self._stream = stream or sys.stdout
        self._terminal = self._stream.isatty()
        self._last_step = last_step
        self._images_per_step = images_per_step
        self._point = (start_step, time.monotonic())
        self._drawn = 0.0
        self.images_per_second = 0.0  # since the log point before

    def show(self, step: int, means: Mapping[str, float]) -> None:
        """Redraw the line, in a terminal only and not more often than an eye follows."""
        now = time.monotonic()
        self._measure(step, now)
        if self._terminal and now - self._drawn > _REDRAW_SECONDS:
            self._drawn = now
            self._stream.write("\r\x1b[K" + self._text(step, means))
            self._stream.flush()

    def keep(self, step: int, means: Mapping[str, float]) -> None:
        """Leave the line of a log point standing, and measure speed anew from here."""
        self._stream.write(("\r\x1b[K" if self._terminal else "") + self._text(step, means) + "\n")
        self._stream.flush()
        self._point = (step, time.monotonic())

    def _measure(self, step: int, now: float) -> None:
        begin, since = self._point
        self.images_per_second = (step - begin) * self._images_per_step / max(now - since, 1e-9)

    def _text(self, step: int, means: Mapping[str, float]) -> str:
        losses = [f"{name} {value:.4f}" for name, value in means.items() if name.endswith("/loss")]
        left = (self._last_step - step) * self._images_per_step / max(self.images_per_second, 1e-9)
        speed = f"{self.images_per_second:,.0f} images/s"
        return " | ".join([f"step {step}/{self._last_step}", speed, *losses, f"{clock(left)} left"])


def clock(seconds: float) -> str:
    """Return a duration as a person says it: 42s, 3m 05s, 2h 10m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
