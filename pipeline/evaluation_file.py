"""The file evaluation.json of a run folder: every evaluation, each number with its certificate."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.interfaces import Measurement, UserError
from pipeline.run_folder import replace_text


class EvaluationFile:
    """One entry an evaluated checkpoint, in the order of its steps; the same evaluation made again takes its own place.

    Args:
      path: of the file; made with the first entry.
    """

    def __init__(self, path: Path) -> None:
        """Hold the path."""
        self._path = path

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries; none where there is no file.

        Raises:
          UserError: the file is damaged.
        """
        try:
            return list(json.loads(self._path.read_text())["evaluations"])
        except FileNotFoundError:
            return []
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UserError(
                f"{self._path} holds the evaluations of a run. It cannot be read: {type(error).__name__} {error}. Put "
                "it back, or move it away."
            ) from error

    def add(self, step: int, found: Mapping[str, Measurement]) -> None:
        """Write an entry. One of the same step that was made in the same way is replaced.

        Raises:
          UserError: the file is damaged.
        """
        metrics = {
            name: {
                "value": one.value,
                "spread": one.spread,
                "real_against_real": one.real,
                "better": one.better,
                "certificate": dict(one.certificate),
            }
            for name, one in found.items()
        }
        entry = {"step": step, "metrics": metrics}
        others = [one for one in self.entries() if _made(one) != _made(entry)]
        evaluations = sorted([*others, entry], key=lambda one: one["step"])
        replace_text(self._path, json.dumps({"evaluations": evaluations}, indent=2, allow_nan=False) + "\n")

    def best(
        self, metric: str, among: list[int] | None = None, like: Mapping[str, Measurement] | None = None
    ) -> tuple[int, float]:
        """Return the step that is the best by a metric, and its value; the earliest of equal ones.

        Numbers compare only where their certificates agree in all but the checkpoint: other counts or another extractor
        give other numbers.

        Args:
          metric: its name.
          among: steps to choose from; None: all.
          like: an evaluation: only those made in the same way count. None: the way in which the most steps were
            evaluated, of equally many that of the latest step.

        Raises:
          UserError: none of those steps was evaluated, or the metric is unknown, or has no better and worse.
        """
        entries = [one for one in self.entries() if among is None or one["step"] in among]
        if not entries:
            raise UserError(
                f"The best checkpoint is one that was evaluated. {self._path} tells of none. Evaluate some."
            )
        ways = _by_way(metric, entries)
        if like is not None and metric in like:
            by_step = ways.get(_way(like[metric].certificate), {})
        else:
            by_step = max(ways.values(), key=lambda steps: (len(steps), max(steps)), default={})
        known = [name for name, one in entries[-1]["metrics"].items() if one["better"]]
        if not by_step or next(iter(by_step.values()))["better"] is None:
            raise UserError(
                f"`--best_by` must be a metric of which one way is better. Received {metric!r}; there are "
                f"{', '.join(known)}."
            )
        sign = 1 if next(iter(by_step.values()))["better"] == "lower" else -1
        step = min(by_step, key=lambda one: (sign * by_step[one]["value"], one))
        return step, by_step[step]["value"]


def _by_way(metric: str, entries: list[dict[str, Any]]) -> dict[str, dict[int, Any]]:
    """Return {way: {step: the newest of a metric's numbers}}."""
    ways: dict[str, dict[int, Any]] = {}
    for entry in entries:
        one = entry["metrics"].get(metric)
        if one is not None:
            ways.setdefault(_way(one["certificate"]), {})[entry["step"]] = one
    return ways


def _way(certificate: Mapping[str, Any]) -> str:
    """Return how a number was made, whatever the checkpoint."""
    kept = {key: value for key, value in certificate.items() if key not in ("checkpoint_step", "value_of_each_seed")}
    return json.dumps(kept, sort_keys=True)


def table(step: int, found: Mapping[str, Measurement]) -> str:
    """Return what a person reads: one line a number, with its spread and what real images score."""
    first = next(iter(found.values())).certificate
    fakes = [one.certificate["num_fake"] for one in found.values() if "num_fake" in one.certificate]
    against = f"{fakes[0]:,} generated against " if fakes else ""
    head = f"Step {step}, weights {first['weights']}: {against}{first['num_real']:,} real images of {first['data']}"
    lines = [
        f"{head} ({first['split']}), seeds {', '.join(map(str, first['seeds']))}.",
        f"{'':28}{'value':>12}{'spread':>12}{'real':>12}  better",
    ]
    for name, one in found.items():
        real = "-" if one.real is None else _number(one.real)
        lines.append(f"{name:28}{_number(one.value):>12}{_number(one.spread):>12}{real:>12}  {one.better or '-'}")
    return "\n".join([*lines, *_notes(found)])


def _notes(found: Mapping[str, Measurement]) -> list[str]:
    of_images = [one.certificate for one in found.values() if "extractor" in one.certificate]
    notes = ["spread: over the seeds; real: one half of the real images against the other."]
    if of_images:
        accuracy = of_images[0].get("extractor_accuracy")
        read = f", which reads {accuracy:.1%} of held-out real images rightly" if accuracy is not None else ""
        notes.append(f"Features: {of_images[0]['extractor']} ({of_images[0]['extractor_hash'][:16]}){read}.")
        if not of_images[0]["conditional"]:
            notes.append("The images do not depend on the class, so none was asked for.")
    return notes


def _number(value: float) -> str:
    digits = 4 if value == 0 or not math.isfinite(value) else max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 6)}f}"


def _made(entry: Mapping[str, Any]) -> Any:
    """Return what tells how an entry was made: its step and the way of each number."""
    return entry["step"], {name: _way(one["certificate"]) for name, one in entry["metrics"].items()}
