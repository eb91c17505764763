"""A sweep: what is done is not done again, what fails stops no other, and the document says what was found."""

import dataclasses
import json
import math
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from components.errors import UserError
from tools import score_digits, sweep, sweep_cell
from tools.sweep_cell import Outcome
from tools.sweep_report import Real, document
from tools.sweep_table import Cell, Sweep, Table, Variant

SCORES = {"accuracy": 0.98, "frechet": 12.5, "variety": 0.9}
ABOUT = {"versions": {"keras": "3.15"}, "data": "mnist_5k (train), fingerprint f", "hardware": "this CPU (2 cores)"}


def variant(name: str, **values) -> Variant:
    return Variant(name=name, doc=f"the {name} one", gin_file="quickstart.gin", **values)


def cell(name: str = "hinge", seed: int = 0, fingerprint: str = "c0", **values) -> Cell:
    return Cell(variant(name, **values), seed, 10, ("TRAIN_STEPS = 10", f"SEED = {seed}"), fingerprint)


class Program:
    """Stands for pipeline.main: writes what it would write, and ends with the statuses given."""

    def __init__(self, *statuses: int, says: str = "", start: int = 0) -> None:
        self.calls: list[list[str]] = []
        self._statuses, self._says, self._start = list(statuses), says, start

    def __call__(self, arguments: Sequence[str], log: IO[str]) -> int:
        self.calls.append(list(arguments))
        status = self._statuses.pop(0) if self._statuses else 0
        log.write(self._says)
        folder = Path(next(one for one in arguments if one.startswith("--workdir=")).partition("=")[2])
        started = {"step": self._start, "time": datetime.now().astimezone().isoformat(), "hardware": "this CPU"}
        data = {"name": "mnist_5k", "split": "train", "fingerprint": "f"}
        manifest = {"versions": {"keras": "3"}, "data": data, "starts": [started]}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        if "--mode=sample" not in arguments:
            (folder / "checkpoints" / "step-000000010").mkdir(parents=True, exist_ok=True)
        return status

    @property
    def modes(self) -> list[str]:
        return ["sample" if "--mode=sample" in call else "train" for call in self.calls]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Outcome]:
    def run(one: Cell, program: Program, scoring: str = "s", scorer: sweep_cell.Scorer = lambda path: SCORES):
        return sweep_cell.run(one, tmp_path, scoring=scoring, num_images=20, command=program, scorer=scorer)

    return run


def test_run_trains_samples_and_scores(run, tmp_path: Path) -> None:
    program = Program(says="step 10/10\n")
    outcome = run(cell(), program)
    assert program.modes == ["train", "sample"]
    folder = tmp_path / "hinge" / "seed-0"
    assert program.calls[0] == [
        "--gin_file=quickstart.gin",
        "--gin_param=TRAIN_STEPS = 10",
        "--gin_param=SEED = 0",
        f"--workdir={folder}",
    ]
    assert "--num_images=20" in program.calls[1]
    assert outcome.scores["frechet"] == 12.5
    assert 0.0 <= outcome.scores["seconds"] < 5.0
    assert outcome.about["data"] == "mnist_5k (train), fingerprint f"
    assert (folder / "log.txt").read_text() == "step 10/10\n" * 2


def test_run_of_a_finished_cell_does_nothing(run) -> None:
    first = run(cell(), Program())
    again = run(cell(), program := Program())
    assert not program.calls
    assert (again.scores, again.about, again.is_new) == (first.scores, first.about, False)


def test_run_with_another_scoring_samples_only(run) -> None:
    first = run(cell(), Program())
    again = run(cell(), program := Program(), scoring="t")
    assert program.modes == ["sample"]
    assert again.scores["seconds"] == first.scores["seconds"]


def test_run_after_a_failed_sampling_does_not_train_again(run) -> None:
    assert run(cell(), Program(0, 1)).failure == "exit status 1"
    assert run(cell(), program := Program()).scores
    assert program.modes == ["sample"]


def test_run_of_another_configuration_deletes_the_run_of_the_old_one(run, tmp_path: Path) -> None:
    run(cell(), Program())
    folder = tmp_path / "hinge" / "seed-0"
    (folder / "checkpoints" / "of-the-old-one").mkdir()
    run(cell(fingerprint="c1"), program := Program())
    assert program.modes == ["train", "sample"]
    assert not (folder / "checkpoints" / "of-the-old-one").exists()


