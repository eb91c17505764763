"""Pictures as PNG files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf


class PictureFolder:
    """Writes NAME/STEP.png in the run folder.

    Args:
      directory: the run folder.
    """

    def __init__(self, directory: str) -> None:
        """Hold the folder."""
        self._directory = Path(directory)

    def rewind(self, step: int) -> None:
        """Nothing to do: a run that goes on draws the same pictures again, in the same places."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Keep none: this is a folder of pictures."""

    def images(self, step: int, name: str, images: Any) -> None:
        """Write one picture uint8[H, W, C]; C is 1, 3 or 4."""
        path = self._directory / name / f"{step:09d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tf.io.encode_png(images).numpy())

    def close(self) -> None:
        """Nothing is open."""
