"""Counts, bytes and durations as a person reads them."""

import math

_UNITS = ("k", "M", "G", "T")


def short(number: int) -> str:
    """Return a count as it is read at a glance: 9,600, 83.2k, 1.92M."""
    if number < 10_000:
        return f"{number:,}"
    rounded = float(f"{number:.3g}")
    power = min(int(math.log10(rounded) + 1e-9) // 3, len(_UNITS))
    return f"{rounded / 1000**power:.3g}{_UNITS[power - 1]}"


def size(count: int) -> str:
    """Return a number of bytes as it is read at a glance: 812 MiB, 2.3 GiB."""
    return f"{count / 2**20:.0f} MiB" if count < 1000 * 2**20 else f"{count / 2**30:.1f} GiB"


def clock(seconds: float) -> str:
    """Return a duration as a person says it: 42s, 3m 05s, 2h 10m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
