"""Which checkpoints are kept."""

from collections.abc import Sequence


def kept(steps: Sequence[int], *, newest: int, every: int | None, best: int | None) -> set[int]:
    """Return those of `steps`, which are in order, that are kept.

    Args:
      steps: of the checkpoints there are.
      newest: how many of the last ones.
      every: of each multiple of it the first step from there on; None: of none.
      best: one more; None: no other.
    """
    first: dict[int, int] = {}
    for step in steps if every else ():
        first.setdefault(step // (every or 1), step)
    for_ever = [step for multiple, step in first.items() if multiple]
    return {*steps[-newest:], *for_ever, *([] if best is None else [best])}
