"""Pictures of previews as data URIs: so many as a page can carry."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BUDGET_MB = 8  # of PNG files in one page, all previews together
MOST = 60  # pictures of one preview


@dataclass(frozen=True)
class Picture:
    """A PNG file as it stands in a page."""

    step: int
    uri: str
    width: int
    height: int


def choose(sizes: Sequence[int], budget: int, most: int = MOST) -> list[int]:
    """Return the places of at most `most` of `sizes`, evenly spaced, last and first included, of at most `budget`.

    Args:
      sizes: of the files, in order of step.
      budget: in bytes.
      most: how many at most.
    """
    for count in range(min(len(sizes), most), 0, -1):
        gap = (len(sizes) - 1) / max(count - 1, 1)
        places = [round(index * gap) for index in range(count)] if count > 1 else [len(sizes) - 1]
        if sum(sizes[place] for place in places) <= budget:
            return places
    return []


def load(pictures: Sequence[tuple[int, Path]], budget: int) -> list[Picture]:
    """Return the pictures that a budget in bytes allows; one that is gone or is no PNG is left out."""
    found = [(step, path, path.stat().st_size) for step, path in pictures if path.is_file()]
    chosen = choose([size for _, _, size in found], budget)
    read = [picture(*found[place][:2]) for place in chosen]
    return [one for one in read if one]


def picture(step: int, path: Path) -> Picture | None:
    """Return a PNG file as it stands in a page; None where it cannot be read."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if content[:8] != b"\x89PNG\r\n\x1a\n" or len(content) < 24:
        return None
    width, height = (int.from_bytes(content[begin : begin + 4], "big") for begin in (16, 20))
    return Picture(step, f"data:image/png;base64,{base64.b64encode(content).decode()}", width, height)
