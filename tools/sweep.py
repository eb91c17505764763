"""Trains a small table of variants x seeds, one process after the other, and writes how they compare.

    python -m tools.sweep docs/zoo/digits.toml --workdir=runs/zoo --output=docs/zoo.md

TABLE is a file of TOML; docs/zoo/digits.toml shows what stands in one. It is checked whole, every line of gin included,
before anything is trained. The same command goes on with a sweep that was stopped: what is scored is not done again, a
training that was stopped goes on from its checkpoint, and what failed is tried again. A cell that fails is told in the
document and stops no other. Press Ctrl-C to stop: what runs is saved.

Exit status: 0 the document is written; 2 a mistake in what was asked; 130 and 143 stopped by SIGINT and SIGTERM.
"""

import argparse
import shlex
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from components.errors import UserError
from pipeline import quiet
from pipeline.stop import StopSignal
from tools import command_line, score_digits, sweep_cell, sweep_table
from tools.sweep_cell import Outcome
from tools.sweep_report import Real, document
from tools.sweep_table import Cell, Table

# Nothing here imports TensorFlow before the table is read: a mistake in it is told at once.

_SCORING = "1"  # count up when what is told of a cell's samples changes
_LOOK_SECONDS = 0.2  # between two looks whether a signal has come


def main(argv: Sequence[str] | None = None) -> int:
    """Do what `argv` asks; return the exit status."""
    arguments = _parser().parse_args(argv)
    workdir = Path(arguments.workdir)
    output = Path(arguments.output) if arguments.output else workdir / "sweep.md"
    try:
        table = sweep_table.read(arguments.table)
        quiet.start()
        cells = sweep_table.cells(table)
        if not arguments.overwrite:
            refuse_others(cells, workdir)
        words = [_portable(Path(arguments.table)), "--workdir=DIR", f"--output={_portable(output)}"]
        command = shlex.join(["python", "-m", "tools.sweep", *words])
        return _sweep(table, cells, workdir, output, jobs=arguments.jobs, command=command)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser("sweep", __doc__)
    parser.add_argument("table", metavar="TABLE", help="a TOML file of variants and seeds")
    parser.add_argument("--workdir", required=True, help="holds VARIANT/seed-N, the run folder of each cell")
    parser.add_argument("--output", help="the document; without it: sweep.md in --workdir")
    parser.add_argument("--jobs", type=_count, default=1, help="cells that run at a time; without it: 1")
    parser.add_argument("--overwrite", action="store_true", help="delete what --workdir holds of other configurations")
    return parser


def _portable(path: Path) -> str:
    """Return a path that says nothing of this machine: as given where it is relative, else the name alone."""
    return path.name if path.is_absolute() or ".." in path.parts else str(path)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a count of at least 1 is needed. Received {text}.")
    return int(text)


def refuse_others(cells: Sequence[Cell], workdir: Path) -> None:
    """Raise UserError where folders hold cells of other configurations."""
    others = [cell.name for cell in cells if sweep_cell.is_of_another(cell, workdir)]
    if others:
        raise UserError(
            f"A cell's folder holds one configuration. In {workdir} these hold another: {'; '.join(others)}. Choose "
            "another --workdir, undo what has changed, or delete them and train anew with --overwrite."
        )


def _sweep(table: Table, cells: Sequence[Cell], workdir: Path, output: Path, *, jobs: int, command: str) -> int:
    """Run the cells, one process each, and write the document; return the exit status."""
    measure = score_digits.yardstick()
    processes = sweep_cell.Processes()

    def run(cell: Cell) -> Outcome:
        return sweep_cell.run(
            cell,
            workdir,
            scoring=f"{_SCORING}: {table.sweep.num_images} images, classifier {measure.recipe}",
            num_images=table.sweep.num_images,
            command=processes,
            scorer=Scorer(measure),
        )

    with StopSignal() as stop:
        outcomes = run_all(cells, run, is_stopped=lambda: bool(stop.requested), stop=processes.stop, jobs=jobs)
    if stop.requested:
        print(f"Stopped: {len(outcomes)} of {len(cells)} cells are done. The same command goes on from there.")
        return stop.exit_status
    scored, block = measure.real(table.sweep.num_images), score_digits.block_of(table.sweep.num_images)
    real = Real(scored.count, len(measure.learnt), scored.accuracy, scored.frechet, block)
    _write(output, document(table, outcomes, real, command=command, jobs=jobs))
    failed = sum(1 for one in outcomes if one.failure)
    print(f"Done: {len(outcomes) - failed} cells scored, {failed} failed. The table is in {output}.")
    return 0


def run_all(
    cells: Sequence[Cell],
    run: Callable[[Cell], Outcome],
    *,
    is_stopped: Callable[[], bool],
    stop: Callable[[], None],
    jobs: int = 1,
) -> list[Outcome]:
    """Return the outcomes of the cells that ended, in the cells' order; a line is printed as each ends.

    Args:
      cells: to run.
      run: runs one; raises `sweep_cell.Stopped` where it was stopped.
      is_stopped: asked again and again; the main thread is kept free for signals.
      stop: called when so; no other cell is begun then.
      jobs: cells that run at a time.
    """
    ended: list[str] = []

    def tell(cell: Cell) -> Outcome:
        begun = time.monotonic()
        outcome = run(cell)
        ended.append(cell.name)
        place = f"[{len(ended):{len(str(len(cells)))}}/{len(cells)}]"
        print(f"{place} {cell.name}: {_told(outcome, time.monotonic() - begun)}", flush=True)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(tell, cell) for cell in cells]
        reached = futures
        while wait(reached, timeout=_LOOK_SECONDS).not_done:
            if is_stopped() or any(one.done() and _is_fault(one.exception()) for one in reached):
                stop()
                pool.shutdown(wait=False, cancel_futures=True)
                reached = [one for one in futures if not one.cancelled()]  # `wait` would wait for the others for ever
    return [one.result() for one in reached if not isinstance(one.exception(), sweep_cell.Stopped)]


def _is_fault(error: BaseException | None) -> bool:
    """Return whether an error is this program's: it ends the sweep, as the others' time would be lost on it."""
    return error is not None and not isinstance(error, sweep_cell.Stopped)


def _told(outcome: Outcome, seconds: float) -> str:
    if outcome.failure:
        return f"failed: {outcome.failure}"
    scores = outcome.scores
    read = f"{scores['accuracy']:.1%} read as asked, " if outcome.cell.variant.conditional else ""
    return f"{read}Fréchet distance {scores['frechet']:.1f}, {f'{seconds:.0f} s' if outcome.is_new else 'done before'}"


class Scorer:
    """Scores an npz of samples; one at a time, whatever thread asks."""

    _lock = threading.Lock()

    def __init__(self, measure: score_digits.Yardstick) -> None:
        """Hold what is measured by."""
        self._measure = measure
        self._real = measure.real()

    def __call__(self, path: Path) -> dict[str, float]:
        """Return {accuracy, frechet, variety}; raises UserError for samples that are no digits."""
        with self._lock:
            found = self._measure.score(score_digits.read_samples(str(path)))
        return {
            "accuracy": found.accuracy,
            "frechet": found.frechet,
            "variety": found.variety_least / self._real.variety_least,
        }


def _write(output: Path, text: str) -> None:
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"`--output` must be a file that can be written. Received {output}: {error}.") from error


if __name__ == "__main__":
    sys.exit(main())