def test_run_that_lost_its_checkpoints_or_its_notes_is_trained_again(run, tmp_path: Path) -> None:
    assert run(cell(), Program(0, 1)).failure
    (tmp_path / "hinge" / "seed-0" / "checkpoints" / "step-000000010").rmdir()
    assert run(cell(), program := Program()).scores
    assert program.modes == ["train", "sample"]
    (tmp_path / "hinge" / "seed-0" / "cell.json").write_text("[]")
    assert run(cell(), program := Program()).scores
    assert program.modes == ["train", "sample"]


def test_refuse_others_names_the_cells_of_another_configuration(run, tmp_path: Path) -> None:
    run(cell(), Program())
    sweep.refuse_others([cell(), cell(seed=1)], tmp_path)
    with pytest.raises(UserError, match=r"hold another: hinge, seed 0\. .*--overwrite"):
        sweep.refuse_others([cell(fingerprint="c1"), cell(seed=1)], tmp_path)


@pytest.mark.parametrize(
    ("status", "says", "told"),
    [
        (2, "Data: x\nError: Training needs finite numbers. At or before step 5.\n", "Training needs finite numbers. "),
        (1, "Traceback\n  File\nValueError: shapes differ\n\nA fault of the program\n", "ValueError: shapes differ"),
        (1, "a.b.SomeError: first\nOtherError: second\n", "OtherError: second"),
        (3, "nothing to see\n", "exit status 3"),
        (-9, "step 5/10\n", "ended by SIGKILL"),
        (2, f"Error: {'x' * 1000}\n", "x" * 100),
    ],
)
def test_run_that_fails_tells_its_last_error(status: int, says: str, told: str, run) -> None:
    outcome = run(cell(), Program(status, says=says))
    assert outcome.failure.startswith(told)
    assert len(outcome.failure) <= 300
    assert not outcome.scores


def test_run_that_fails_tells_no_path_and_no_error_of_an_earlier_start(run, tmp_path: Path) -> None:
    run(cell(), Program(2, says="Error: the first time.\n"))
    assert run(cell(), Program(4)).failure == "exit status 4"
    outcome = run(cell(), Program(2, says=f"Error: {tmp_path}/hinge/seed-0 holds another.\n"))
    assert outcome.failure == "hinge/seed-0 holds another."


def test_run_of_samples_that_are_no_digits_fails(run) -> None:
    def refuse(path: Path) -> dict[str, float]:
        raise UserError("Samples are an npz file.")

    assert run(cell(), Program(), scorer=refuse).failure == "Samples are an npz file."


@pytest.mark.parametrize(("start", "seconds"), [(0, 4.0), (5, 8.0), (10, None)])
def test_seconds_are_those_of_all_steps(start: int, seconds: float | None, tmp_path: Path) -> None:
    begun = datetime.fromtimestamp(time.time() - 4).astimezone().isoformat()
    (tmp_path / "manifest.json").write_text(json.dumps({"starts": [{"step": start, "time": begun}]}))
    assert sweep_cell._seconds(tmp_path, 10) == pytest.approx(seconds, abs=1.0)


