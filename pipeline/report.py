"""Mode report: the page of a run, or one that compares runs; and the page that a run in training keeps up to date."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from components.errors import UserError, storage_fault
from pipeline.reporting import comparison_page, facts, run_page

NAME = "report.html"
_COMPARISON = "comparison.html"
_SHARE_OF_TIME = 0.05  # at most, that a run in training spends on its page


def report(workdir: Sequence[str], *, output: str | None) -> int:
    """Write the page of a run, or one that compares several.

    Args:
      workdir: run folders.
      output: FILE.html; None: report.html in the run folder, or comparison.html where the program was called.

    Returns:
      The exit status, 0.

    Raises:
      UserError: a folder that holds no run, one that is named twice, or a place that cannot be written.
    """
    folders = [Path(one) for one in workdir]
    for folder in folders:
        _require_run(folder)
    resolved = [folder.resolve() for folder in folders]
    if twice := [folder for folder in folders if resolved.count(folder.resolve()) > 1]:
        raise UserError(f"`--workdir` names each run once. Received twice: {twice[0]}. Leave one out.")
    place = Path(output) if output else folders[0] / NAME if len(folders) == 1 else Path(_COMPARISON)
    if place.suffix not in (".html", ".htm"):
        raise UserError(f"`--output` of a report is FILE.html. Received {output!r}. Use {place.stem}.html.")
    runs = [facts.read(folder) for folder in folders]
    beside = place.parent
    text = run_page.write(runs[0], place=beside) if len(runs) == 1 else comparison_page.write(runs, place=beside)
    _write(place, text)
    print(f"The {'report' if len(runs) == 1 else 'comparison'} is {place} ({place.stat().st_size / 2**20:.1f} MB).")
    return 0


class RunReport:
    """Keeps report.html of a run in training up to date; the run never dies of it, but of a disk that fails.

    Args:
      folder: the run folder.
    """

    def __init__(self, folder: Path) -> None:
        """Hold the place; nothing is written."""
        self._folder = folder
        self._next = 0.0  # when enough has been trained to write again

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write the page, unless the last writing was long for the time since."""
        if time.monotonic() >= self._next:
            self._rewrite()

    def close(self, fault: str = "") -> None:
        """Write the page of a run that has ended, by a fault where one is told."""
        self._rewrite(is_over=True, fault=fault)

    def _rewrite(self, *, is_over: bool = False, fault: str = "") -> None:
        begin = time.monotonic()
        try:
            replace(self._folder / NAME, run_page.write(facts.read(self._folder), is_over=is_over, fault=fault))
        except Exception as error:
            if storage_fault(error) is not None:
                raise
            print(f"{self._folder / NAME} could not be written: {type(error).__name__}: {error}", flush=True)
        end = time.monotonic()
        self._next = end + (end - begin) / _SHARE_OF_TIME


def replace(place: Path, text: str) -> None:
    """Write a page so that a reader, and a kill, find the old one or the new one."""
    growing = place.with_name(place.name + ".writing")
    growing.write_text(text, encoding="utf-8")
    growing.replace(place)


def _write(place: Path, text: str) -> None:
    try:
        replace(place, text)
    except OSError as error:
        raise UserError(f"`--output` must be a place that can be written. {place}: {error.strerror}.") from error


def _require_run(folder: Path) -> None:
    if not (folder / "config.gin").is_file() and not (folder / "manifest.json").is_file():
        raise UserError(f"`--workdir` must name the folder of a run. {folder} holds no config.gin and manifest.json.")
