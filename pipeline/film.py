"""Films: pictures one after the other in one file; and mode film, which makes one of a run's own pictures."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from components.interfaces import UserError
from pipeline import grid
from pipeline.run_folder import RunFolder

ENDINGS = (".gif", ".apng")
_FORMATS = {".gif": "GIF", ".apng": "PNG", ".png": "PNG"}
_MILLISECONDS = 200
_STEP_PNG = "[0-9]" * 9 + ".png"


def film(workdir: str, *, output: str | None, frame_milliseconds: int | None) -> int:
    """Write the pictures that a run drew of the same latents, in order of step, as a film.

    Args:
      workdir: a run folder; it may be that of a run in progress.
      output: FILE.gif, or FILE.png or FILE.apng for an animated PNG; None: film.gif in the run folder.
      frame_milliseconds: how long each picture is shown; None: 200.

    Returns:
      The exit status, 0.

    Raises:
      UserError: no run, no pictures, another ending, or a place that cannot be written.
    """
    require_time(frame_milliseconds)
    folder = RunFolder(workdir)
    folder.require_run()
    place = Path(output) if output else folder.path / "film.gif"
    if place.suffix not in _FORMATS:
        raise UserError(f"`--output` of a film ends in {', '.join(_FORMATS)}. Received {output!r}.")
    pictures = sorted((folder.path / "samples").glob(_STEP_PNG))
    if not pictures:
        raise UserError(
            f"A film is made of the pictures that a run has drawn. {folder.path} has none: samples/STEP.png. Train "
            "with the writer @picture_folder.PictureFolder and a preview of the name 'samples'."
        )
    write(_same_size([_read(path) for path in pictures]), place, frame_milliseconds)
    print(f"{len(pictures)} pictures, of steps {int(pictures[0].stem)} to {int(pictures[-1].stem)}, are in {place}.")
    return 0


def write(frames: Iterable[np.ndarray], output: Path, frame_milliseconds: int | None) -> None:
    """Write pictures uint8[H, W, C] of one size as a film that begins again at its end.

    An animated PNG has the pixels as they are. A GIF has them too where C is 1; of colours it has 256 a picture, the
    nearest ones, and opacity is all or nothing. Pictures without a difference are one, shown for longer.

    Args:
      frames: at least one; C is 1, 3 or 4.
      output: ends in .gif, .png or .apng.
      frame_milliseconds: how long each is shown; None: 200.

    Raises:
      UserError: another number of channels, or a place that cannot be written.
    """
    first, *others = map(_as_image, frames)  # a list: Pillow goes over them twice
    growing = output.with_name(output.name + ".writing")
    with grid.writing(output):
        first.save(
            growing,
            format=_FORMATS[output.suffix],
            save_all=True,
            append_images=others,
            duration=frame_milliseconds or _MILLISECONDS,
            loop=0,
        )
        growing.replace(output)


def require_time(frame_milliseconds: int | None) -> None:
    """Raise UserError unless a picture can be shown for so long in every kind of film: a GIF counts in 10 ms."""
    if frame_milliseconds is not None and (frame_milliseconds < 20 or frame_milliseconds % 10):
        raise UserError(
            f"`--frame_milliseconds` is a multiple of 10, at least 20. Received {frame_milliseconds}. Use "
            f"{max(20, round(frame_milliseconds, -1))}."
        )


def _as_image(picture: np.ndarray) -> Any:
    from PIL import Image

    grid.require_picture(picture.shape[-1])
    return Image.fromarray(picture[..., 0] if picture.shape[-1] == 1 else picture)


def _same_size(pictures: list[np.ndarray]) -> list[np.ndarray]:
    """Return uint8[H, W, C] of one size: smaller pictures, of a run changed midway, end in black."""
    height, width = np.max([picture.shape[:2] for picture in pictures], axis=0)
    return [
        np.pad(picture, [(0, height - picture.shape[0]), (0, width - picture.shape[1]), (0, 0)]) for picture in pictures
    ]


def _read(path: Path) -> np.ndarray:
    """Return uint8[H, W, C] of a PNG file."""
    from PIL import Image

    try:
        with Image.open(path) as file:
            picture = np.asarray(file)
    except (OSError, SyntaxError) as error:  # Pillow's words for a damaged file are either
        raise UserError(
            f"A film is made of whole pictures. {path} cannot be read: {error}. Take it out, or draw it again."
        ) from error
    return picture.reshape(*picture.shape[:2], -1)