def test_run_all_goes_on_after_a_failure_and_tells_each(run, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [cell(seed=seed) for seed in range(3)]
    outcomes = sweep.run_all(
        cells,
        lambda one: run(one, Program(2 * (one.seed == 1), says="Error: NaN.\n")),
        is_stopped=lambda: False,
        stop=lambda: None,
    )
    assert [bool(one.failure) for one in outcomes] == [False, True, False]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[1/3] hinge, seed 0: 98.0% read as asked, Fréchet distance 12.5, 0 s")
    assert lines[1] == "[2/3] hinge, seed 1: failed: NaN."


def test_run_all_stopped_ends_what_runs_and_begins_no_other() -> None:
    stopped, begun = threading.Event(), []

    def work(one: Cell) -> Outcome:
        begun.append(one.seed)
        if one.seed == 0:
            return Outcome(one, SCORES)
        stopped.wait(10)
        raise sweep_cell.Stopped

    cells = [cell(seed=seed) for seed in range(4)]
    outcomes = sweep.run_all(cells, work, is_stopped=lambda: len(begun) == 2, stop=stopped.set)
    assert [one.cell.seed for one in outcomes] == [0]
    assert begun == [0, 1]


def test_run_all_with_a_fault_of_ours_raises_it() -> None:
    def work(one: Cell) -> Outcome:
        raise RuntimeError("ours")

    with pytest.raises(RuntimeError, match="ours"):
        sweep.run_all([cell(seed=seed) for seed in range(3)], work, is_stopped=lambda: False, stop=lambda: None)


def test_processes_stopped_are_asked_to_save_and_start_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    popen, started = subprocess.Popen, []
    # The child is deaf to SIGINT, as all that a shell begins with `&` is, and says that it is on once it can be asked.
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('saved')))\n"
        "print('on', flush=True)\n"
        "time.sleep(30)"
    )

    def fake(command: list[str], **values) -> subprocess.Popen:
        started.append(popen([sys.executable, "-c", code], **values))
        return started[-1]

    monkeypatch.setattr(sweep_cell.subprocess, "Popen", fake)
    processes, place = sweep_cell.Processes(), tmp_path / "log.txt"

    def stop_when_on() -> None:
        while "on" not in place.read_text():
            time.sleep(0.01)
        processes.stop()
        processes.stop()

    with place.open("w") as log:
        thread = threading.Thread(target=stop_when_on)
        thread.start()
        with pytest.raises(sweep_cell.Stopped):
            processes([], log)
        thread.join()
        with pytest.raises(sweep_cell.Stopped):
            processes([], log)
    assert len(started) == 1
    assert place.read_text() == "on\nsaved\n"


def table() -> Table:
    quoting = ["gan.alternating.loss = @adversarial.hinge", "tfds_source.TFDSSource.name = 'mnist_5k'"]
    variants = [variant("plain"), variant("hinge", params=quoting), variant("vae", conditional=False), variant("lost")]
    shared = Sweep(title="Four", doc="What for.", steps=10, seeds=[0, 1], num_images=1000, params=["LATENT_DIM = 3"])
    return Table(sweep=shared, variant=variants)


def outcomes_of(of: Table) -> list[Outcome]:
    frechet = {"plain": 20.0, "hinge": 10.0, "vae": 30.0}
    found = []
    for one in of.variant:
        for seed in of.sweep.seeds:
            where = Cell(one, seed, 10, (), "c")
            if one.name == "lost":
                found.append(Outcome(where, failure=f"NaN | at step {seed}"))
                continue
            scores = {"accuracy": 0.9 + 0.02 * seed, "frechet": frechet[one.name] + 2 * seed, "variety": 0.8}
            found.append(Outcome(where, scores | {"seconds": 10.0 if one.name == "plain" else 25.0}, ABOUT))
    return found


READ = "91.0% (90.0% to 92.0%)"
REAL = Real(count=1000, learnt=4000, accuracy=0.99, frechet=3.25, block=1000)


def test_document_sorts_by_distance_and_shows_means_and_spreads() -> None:
    of = table()
    text = document(of, outcomes_of(of), REAL, command="python -m tools.sweep t.toml", jobs=1)
    assert text.startswith("<!-- Written by `python -m tools.sweep t.toml`; do not edit. -->\n\n# Four\n\nWhat for.\n")
    rows = [line for line in text.splitlines() if line.startswith("| *")]
    assert rows == [
        "| *real digits, held out* | 99.0% | 3.2 | 1.00 | - |",
        f"| **hinge**: the hinge one | {READ} | 11.0 (10.0 to 12.0) | 0.80 (0.80 to 0.80) | 2 of 2 |",
        f"| **plain**: the plain one | {READ} | 21.0 (20.0 to 22.0) | 0.80 (0.80 to 0.80) | 2 of 2 |",
        "| **vae**: the vae one | - | 31.0 (30.0 to 32.0) | - | 2 of 2 |",
        "| **lost**: the lost one | - | - | - | 0 of 2 |",
    ]
    assert "- lost, seed 1: failed: NaN \\| at step 1\n" in text
    assert "- steps: 10; seeds: 0, 1; images scored per cell: 1,000" in text
    assert "- classifier: reads 99.00% of 1,000 real digits" in text
    assert "- versions: keras 3.15\n" in text
    assert "- hardware: this CPU (2 cores)\n" in text


