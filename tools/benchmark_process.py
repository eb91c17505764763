"""The process of a contender, as the benchmark sees it: started, told to make steps, ended."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import IO, Any, cast

from tools.benchmark_contender import REPLY


class ContenderError(Exception):
    """A contender's process ended before it was told to; says which and what it wrote."""


class Contender:
    """A contender that has made its first step and waits; `close` it in the end.

    Args:
      name: of the contender.
      task: what all contenders are told.
    """

    def __init__(self, name: str, task: dict[str, Any]) -> None:
        """Start the process and wait for its first step; raises ContenderError."""
        self._name = name
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.benchmark_contender", name, json.dumps(task), repr(time.time())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ},
        )
        self._orders, self._replies = cast(IO[str], self._process.stdin), cast(IO[str], self._process.stdout)
        try:
            self.facts = self._reply()  # {what: number}
        except BaseException:
            self.close()
            raise

    def seconds(self, steps: int) -> float:
        """Have it make steps; return how long they took."""
        with contextlib.suppress(BrokenPipeError):  # of a process that has ended, which `_reply` tells
            print(steps, file=self._orders, flush=True)
        return self._reply()["seconds"]

    def end(self) -> dict[str, float]:
        """Tell it that there are no more steps; return what it says of itself at last."""
        self._orders.close()
        return self._reply()

    def close(self) -> None:
        """End the process, wherever it is."""
        self._process.kill()
        self._process.wait()
        for stream in (self._orders, self._replies, self._errors):
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _reply(self) -> dict[str, float]:
        for line in self._replies:  # the program's own lines stand between
            if line.startswith(REPLY):
                return json.loads(line.removeprefix(REPLY))
        status = self._process.wait()
        self._errors.seek(0)
        raise ContenderError(f"{self._name} failed with exit status {status}.\n{self._errors.read()}")
