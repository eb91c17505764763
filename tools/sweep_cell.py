"""One cell of a sweep: trained and sampled by processes of their own, scored here, remembered in its folder.

A cell's folder is the run folder of its training, and holds beside it

    log.txt       what the processes said
    samples.npz   the images that are scored
    cell.json     the configuration's fingerprint; then the seconds; then the scores: what is there is not done again
"""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from components.errors import UserError
from tools.sweep_table import Cell

Command = Callable[[Sequence[str], IO[str]], int]  # arguments of pipeline.main, and where its words go: exit status
Scorer = Callable[[Path], Mapping[str, float]]  # of an npz of samples

_MOST_TOLD = 300  # characters of an error
_ERROR = re.compile(r"^(Error: .*|[\w.]+(Error|Exception|Interrupt)\b.*)$", re.MULTILINE)


class Stopped(Exception):
    """The sweep was stopped while this cell ran."""


class Failed(Exception):
    """A process of the cell ended with a status other than 0; the message is its last error."""


@dataclass(frozen=True)
class Outcome:
    """What came of a cell.

    Attributes:
      cell: which one.
      scores: {accuracy, frechet, variety, seconds}; empty where it failed.
      about: versions, data and hardware of the training, as its run folder tells them.
      failure: the last line of its error; empty where it was scored.
      is_new: whether anything was done, or all was there already.
    """

    cell: Cell
    scores: Mapping[str, float | None] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    failure: str = ""
    is_new: bool = True


class Processes:
    """Runs `python -m pipeline.main` with arguments, from any thread, until it is stopped."""

    def __init__(self) -> None:
        """Nothing runs."""
        self._running: set[subprocess.Popen] = set()
        self._lock = threading.Lock()
        self._is_stopped = False

    def __call__(self, arguments: Sequence[str], log: IO[str]) -> int:
        """Return the exit status of the program; raises Stopped where `stop` came before its end."""
        with self._lock:
            if self._is_stopped:
                raise Stopped
            process = subprocess.Popen(
                [sys.executable, "-m", "pipeline.main", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C reaches it through `stop` only: a second would forbid it to save
            )
            self._running.add(process)
        status = process.wait()
        with self._lock:
            self._running.remove(process)
            if self._is_stopped:
                raise Stopped
        return status

    def stop(self) -> None:
        """Ask what runs to save and end, once, and start nothing more."""
        with self._lock:
            if not self._is_stopped:
                for process in self._running:
                    process.send_signal(signal.SIGTERM)  # not SIGINT: what a shell began with `&` is deaf to it
            self._is_stopped = True


def run(cell: Cell, workdir: Path, *, scoring: str, num_images: int, command: Command, scorer: Scorer) -> Outcome:
    """Do what is not yet done of a cell; a run of another configuration that its folder holds is deleted.

    Args:
      cell: which one.
      workdir: of the sweep.
      scoring: says how it is scored; scores that were made otherwise are made again.
      num_images: to score.
      command: trains and samples.
      scorer: scores.

    Raises:
      Stopped: the sweep was stopped.
    """
    folder = workdir / cell.folder
    notes = _notes(folder)
    if is_of_another(cell, workdir):
        from pipeline.run_folder import RunFolder  # TensorFlow is loaded only where a table was found good

        old = RunFolder(folder)
        with old.locked():
            old.clear()
        notes = {}
    if is_done(cell, workdir, scoring):
        return Outcome(cell, notes["scores"], notes["about"], is_new=False)
    folder.mkdir(parents=True, exist_ok=True)
    notes["config"] = cell.fingerprint
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        start = log.tell()
        try:
            if "seconds" not in notes or not any((folder / "checkpoints").glob("step-*")):
                _write(folder, notes)
                _call(command, _training(cell, folder), log)
                notes |= {"seconds": _seconds(folder, cell.steps), "about": _about(folder)}
                _write(folder, notes)
            _call(command, _sampling(folder, num_images), log)
            scores = {**scorer(folder / "samples.npz"), "seconds": notes["seconds"]}
        except (Failed, UserError) as error:  # the latter: samples that are no digits
            log.flush()
            said = (folder / "log.txt").read_bytes()[start:].decode(errors="replace")
            return Outcome(cell, failure=_last_error(said, str(error), workdir))
    _write(folder, notes | {"scoring": scoring, "scores": scores})
    return Outcome(cell, scores, notes["about"])


def is_done(cell: Cell, workdir: Path, scoring: str) -> bool:
    """Return whether a cell has its scores, made as they are to be made, and nothing is left to do."""
    notes = _notes(workdir / cell.folder)
    return notes.get("config") == cell.fingerprint and notes.get("scoring") == scoring and "scores" in notes


def is_of_another(cell: Cell, workdir: Path) -> bool:
    """Return whether a cell's folder holds a training of another configuration."""
    return _notes(workdir / cell.folder).get("config", cell.fingerprint) != cell.fingerprint


def _notes(folder: Path) -> dict[str, Any]:
    """Return what cell.json holds; {} where there is none, or none that can be read."""
    try:
        notes = json.loads((folder / "cell.json").read_text())
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


def _write(folder: Path, notes: Mapping[str, Any]) -> None:
    """Write cell.json so that a kill leaves the old one or the new one."""
    growing = folder / "cell.json.writing"
    growing.write_text(json.dumps(notes, indent=2) + "\n")
    growing.replace(folder / "cell.json")


def _training(cell: Cell, folder: Path) -> list[str]:
    params = [f"--gin_param={param}" for param in cell.params]
    return [f"--gin_file={cell.variant.gin_file}", *params, f"--workdir={folder}"]


def _sampling(folder: Path, num_images: int) -> list[str]:
    place = folder / "samples.npz"
    return ["--mode=sample", f"--workdir={folder}", f"--num_images={num_images}", f"--output={place}"]


def _call(command: Command, arguments: Sequence[str], log: IO[str]) -> None:
    status = command(arguments, log)
    if status < 0:
        raise Failed(f"ended by {signal.Signals(-status).name}")
    if status:
        raise Failed(f"exit status {status}")


def _manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text())


def _seconds(folder: Path, steps: int) -> float | None:
    """Return the seconds of all steps, from the last start, which is noted just before its first step, to now.

    Of a run that went on from a checkpoint the steps before are counted as if they had been as fast. None where the
    last start had no step to do.
    """
    last = _manifest(folder)["starts"][-1]
    spent = datetime.now().astimezone() - datetime.fromisoformat(last["time"])
    return round(spent.total_seconds() * steps / (steps - last["step"]), 1) if last["step"] < steps else None


def _about(folder: Path) -> dict[str, Any]:
    """Return what the document tells of the training: nothing of the machine but its kind."""
    manifest = _manifest(folder)
    data = manifest["data"]
    return {
        "versions": manifest["versions"],
        "data": f"{data['name']} ({data['split']}), fingerprint {data['fingerprint']}",
        "hardware": manifest["starts"][-1]["hardware"],
    }


def _last_error(said: str, otherwise: str, workdir: Path) -> str:
    """Return the last error of a log, in one line without the sweep's folder."""
    found = [match[0] for match in _ERROR.finditer(said)]
    told = found[-1].removeprefix("Error: ") if found else otherwise
    told = " ".join(told.replace(f"{workdir}/", "").split())
    return told if len(told) <= _MOST_TOLD else told[: _MOST_TOLD - 3] + "..."
