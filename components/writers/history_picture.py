"""How generated images changed in the course of a run, in one picture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from components.interfaces import Positive, UserError
from components.writers import png_file


class HistoryPicture:
    """Keeps one row of a preview at some steps: history.png has them below each other, in order of step.

    The rows lie in history/STEP.png, so that a run that goes on after a stop ends with the same history. A step at
    which no preview is drawn (`Experiment.sample_every`) is not kept.

    Args:
      directory: the run folder.
      preview: name of the preview.
      rows: of that preview.
      row: the one kept, counted from 0. In a class montage row 0 is real, and row 1 the first one generated.
      kept_steps: steps to keep.
      every: multiples of it are kept too.
    """

    def __init__(
        self,
        directory: str,
        *,
        preview: str = "samples",
        rows: Positive = 10,
        row: Annotated[int, Ge(0)] = 1,
        kept_steps: Sequence[Annotated[int, Ge(0)]] = (0, 300, 600, 900),
        every: Positive = 1500,
    ) -> None:
        """Hold what to keep, and where."""
        if not 0 <= row < rows:
            raise UserError(
                f"`HistoryPicture.row` is counted from 0 and must be less than `rows`. Received row={row}, rows={rows}."
            )
        self._strips = Path(directory) / "history"
        self._picture = Path(directory) / "history.png"
        self.previews = (preview,)
        self._rows = rows
        self._row = row
        self._kept_steps = frozenset(kept_steps)
        self._every = every

    def rewind(self, step: int) -> None:
        """Take out the rows of later steps."""
        for drawn_at, path in png_file.steps(self._strips):
            if drawn_at > step:
                path.unlink()
        self._compose()  # always: a kill may have come between a row and the picture of all

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Keep none: this is a picture."""

    def images(self, step: int, name: str, images: Any) -> None:
        """Keep a row of the picture uint8[H, W, C] if it is that preview's at a step to be kept.

        Raises:
          UserError: the picture's height is not that of `rows` equal rows.
        """
        if name not in self.previews or not (step in self._kept_steps or step % self._every == 0):
            return
        height, rest = divmod(len(images), self._rows)
        if rest:
            raise UserError(
                f"`HistoryPicture.rows` must be the number of rows of the preview {name!r}. Received {self._rows} for "
                f"a picture of {len(images)} pixels in height. Bind the `rows` of that preview."
            )
        png_file.write(png_file.place(self._strips, step), images[self._row * height : (self._row + 1) * height])
        self._compose()

    def close(self) -> None:
        """Nothing is open."""

    def _compose(self) -> None:
        """Write the picture of all rows; one that is narrower than another, of a run changed midway, ends in black."""
        strips = [png_file.read(path) for _, path in png_file.steps(self._strips)]
        if not strips:
            self._picture.unlink(missing_ok=True)
            return
        width = max(strip.shape[1] for strip in strips)
        padded = [np.pad(strip, [(0, 0), (0, width - strip.shape[1]), (0, 0)]) for strip in strips]
        png_file.write(self._picture, np.concatenate(padded))
