"""Stopping on purpose: the first signal asks, the second insists."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

ENOUGH = 64  # above every signal: whoever agrees on the largest number agrees on this


class StopSignal:
    """Turns SIGINT and SIGTERM into a request while it is entered, in the main thread: Python has signals nowhere else.

    Attributes:
      requested: the number of the signal received here or, once `is_agreed`, by any process of the run; 64 where the
        run is over by its own rules; or 0.
    """

    def __init__(self) -> None:
        """Nothing was requested."""
        self.requested = 0
        self._has_received = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> "StopSignal":
        """Take over both signals."""
        if threading.current_thread() is not threading.main_thread():
            return self
        self._before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give both signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def is_agreed(self, agree: Callable[[int], int]) -> bool:
        """Say whether to stop, the same in all processes of a run: a signal to one of them is for all.

        Args:
          agree: gives all processes the largest of their numbers; see `interfaces.Hardware`.
        """
        number = agree(self.requested)
        if number:
            self.requested = number
        return bool(number)  # not `requested`: a signal that came meanwhile is known here alone, and waits its turn

    def enough(self) -> None:
        """Ask for the end because the run is over by its own rules: no signal, and no failure."""
        self.requested = ENOUGH

    @property
    def exit_status(self) -> int:
        """0, or 128 + the number of the signal, as shells report it."""
        return 128 + self.requested if self.requested not in (0, ENOUGH) else 0

    def _handle(self, number: int, frame: FrameType | None) -> None:
        # A request that came from another process is none: schedulers signal all processes, one a little after another.
        if self._has_received:
            os._exit(128 + number)
        self._has_received = True
        self.requested = number
        # Not print: the signal may have interrupted one.
        name = signal.Signals(number).name
        os.write(2, f"\n{name}: finishing the steps in flight and saving; once more to quit at once.\n".encode())
