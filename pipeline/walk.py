"""Rows of images along which latents, or classes, change little by little: shown as a grid, a film or an archive."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from components.interfaces import Decoder, UserError
from pipeline import film, grid


@dataclass(frozen=True, kw_only=True)
class Walk:
    """R rows of S steps.

    Attributes:
      latents: float32[R, S, Z].
      labels: int[R, S], the class, or the one that is nearest.
      shares: float32[R, S, K], of every class; None: a step is of its class alone.
    """

    latents: np.ndarray
    labels: np.ndarray
    shares: np.ndarray | None = None


def place_of(output: str | None, otherwise: Path, frame_milliseconds: int | None) -> Path:
    """Return where to write; raises UserError for an ending that is none, or a time for what is no film."""
    film.require_time(frame_milliseconds)
    place = Path(output) if output else otherwise
    grid.require_ending(place, film.ENDINGS)
    if frame_milliseconds is not None and place.suffix not in film.ENDINGS:
        raise UserError(
            f"`--frame_milliseconds` is of a film. Received {frame_milliseconds} for {str(place)!r}, which is none. "
            "Name an --output that ends in .gif or .apng, or leave the flag out."
        )
    return place


def write(
    walk: Walk, decoder: Decoder, output: Path, frame_milliseconds: int | None, archived: Mapping[str, Any]
) -> None:
    """Decode a walk and write its images.

    Args:
      walk: to be decoded.
      decoder: makes the images.
      output: ends in .png: a grid of R rows and S columns; in .gif or .apng: a film of S pictures, each of R images; in
        .npz: `images` uint8[R * S, H, W, C], row by row, `labels` int32[R * S], `latents` float32[R * S, Z], where
        classes are mixed `shares` float32[R * S, K], and what is `archived`; without an ending: a folder of PNG files.
      frame_milliseconds: how long a picture of a film is shown.
      archived: other arrays for the archive, by name.

    Raises:
      UserError: a network that cannot mix classes, or a place that cannot be written.
    """
    rows, steps, _ = walk.latents.shape
    given = {"latents": walk.latents} | ({} if walk.shares is None else {"shares": walk.shares})
    flat = {name: one.reshape(rows * steps, -1) for name, one in given.items()}
    labels = walk.labels.reshape(-1)
    images = decoder.decode(flat["latents"], flat.get("shares", labels))
    if output.suffix in film.ENDINGS:
        by_step = images.reshape(rows, steps, *images.shape[1:]).swapaxes(0, 1)
        columns = math.ceil(math.sqrt(rows))
        film.write((grid.tile(step, columns) for step in by_step), output, frame_milliseconds)
    else:
        grid.write(images, labels.tolist(), output, columns=steps, archived={**flat, **archived})
