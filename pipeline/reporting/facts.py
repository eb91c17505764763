"""What a run folder tells, read with patience: what is missing or damaged is left out, and said where that matters."""

import json
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pipeline import configs, run_lock

_PICTURE = "[0-9]" * 9 + ".png"
_EVENT_KEYS = ("event", "rollback", "collapse")  # of manifest.json, and in the names of files of JSON lines

Point = Mapping[str, float]
Event = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """A run as its folder tells it.

    Attributes:
      path: the folder.
      config: the text of config.gin; empty where it cannot be read.
      values: {binding or macro: value as gin text}, defaults included.
      manifest: manifest.json; empty where it cannot be read.
      points: the lines of metrics.jsonl, in order.
      lost_lines: how many of its lines could not be read, without a last one that is half written.
      has_metrics: whether there is such a file.
      previews: {preview: [(step, place of the picture)]}.
      checkpoints: steps, in order.
      evaluation: what evaluation.json holds; None where there is none.
      events: rollbacks, collapses and the like, as far as the folder tells of them.
      holder: who trains in the folder now, in words; empty: nobody.
    """

    path: Path
    config: str
    values: Mapping[str, str]
    manifest: Mapping[str, Any]
    points: Sequence[Point]
    lost_lines: int
    has_metrics: bool
    previews: Mapping[str, Sequence[tuple[int, Path]]]
    checkpoints: Sequence[int]
    evaluation: Any
    events: Sequence[Event]
    holder: str

    @property
    def name(self) -> str:
        """What the run is called: its folder's name."""
        return self.path.resolve().name

    @property
    def starts(self) -> list[Mapping[str, Any]]:
        """Every start of the run, in order."""
        starts = self.manifest.get("starts")
        return [start for start in starts if isinstance(start, dict)] if isinstance(starts, list) else []

    @property
    def data(self) -> Mapping[str, Any]:
        """The spec of the data; empty where it is not told."""
        return self._told("data")

    @property
    def networks(self) -> dict[str, int]:
        """How many parameters each network has; empty where that is not told."""
        return {name: count for name, count in self._told("networks").items() if isinstance(count, int)}

    @property
    def sources(self) -> dict[str, str]:
        """Where the value of each binding comes from; empty where that is not told."""
        return {name: str(place) for name, place in self._told("sources").items()}

    @property
    def versions(self) -> str:
        """The packages and their versions, in one line; empty where they are not told."""
        return ", ".join(f"{name} {version}" for name, version in self._told("versions").items())

    def _told(self, key: str) -> Mapping[str, Any]:
        value = self.manifest.get(key)
        return value if isinstance(value, dict) else {}

    @property
    def history(self) -> Path | None:
        """The place of history.png."""
        place = self.path / "history.png"
        return place if place.is_file() else None

    @property
    def last_written(self) -> str:
        """When metrics.jsonl was last written, as a start's time is told; empty where there is none."""
        try:
            written = (self.path / "metrics.jsonl").stat().st_mtime
        except OSError:
            return ""
        return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(written))

    @property
    def step(self) -> int:
        """The last step that anything in the folder tells of."""
        drawn = [step for pictures in self.previews.values() for step, _ in pictures]
        return max([0, *self.checkpoints, *drawn, *(int(point["step"]) for point in self.points[-1:])])

    def value(self, name: str) -> str:
        """Return the value of a binding, behind its macro; empty where there is none."""
        value = self.values.get(name, "")
        return self.values.get(value[1:], value) if value.startswith("%") else value

    def number(self, name: str) -> int | None:
        """Return the value of a binding as a whole number; None where it is none."""
        value = self.value(name)
        return int(value) if re.fullmatch(r"-?\d+", value) else None


class Commit(NamedTuple):
    """The source tree of a start."""

    name: str  # "": not told
    is_dirty: bool  # it held changes that no commit has


def commit_of(start: Mapping[str, Any]) -> Commit:
    """Return what a start tells of its source tree."""
    name, dirty, _ = str(start.get("commit") or "").partition("-dirty")
    return Commit(name, bool(dirty))


def read(folder: str | Path) -> RunFacts:
    """Return what a run folder tells."""
    path = Path(folder)
    config = _text(path / "config.gin")
    manifest = _json(path / "manifest.json")
    manifest = manifest if isinstance(manifest, dict) else {}
    points, lost = _points(path / "metrics.jsonl")
    return RunFacts(
        path=path,
        config=config,
        values=_values(config),
        manifest=manifest,
        points=points,
        lost_lines=lost,
        has_metrics=(path / "metrics.jsonl").is_file(),
        previews=_previews(path),
        checkpoints=sorted(int(one.name[5:]) for one in path.glob("checkpoints/step-*") if one.name[5:].isdecimal()),
        evaluation=_json(path / "evaluation.json"),
        events=_events(path, manifest),
        holder=_holder(path / run_lock.NAME),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace") if path.is_file() else ""  # a device would have no end
    except OSError:
        return ""


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path) or "null")
    except ValueError:
        return None


def _lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the JSON objects of a file, one a line, and how many whole lines are none."""
    found, lost = [], 0
    for line in _text(path).splitlines(keepends=True):
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            found.append(value)
        elif line.endswith("\n") and line.strip():
            lost += 1
    return found, lost


def _points(path: Path) -> tuple[list[Point], int]:
    lines, lost = _lines(path)
    points: list[Point] = [
        {name: value for name, value in line.items() if isinstance(value, (int, float))}
        for line in lines
        if isinstance(line.get("step"), int)
    ]
    return points, lost + len(lines) - len(points)


def _values(config: str) -> dict[str, str]:
    try:
        return {name: value for name, (value, _) in configs.values(config).items()}
    except Exception:  # a config of another version, or one edited by hand: the page shows the text all the same
        return {}


def _previews(path: Path) -> dict[str, list[tuple[int, Path]]]:
    found: dict[str, list[tuple[int, Path]]] = {}
    for picture in sorted(path.glob(f"*/{_PICTURE}")):
        if picture.parent.name != "history":  # rows of history.png
            found.setdefault(picture.parent.name, []).append((int(picture.stem), picture))
    return found


def _events(path: Path, manifest: Mapping[str, Any]) -> list[Event]:
    """Return what manifest.json and files of JSON lines tell of events, whatever keys they have."""
    found: list[Event] = []
    for key, value in manifest.items():
        if any(word in key.lower() for word in _EVENT_KEYS):
            for one in value if isinstance(value, list) else [value]:
                found.append(one if isinstance(one, dict) else {key: one})
    for file in sorted(path.glob("*.jsonl")):
        if any(word in file.stem.lower() for word in _EVENT_KEYS):
            found += _lines(file)[0]
    return found


def _holder(lock: Path) -> str:
    """Return who holds the lock file; empty where nobody does, or a process of this host that is gone."""
    holder = _json(lock)
    if not isinstance(holder, dict) or not isinstance(holder.get("pid"), int):
        return ""
    if holder.get("host") == socket.gethostname():
        try:
            os.kill(holder["pid"], 0)
        except ProcessLookupError:
            return ""
        except OSError:
            pass  # it lives, and is another user's
    return f"process {holder['pid']} on {holder.get('host')}, since {holder.get('since')}"
