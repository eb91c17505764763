"""Says whether a run is well, and how far it is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.reporting import tables
from pipeline.reporting.facts import RunFacts, commit_of

Level = Literal["good", "note", "bad"]
_STUCK_POINTS = 5
_STUCK = 0.005  # so near to 0 or 1 that an accuracy tells nothing more


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    what: str
    detail: str


@dataclass(frozen=True)
class State:
    """Where a run stands: a word for it, a sentence, and how good that is."""

    word: str
    sentence: str
    level: Level


def state(facts: RunFacts, *, is_over: bool = False, fault: str = "") -> State:
    """Say whether a run is finished, running, or was stopped.

    Args:
      facts: of the run.
      is_over: whether the process that holds the folder has ended training; it writes its last page while it holds it.
      fault: what ended it, where that was a fault.
    """
    last, step = facts.number("experiment.Experiment.train_steps"), facts.step
    saved = max([0, *facts.checkpoints])
    of = f"step {step:,} of {last:,}" if last else f"step {step:,}"
    if fault:
        return State("failed", f"It failed at {of}. {fault}", "bad")
    if last and saved >= last:
        return State("finished", f"It reached {of} and saved.", "good")
    if facts.holder and not is_over:
        return State("running", f"At {of} when this page was written, by {facts.holder}.", "note")
    goes_on = "The same command goes on from there."
    if not facts.checkpoints:
        return State("not saved", f"It was ended at {of}, and holds no checkpoint.", "bad")
    if step > saved:
        detail = f"It was ended at {of} without saving: killed, or lost to a fault."
        return State("cut short", f"{detail} The last checkpoint is of step {saved:,}. {goes_on}", "bad")
    return State("stopped", f"It was stopped at {of}, and saved. {goes_on}", "note")


def findings(facts: RunFacts) -> list[Finding]:
    """Return everything that was looked at, in the order in which a person asks."""
    return [
        _starts(facts),
        *_finite(facts),
        *_stuck(facts),
        *_events(facts),
        *_scores(facts),
        *_data(facts),
        *_source(facts),
    ]


def unscored(facts: RunFacts) -> str:
    """Say which step the last scores are of, where the run has saved a later one; empty where it has not."""
    scored = [row["step"] for row in tables.rows(facts.evaluation) if isinstance(row.get("step"), int)]
    saved = max([0, *facts.checkpoints])
    if not scored or max(scored) >= saved:
        return ""
    return f"The last scores are of step {max(scored):,}; the run went on to step {saved:,}, which was not scored."


def level_of(found: Sequence[Finding], current: State) -> Level:
    """Return the worst of all."""
    levels = {current.level, *(one.level for one in found)}
    return "bad" if "bad" in levels else "note" if "note" in levels else "good"


def _starts(facts: RunFacts) -> Finding:
    starts = facts.starts
    if len(starts) <= 1:
        return Finding("good", "Starts", "One start, never resumed." if starts else "Not told.")
    resumed = [f"step {start.get('step', '?')} ({start.get('time', 'time not told')})" for start in starts[1:]]
    shown = ", ".join(resumed[-8:])
    return Finding("note", "Starts", f"{len(starts)} starts; resumed at {'… ' if len(resumed) > 8 else ''}{shown}.")


def _finite(facts: RunFacts) -> list[Finding]:
    lost: dict[str, list[int]] = {}
    for point in facts.points:
        for name, value in point.items():
            if not math.isfinite(value):
                lost.setdefault(name, []).append(int(point["step"]))
    found = [
        Finding("bad", "Not finite", f"{name} at {len(steps)} log points, first at step {steps[0]:,}.")
        for name, steps in lost.items()
    ]
    if facts.lost_lines:
        found.append(Finding("note", "metrics.jsonl", f"{facts.lost_lines} lines cannot be read and are left out."))
    if not facts.points:
        reason = "has no lines yet" if facts.has_metrics else "is not there: the run has no MetricsFile writer"
        return [*found, Finding("note", "Numbers", f"metrics.jsonl {reason}.")]
    return found or [Finding("good", "Numbers", f"All finite, at {len(facts.points):,} log points.")]


# Not those of classes: an auxiliary classifier that is always right is a success.
_OF_REAL_AND_FAKE = ("accuracy", "accuracy_real", "accuracy_fake")


def _stuck(facts: RunFacts) -> list[Finding]:
    names = {name for point in facts.points for name in point if name.rpartition("/")[2] in _OF_REAL_AND_FAKE}
    found = []
    for name in sorted(names):
        values = [point[name] for point in facts.points if name in point]
        for end in (0.0, 1.0):
            count = 0
            while count < len(values) and abs(values[-1 - count] - end) <= _STUCK:
                count += 1
            if count >= _STUCK_POINTS:
                detail = (
                    f"{name} has been at {end:.0%} for the last {count} log points: one player may have won for good."
                )
                found.append(Finding("bad", "Stuck", detail))
    return found or ([Finding("good", "Balance", "No accuracy is stuck at 0 % or 100 %.")] if names else [])


def _events(facts: RunFacts) -> list[Finding]:
    if not facts.events:
        return [Finding("good", "Events", "No rollback and no collapse: none recorded.")]
    shown = [Finding("bad", "Event", _told(event)) for event in facts.events[-8:]]
    more = len(facts.events) - len(shown)
    return [*shown, Finding("note", "Events", f"{more} earlier ones.")] if more else shown


def _told(event: object) -> str:
    pairs = event.items() if isinstance(event, dict) else [("event", event)]
    return ", ".join(f"{key}: {value}" for key, value in pairs)


def _scores(facts: RunFacts) -> list[Finding]:
    return [Finding("note", "Scores", said)] if (said := unscored(facts)) else []


def _data(facts: RunFacts) -> list[Finding]:
    notice = facts.data.get("notice")
    return [Finding("note", "Data", str(notice))] if notice else []


def _source(facts: RunFacts) -> list[Finding]:
    commits = [commit_of(start) for start in facts.starts if start.get("commit")]
    found = []
    if commits and commits[-1].is_dirty:
        found.append(Finding("note", "Source", "The source tree held changes that no commit has."))
    distinct = {commit.name for commit in commits}
    if len(distinct) > 1:
        found.append(Finding("note", "Source", f"Its starts were of {len(distinct)} different commits."))
    return found
