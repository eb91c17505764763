"""Many images in one picture, and images in files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from components.interfaces import UserError

_ENDINGS = (".png", ".npz", "")
_CHANNELS = (1, 3, 4)  # grey, colour, and colour with opacity; TensorFlow would write 2 as grey with opacity


def tile(images: np.ndarray, columns: int) -> np.ndarray:
    """Return uint8[rows * H, columns * W, C]: images uint8[N, H, W, C] row by row, never rescaled, the rest black."""
    count, height, width, channels = images.shape
    require_picture(channels)
    rows = -(-count // columns)
    cells = np.zeros((rows * columns, height, width, channels), np.uint8)
    cells[:count] = images
    return cells.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(rows * height, -1, channels)


def write(
    images: np.ndarray,
    labels: Sequence[int],
    output: Path,
    columns: int,
    archived: Mapping[str, Any] | None = None,
) -> None:
    """Write images uint8[N, H, W, C] as one grid, one archive, or one file each.

    Args:
      images: to write.
      labels: their N classes; the archive and the file names tell them.
      output: ends in .png: a grid; in .npz: `images` uint8[N, H, W, C] and `labels` int32[N]; without an ending: a
        folder of PNG files INDEX-LABEL.png.
      columns: of the grid.
      archived: other arrays for the archive, by name.

    Raises:
      UserError: another ending, or a place that cannot be written.
    """
    require_ending(output)
    with writing(output):
        if output.suffix == ".npz":
            np.savez_compressed(output, images=images, labels=np.asarray(labels, np.int32), **(archived or {}))
        elif output.suffix == ".png":
            output.write_bytes(encode(tile(images, columns)))
        else:
            _write_folder(images, labels, output)


def require_ending(output: Path, others: Sequence[str] = ()) -> None:
    """Raise UserError unless a place is one that `write` knows, or ends in one of the `others`."""
    if output.suffix not in (*_ENDINGS, *others):
        *most, last = (*filter(None, _ENDINGS), *others)
        raise UserError(f"`--output` ends in {', '.join(most)} or {last}, or names a folder. Received {str(output)!r}.")


def require_picture(channels: int) -> None:
    """Raise UserError unless images of so many channels can be shown."""
    if channels not in _CHANNELS:
        raise UserError(
            f"A picture has 1, 3 or 4 channels. Received {channels}. An archive (--output=FILE.npz) takes any."
        )


@contextmanager
def writing(output: Path) -> Iterator[None]:
    """Make the folder of a place; raise UserError where it cannot be written."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UserError(
            f"`--output` must be a place that can be written. {output}: {error.strerror or error}."
        ) from error


def encode(picture: np.ndarray) -> bytes:
    """Return uint8[H, W, C] as PNG; C is 1, 3 or 4."""
    require_picture(picture.shape[-1])
    return tf.io.encode_png(picture).numpy()


def _write_folder(images: np.ndarray, labels: Sequence[int], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    before = next((one.name for one in folder.iterdir() if re.fullmatch(r"\d{6}-\d+\.png", one.name)), None)
    if before:
        raise UserError(
            f"`--output` is a folder without images of an earlier call: a score of both would be one of neither. "
            f"{folder} holds {before}. Name another, or empty it."
        )
    for index, (image, label) in enumerate(zip(images, labels, strict=True)):
        (folder / f"{index:06d}-{label}.png").write_bytes(encode(image))
