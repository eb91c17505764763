"""Full disks, folders that vanish, and two processes at one run: each ends with one message, and nothing is lost."""

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from toy_parts import toy_spec

from components.checkpointer.tf_checkpointer import TFCheckpointer
from components.errors import storage_fault
from components.interfaces import Grid, Hardware, Networks, UserError
from components.writers import png_file
from components.writers.event_file import EventFile
from components.writers.metrics_file import MetricsFile
from components.writers.picture_folder import PictureFolder
from pipeline import configs, launch, report
from pipeline.free_to_change import FREE_TO_CHANGE
from pipeline.outlets import Outlets
from pipeline.run_folder import RunFolder
from pipeline.run_lock import NAME, RunLock

CONFIG = SimpleNamespace(operative_text=lambda: "A = 1\n", settings=lambda: [])


class ToyRun:
    """A run of one weight, which is the number of steps it has made."""

    def __init__(self, folder: RunFolder, last: int, is_chief: bool = True) -> None:
        self.weight, self.counter = tf.Variable(0.0), tf.Variable(0, dtype=tf.int64)
        self.checkpointer = TFCheckpointer(str(folder.checkpoints), {"net": [self.weight], "step": [self.counter]})
        self.hardware = Hardware(
            strategy=tf.distribute.get_strategy(), accelerator="cpu", description="", is_chief=is_chief
        )
        every = dict.fromkeys(("steps_per_loop", "log_every", "save_every", "sample_every"), 1)
        flags = {"max_rollbacks": 0, "keeps_report": True, "evaluate_every": None}
        self.experiment = SimpleNamespace(train_steps=last, global_batch_size=1, seed=0, **flags, **every)
        self.networks = Networks({}, toy_spec())
        self.evaluator = None
        self.stepper = SimpleNamespace(batches_per_step=1, run=self.move)
        self.at: dict[int, object] = {}  # {step: what happens in it}

    @property
    def step(self) -> int:
        return int(self.counter)

    def batches(self):
        return iter(())

    def move(self, batches, count: int):
        self.weight.assign_add(count)
        self.counter.assign_add(count)
        self.at.get(self.step, lambda: None)()
        return {"generator/loss": float(self.weight)}


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Return a function that trains a toy run in tmp_path / "run", as the program does, with faults at given steps."""

    def start(last: int = 5, at=None, is_chief: bool = True, **options) -> ToyRun:
        folder = RunFolder(tmp_path / "run")
        run = ToyRun(folder, last, is_chief)
        run.at = at or {}
        writers = [kind(str(folder.path)) for kind in (MetricsFile, EventFile, PictureFolder)]
        outlets = Outlets(previews={"samples": lambda: Grid(np.zeros([1, 2, 2, 1], np.uint8), 1)}, writers=writers)
        monkeypatch.setattr(launch, "assemble", lambda *_, **__: (run, outlets))
        launch.launch(CONFIG, folder.path, **options)
        return run

    return start


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "run"


def no_room(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def steps(folder: Path) -> list[int]:
    return TFCheckpointer(str(folder / "checkpoints"), {}).steps()


# --- the report ------------------------------------------------------------------------------------------------------


def test_report_of_a_run_tells_its_end_and_the_fault_that_ended_it(start, folder) -> None:
    with pytest.raises(UserError, match="lost its way"):
        start(at={3: lambda: (_ for _ in ()).throw(UserError("It lost its way."))})
    assert "failed" in (text := (folder / "report.html").read_text()) and "It lost its way." in text
    start()
    assert "It lost its way." not in (text := (folder / "report.html").read_text()) and "at step 5" in text


def test_report_that_cannot_be_made_ends_no_run_but_a_full_disk_does(start, folder, monkeypatch, capsys) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(report.run_page, "write", lambda *_, **__: 1 / 0)
        start()
    assert steps(folder)[-1] == 5 and "report.html could not be written: ZeroDivisionError" in capsys.readouterr().out
    monkeypatch.setattr(report, "replace", no_room)
    with pytest.raises(UserError, match=r"No space left on device.*Make room"):
        start(last=7)
    assert steps(folder)[-1] == 6  # it was saved before the page was written


# --- a full disk -----------------------------------------------------------------------------------------------------


def full_metrics(folder: Path, monkeypatch) -> None:
    """Let the curves go where the system itself says that there is no room."""
    (folder / "metrics.jsonl").unlink()
    (folder / "metrics.jsonl").symlink_to("/dev/full")


def full_pictures(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(png_file, "write", no_room)


def full_sums(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "fsync", no_room)


def full_weights(folder: Path, monkeypatch) -> None:
    def fail(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "runs/x/variables.data; No space left on device")

    monkeypatch.setattr(tf.train.Checkpoint, "write", fail)


@pytest.mark.parametrize("fill", [full_metrics, full_pictures, full_sums, full_weights])
def test_disk_that_fills_in_training_is_one_message_and_the_run_goes_on_when_there_is_room(
    fill, start, folder, monkeypatch
) -> None:
    with monkeypatch.context() as patch:
        with pytest.raises(UserError, match=r"No space left on device.*Make room.*the same command"):
            start(at={4: lambda: fill(folder, patch)})
    assert steps(folder) == [1, 2, 3]
    assert not list((folder / "checkpoints").glob("writing-*"))
    if fill is full_metrics:
        (folder / "metrics.jsonl").unlink()
    run = start()
    assert run.step == 5 == float(run.weight)


def test_disk_that_fills_while_the_run_starts_is_one_message(start, folder, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_room)
        with pytest.raises(UserError, match="was not started"):
            start()
    assert start().step == 5


def test_disk_that_fills_inside_tensorflow_is_one_message_and_gives_its_room_back(tmp_path) -> None:
    weights = tf.Variable(tf.zeros([1_000_000]))
    checkpointer = TFCheckpointer(str(tmp_path), {"net": [weights]})
    checkpointer.save(1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))  # a write beyond fails, in C++ too
    try:
        with pytest.raises(UserError, match=r"step 2 was not saved .*File too large.*newest whole one is of step 1"):
            checkpointer.save(2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]
    checkpointer.save(2)
    assert checkpointer.steps() == [1, 2]


def test_first_save_without_room_says_that_there_is_no_checkpoint_yet(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(UserError, match="There is none yet"):
        TFCheckpointer(str(tmp_path / "new"), {"net": [tf.Variable(0.0)]}).save(1)


def test_fault_that_is_none_of_a_disk_stays_a_fault_of_the_program(start, folder) -> None:
    def crash(error: Exception):
        def act():
            raise error

        return act

    with pytest.raises(BrokenPipeError):
        start(at={2: crash(BrokenPipeError(errno.EPIPE, "Broken pipe"))})
    assert storage_fault(BrokenPipeError(errno.EPIPE, "Broken pipe")) is None
    assert storage_fault(tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")) is None
    with RunFolder(folder).locked(), pytest.raises(FileNotFoundError):
        with RunFolder(folder).writing(""):
            (folder.parent / "data" / "set").read_text()  # a file of something else


# --- a folder that cannot be written, or is gone ---------------------------------------------------------------------


@pytest.mark.parametrize("place", ["/proc/nothing/run", "file/run", "file"])
def test_workdir_that_cannot_be_made_is_refused(place, tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="must be a folder that can be written"):
        with RunFolder(tmp_path / place).locked():
            pass


def test_read_only_folder_is_refused_before_anything_is_trained(start, monkeypatch) -> None:
    def read_only(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(UserError, match="Read-only file system"):
        start()


def test_folder_that_vanishes_in_training_is_one_message_and_is_not_made_anew(start, folder) -> None:
    with pytest.raises(UserError, match=r"is gone.*put it back"):
        start(at={4: lambda: folder.rename(folder.with_name("moved"))})
    assert not folder.exists()
    folder.with_name("moved").rename(folder)
    assert steps(folder) == [1, 2, 3]
    assert start().step == 5


def test_checkpoints_that_vanish_in_training_are_not_made_anew(start, folder) -> None:
    with pytest.raises(UserError, match=r"step 4 was not saved .*No such file or directory.*put the folder back"):
        start(at={4: lambda: shutil.rmtree(folder / "checkpoints")})
    assert not (folder / "checkpoints").exists()


def test_folder_that_another_process_has_taken_is_left_to_it(start, folder) -> None:
    def replace() -> None:
        folder.rename(folder.with_name("moved"))
        RunFolder(folder).write("A = 1\n", {}, toy_spec(), 0)
        (folder / NAME).write_text("{}")

    with pytest.raises(UserError, match="has become the folder of another process"):
        start(at={4: replace})
    assert not (folder / "checkpoints").exists() and (folder / NAME).exists()


# --- two processes at one run ----------------------------------------------------------------------------------------

HOLDING = """
import sys, pathlib
from pipeline.run_lock import RunLock
with RunLock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(folder, repository):
    """Another process, which holds the lock of the run folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(folder)],
        cwd=repository,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_second_process_is_told_who_trains_and_changes_nothing(start, folder, holder) -> None:
    (folder / "config.gin").write_text("A = 1\n")
    before = contents(folder)
    for options in ({}, {"overwrite": True}, {"force_resume": True}):
        with pytest.raises(UserError, match=rf"in use by process {holder.pid} on \S+, since \d{{4}}-.*--workdir"):
            start(**options)
    assert contents(folder) == before


def test_lock_of_a_killed_process_stands_in_nobodys_way(start, folder, holder) -> None:
    holder.kill()
    holder.wait()
    assert json.loads((folder / NAME).read_text())["pid"] == holder.pid
    assert start().step == 5
    assert not (folder / NAME).exists()


def test_worker_that_writes_nothing_takes_no_lock(start, folder, holder) -> None:
    assert start(is_chief=False).step == 5
    assert not steps(folder)


DAMAGED = [("manifest.json", content) for content in (b"{}", b"[]", b'{"data": {"foo": 1}}', b"\xff\xfe", None)]


@pytest.mark.parametrize(("name", "content"), [*DAMAGED, ("config.gin", b"\xff\xfe"), ("config.gin", None)])
def test_damaged_word_of_a_run_is_one_message(start, folder, name, content) -> None:
    start()
    (folder / name).unlink()
    if content is None:
        (folder / name).mkdir()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=f"{name} cannot be read.*Put it back"):
        start(last=7)


def test_run_that_stands_past_the_steps_asked_for_says_so(start, capsys) -> None:
    start(last=5)
    start(last=3)
    assert "stands at step 5, past the 3 steps asked for" in capsys.readouterr().out


def test_lock_is_given_back_after_a_fault_and_taken_again(tmp_path) -> None:
    with pytest.raises(RuntimeError), RunLock(tmp_path):
        raise RuntimeError
    with RunLock(tmp_path), pytest.raises(UserError, match=str(os.getpid())):
        RunLock(tmp_path).__enter__()
    assert not list(tmp_path.iterdir())


def test_folder_without_locks_is_trained_in_and_that_is_said(tmp_path, monkeypatch, capsys) -> None:
    import fcntl

    def none(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with RunLock(tmp_path):
        assert "start no second run" in capsys.readouterr().out


def test_what_is_kept_is_bound_by_gin_and_may_change_when_a_run_goes_on() -> None:
    name = "tf_checkpointer.TFCheckpointer.keep_every_steps"
    configs.parse(["quickstart"], [f"{name} = 500"]).experiment()
    assert not configs.differences(f"{name} = 500", f"{name} = None", ignore=FREE_TO_CHANGE)
