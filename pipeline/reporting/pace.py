"""How long a run trained, and how fast, as its log points tell."""

import math
from statistics import median

from pipeline.quantities import clock
from pipeline.reporting.facts import RunFacts

SPEED = "timing/images_per_second"
EXPLANATION = (
    "Time in training: up to the last log point, over all starts, without the pauses between them and the set-up "
    "before the first step. Images a second: the median of the log points, drawing and saving included."
)


def speeds(facts: RunFacts) -> list[float]:
    """Return the images a second of each log point, as measured since the one before."""
    return [point[SPEED] for point in facts.points if SPEED in point]


def speed(facts: RunFacts) -> str:
    """Return the median of the images a second in words; empty where there are none."""
    known = [one for one in speeds(facts) if math.isfinite(one)]
    return f"{median(known):,.0f}" if known else ""


def images_per_step(facts: RunFacts, step: int) -> int | None:
    """Return how many real images the step drew, as the start tells that ran it; None where it does not."""
    begun = [start for start in facts.starts if isinstance(start.get("step"), int) and start["step"] < step]
    told = begun[-1].get("images_per_step") if begun else None
    return told if isinstance(told, int) and told > 0 else None


def seconds(facts: RunFacts) -> float | None:
    """Return how long training took, up to the last log point; None where that is not known.

    A log point has the speed since the one before it, or since the start that it is the first of: steps times images of
    a step over that speed is a time, in which nothing ran but this start. So pauses are never in it. A start that began
    between two log points leaves a few steps whose own speed was not written; they count at that of the point after.
    Steps that were lost, and trained again, count once.
    """
    total, begin = 0.0, 0
    for point in facts.points:
        if SPEED not in point:
            continue
        step = int(point["step"])
        images = images_per_step(facts, step)
        if images is None or not 0 < point[SPEED] < math.inf:
            return None
        total += (step - begin) * images / point[SPEED]
        begin = step
    return total if begin else None


def duration(facts: RunFacts) -> str:
    """Return how long training took in words; empty where that is not known."""
    took = seconds(facts)
    return "" if took is None else f"{'about ' if len(facts.starts) > 1 else ''}{clock(took)}"


def explanation(facts: RunFacts) -> str:
    """Say what the time and the speed are; empty where neither is known."""
    said = []
    if duration(facts):
        last = max(int(point["step"]) for point in facts.points if SPEED in point)
        starts = "over all starts, without the pauses between them" if len(facts.starts) > 1 else "in one start"
        said.append(f"Time in training: up to step {last:,}, {starts}, without the set-up before the first step.")
    if count := len(speeds(facts)):
        points = f"{count:,} log points" if count > 1 else "1 log point"
        said.append(f"Images a second: the median of {points}, drawing and saving included.")
    return " ".join(said)
