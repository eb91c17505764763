"""PNG files named by the step: each is there whole, or not at all."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

_DIGITS = 9


def place(folder: Path, step: int) -> Path:
    """Return the place of the picture of a step; names sort as steps do."""
    return folder / f"{step:0{_DIGITS}d}.png"


def steps(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield (step, place) of the pictures in a folder, in order of step."""
    for path in sorted(folder.glob("[0-9]" * _DIGITS + ".png")):
        yield int(path.stem), path


def write(path: Path, picture: np.ndarray) -> None:
    """Write uint8[H, W, C], C being 1, 3 or 4; a kill leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    growing = path.with_name(path.name + ".writing")
    growing.write_bytes(tf.io.encode_png(picture).numpy())
    growing.replace(path)


def read(path: Path) -> np.ndarray:
    """Return uint8[H, W, C], as it was written."""
    return tf.io.decode_png(path.read_bytes()).numpy()
