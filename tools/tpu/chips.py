"""The TPU chips, as published, and what a compiled step means on one."""

import re
from dataclasses import dataclass

from components.errors import UserError

DEFAULT_TOPOLOGIES = ("v4:2x2x1", "v5e:2x2", "v5p:2x2x1", "v6e:2x2")
_RESERVE_BYTES = 2**30  # of a chip; for the runtime, and for batches on their way


@dataclass(frozen=True)
class Chip:
    """Peak figures of one chip, from its vendor's documentation.

    Attributes:
      cores: that are programmed apart, each with its share of everything; the compiler lays v3 and v4 out as two.
      memory_gib: of HBM.
      bfloat16_teraflops: peak, in 10^12 operations a second.
      gigabytes_per_second: between HBM and the chip, in 10^9.
    """

    cores: int
    memory_gib: float
    bfloat16_teraflops: float
    gigabytes_per_second: float

    @property
    def core_bytes(self) -> int:
        """Bytes that a step may take of one core's HBM."""
        return int(self.memory_gib * 2**30 - _RESERVE_BYTES) // self.cores


CHIPS = {
    "v3": Chip(2, 32, 123, 900),
    "v4": Chip(2, 32, 275, 1228),
    "v5e": Chip(1, 16, 197, 819),
    "v5p": Chip(1, 95, 459, 2765),
    "v6e": Chip(1, 32, 918, 1640),
}


@dataclass(frozen=True)
class Topology:
    """Chips of one kind and how they are wired, such as v5e:2x2."""

    name: str
    chip: Chip
    cores: int

    @property
    def kind(self) -> str:
        """The chip's name."""
        return self.name.partition(":")[0]


def topology(name: str) -> Topology:
    """Return the topology called `name`; raises UserError for what is none."""
    kind, _, shape = name.partition(":")
    if kind not in CHIPS or not re.fullmatch(r"[1-9]\d*(x[1-9]\d*){1,2}", shape):
        raise UserError(
            f"`--topology` is CHIP:AxB or CHIP:AxBxC, with a chip of {', '.join(CHIPS)}. Received {name!r}. Use, for "
            "example, v5e:2x2."
        )
    cores = CHIPS[kind].cores
    for side in shape.split("x"):
        cores *= int(side)
    return Topology(name, CHIPS[kind], cores)


@dataclass(frozen=True)
class Bound:
    """The most that a step could reach if nothing but arithmetic, or nothing but memory traffic, took time.

    Attributes:
      images_per_second: real images on one chip.
      limit: "compute" or "memory", whichever takes longer.
    """

    images_per_second: float
    limit: str


def bound(chip: Chip, *, flops: float, bytes_accessed: float, images: int) -> Bound:
    """Return the roofline bound of a step of one core.

    Matrix products of float32 are counted at the bfloat16 peak: XLA's default precision makes each of one pass of
    bfloat16 products, added up in float32.

    Args:
      chip: that it runs on.
      flops: of the step, as the compiler counts them.
      bytes_accessed: likewise; what stays on the chip between two operations may be counted.
      images: real images of the step on one core.
    """
    compute = flops / (chip.bfloat16_teraflops * 1e12 / chip.cores)
    memory = bytes_accessed / (chip.gigabytes_per_second * 1e9 / chip.cores)
    return Bound(images * chip.cores / max(compute, memory, 1e-12), "compute" if compute > memory else "memory")
