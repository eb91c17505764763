"""Curves as text: one JSON object a line."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class MetricsFile:
    """Appends {"step": ..., name: value, ...} to metrics.jsonl in the run folder.

    Args:
      directory: the run folder.
    """

    def __init__(self, directory: str) -> None:
        """Hold the path."""
        self._path = Path(directory) / "metrics.jsonl"

    def rewind(self, step: int) -> None:
        """Take out the lines of later steps, and a line that a kill cut short."""
        lines = self._path.read_text().splitlines(keepends=True) if self._path.exists() else []
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        if kept != lines:
            growing = self._path.with_name(self._path.name + ".writing")  # a kill leaves the old file or the new one
            growing.write_text("".join(kept))
            growing.replace(self._path)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write one line, at once."""
        with self._path.open("a") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")

    def images(self, step: int, name: str, images: Any) -> None:
        """Keep none: this is a file of numbers."""

    def close(self) -> None:
        """Nothing is open."""
