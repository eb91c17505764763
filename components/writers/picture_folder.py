"""Pictures as PNG files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.writers import png_file


class PictureFolder:
    """Writes NAME/STEP.png in the run folder: a folder for each preview.

    Args:
      directory: the run folder.
    """

    def __init__(self, directory: str) -> None:
        """Hold the folder."""
        self._directory = Path(directory)

    def rewind(self, step: int) -> None:
        """Take out the pictures of later steps: the run may draw at other steps than before."""
        for folder in self._directory.glob("*/"):
            for drawn_at, path in png_file.steps(folder):
                if drawn_at > step:
                    path.unlink()

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Keep none: this is a folder of pictures."""

    def images(self, step: int, name: str, images: Any) -> None:
        """Write one picture uint8[H, W, C]; C is 1, 3 or 4."""
        png_file.write(png_file.place(self._directory / name, step), images)

    def close(self) -> None:
        """Nothing is open."""
