"""The one rule about image sizes: what a network halves must be even."""

from collections.abc import Sequence
from typing import Annotated

from annotated_types import MinLen

from components.interfaces import DataSpec, Positive, UserError

Widths = Annotated[Sequence[Positive], MinLen(1)]  # channels of maps


def smallest_map(spec: DataSpec, *, halvings: int, network: str) -> tuple[int, int]:
    """Return (H, W) divided by 2 ** halvings; raises UserError where that leaves a remainder."""
    height, width, _ = spec.image_shape
    factor = 2**halvings
    if height % factor or width % factor:
        near = tuple(-(-size // factor) * factor for size in (height, width))
        raise UserError(
            f"`{network}` needs a height and a width that are multiples of {factor}. Received {height} x {width} from "
            f"{spec.name!r}. Bind the data's `image_size = {near}`, or another network."
        )
    return height // factor, width // factor