def test_document_tells_each_variants_lines_as_a_command() -> None:
    of = table()
    text = document(of, outcomes_of(of), REAL, command="x", jobs=2)
    assert (
        """\
python -m pipeline.main --gin_file=quickstart.gin --workdir=runs/hinge \\
    --gin_param="LATENT_DIM = 3" \\
    --gin_param="gan.alternating.loss = @adversarial.hinge" \\
    --gin_param="tfds_source.TFDSSource.name = 'mnist_5k'" \\
    --gin_param="TRAIN_STEPS = 10" \\
    --gin_param="SEED = 0"
"""
        in text
    )
    assert "- cells at a time: 2" in text


def test_document_of_a_failed_variant_and_unequal_versions_says_so() -> None:
    of = table()
    found = [one if one.cell.variant.name != "plain" else Outcome(one.cell, failure="x") for one in outcomes_of(of)]
    other = {**ABOUT, "versions": {"keras": "3.16"}}
    found[-3] = dataclasses.replace(found[-3], about=other, scores={**found[-3].scores, "frechet": math.nan})
    text = document(of, found, REAL, command="x", jobs=1)
    assert "| **hinge**: the hinge one | 91.0% (90.0% to 92.0%) | 11.0 (10.0 to 12.0) | 0.80 (0.80 to 0.80) | 2" in text
    assert "| **vae**: the vae one | - | 30.0 | - | 2 of 2 |" in text
    assert "| **plain**: the plain one | - | - | - | 0 of 2 |" in text
    assert "- versions: keras 3.15 and 3.16" in text


TINY = """
[sweep]
title = "Tiny"
steps = 2
seeds = [0]
num_images = 40
params = [
    "GLOBAL_BATCH_SIZE = 8",
    "tfds_source.TFDSSource.name = 'mnist_5k'",
]

[[variant]]
name = "gan"
doc = "narrow"
gin_file = "quickstart.gin"
params = ["dcgan.generator.widths = (4, 4)", "dcgan.discriminator.widths = (4, 4)"]

[[variant]]
name = "vae"
doc = "of few latents"
gin_file = "vae_tpu.gin"
conditional = false
params = ["strategy.select.name = 'one_device'", "LATENT_DIM = 2"]
"""


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


@pytest.mark.slow
def test_sweep_of_two_tiny_cells_writes_a_table_and_does_nothing_the_second_time(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(repository))
    monkeypatch.setattr(score_digits, "_TRAIN_STEPS", 62)
    monkeypatch.setattr(sweep.quiet, "start", lambda: None)
    (tmp_path / "tiny.toml").write_text(TINY)
    arguments = [str(tmp_path / "tiny.toml"), f"--workdir={tmp_path / 'runs'}", f"--output={tmp_path / 'docs/tiny.md'}"]
    before = handlers()
    assert sweep.main(arguments) == 0
    assert handlers() == before
    out = capsys.readouterr().out
    assert re.search(r"\[1/2\] gan, seed 0: .* read as asked, Fréchet distance \d+\.\d, \d+ s", out), out
    assert re.search(r"\[2/2\] vae, seed 0: Fréchet distance", out)
    assert "Done: 2 cells scored, 0 failed." in out
    written = (tmp_path / "docs" / "tiny.md").read_text()
    assert "| **gan**: narrow |" in written
    assert "python -m tools.sweep tiny.toml --workdir=DIR --output=tiny.md" in written
    assert str(tmp_path) not in written
    assert "1 of 1" in written
    assert np.load(tmp_path / "runs" / "vae" / "seed-0" / "samples.npz")["images"].shape == (40, 28, 28, 1)
    assert "step 2/2" in (tmp_path / "runs" / "gan" / "seed-0" / "log.txt").read_text()

    assert sweep.main(arguments) == 0
    assert capsys.readouterr().out.count("done before") == 2
    assert (tmp_path / "docs" / "tiny.md").read_text() == written
