"""A run that is killed at any moment, over and over, loses nothing: it ends with the bits of one that was left alone.

This file is also the program that is killed. TensorFlow is imported once and started in forks only, so that a start
costs a second instead of eight.
"""

import functools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf
from toy_games import toy_experiment

from components.checkpointer import checksums
from components.checkpointer.tf_checkpointer import TFCheckpointer
from components.interfaces import DataSpec, Player
from components.loss_library import adversarial
from components.objectives import gan
from components.writers.metrics_file import MetricsFile
from pipeline import launch
from pipeline.build import build
from pipeline.outlets import Outlets

KILLS = 32
STEPS = 240  # more than all killed children together can reach
MOST_STEPS = 5  # of a child before it is killed
CHILD_SECONDS = 90


# --- tests -----------------------------------------------------------------------------------------------------------


def outcome(part: str, folder: Path, repository: Path) -> dict:
    """Run a part of the program below in a process of its own; return what it tells."""
    environment = {**os.environ, "PYTHONPATH": f"{repository}:{repository / 'tests'}", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, part, str(folder)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_run_killed_at_random_moments_ends_with_the_bits_of_one_left_alone(tmp_path, repository) -> None:
    told = outcome("random", tmp_path, repository)
    assert told["kills"] >= 30
    assert told["during_a_save"] > 0
    last = f"checkpoints/step-{STEPS:09d}"
    whole, cut = (json.loads((tmp_path / name / last / checksums.NAME).read_text()) for name in ("whole", "cut"))
    assert whole == cut
    assert not (tmp_path / "cut" / "run.lock").exists()


@pytest.mark.slow
def test_save_killed_at_every_stage_leaves_a_whole_checkpoint(tmp_path, repository) -> None:
    told = outcome("stages", tmp_path, repository)
    assert told["kills"] >= 30


# --- the program: a run killed at random moments ---------------------------------------------------------------------


def generator(spec: DataSpec) -> keras.Model:
    latents, labels = keras.Input((3,)), keras.Input((), dtype="int32")
    return keras.Model([latents, labels], keras.layers.Reshape(spec.image_shape)(keras.layers.Dense(16)(latents)))


def discriminator(spec: DataSpec) -> keras.Model:
    images, labels = keras.Input(spec.image_shape), keras.Input((), dtype="int32")
    logits = keras.layers.Dense(1)(keras.layers.Flatten()(images))
    return keras.Model([images, labels], {"logits": logits[:, 0]})


def player() -> Player:
    return Player(optimizer=lambda: keras.optimizers.SGD(1e-2, momentum=0.9))


def train(folder: Path, *, asynchronous: bool = False) -> None:
    """Start the run, or go on, by the program's own way in."""
    experiment = toy_experiment(
        networks={"generator": generator, "discriminator": discriminator},
        updates=gan.simultaneous(loss=adversarial.hinge, generator=player(), discriminator=player()),
        train_steps=STEPS,
        global_batch_size=2,
        checkpointer=functools.partial(TFCheckpointer, asynchronous=asynchronous),
        keeps_report=False,
        log_every=1,
        save_every=1,
    )

    def assemble(config, run_folder, **_):
        run = build(
            experiment, hardware=experiment.strategy(), spec=experiment.data.spec, checkpoints=run_folder.checkpoints
        )
        return run, Outlets(previews={}, writers=[MetricsFile(str(folder))])

    launch.assemble = assemble
    launch.launch(SimpleNamespace(operative_text=lambda: "A = 1\n", settings=lambda: []), folder)


def kill_at_random(folder: Path) -> dict:
    """Kill a run over and over, then let it end; train another one undisturbed."""
    chance = random.Random(0)
    cut, during_a_save = folder / "cut", 0
    for number in range(KILLS):
        start, since = newest(cut), time.monotonic()
        # Every third is killed by the clock, in its start or wherever it is; the others in or between their saves.
        seconds = chance.uniform(0, 1.2) if number % 3 == 0 else CHILD_SECONDS
        steps = MOST_STEPS if number % 3 == 0 else chance.randint(1, MOST_STEPS)
        child = fork(lambda number=number: train(cut, asynchronous=number % 2 == 1))
        while newest(cut) < start + steps and time.monotonic() - since < seconds:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        require(ended(child) == -signal.SIGKILL, f"kill {number} met a run that had ended by itself")
        require(newest(cut) >= start, "a kill took a checkpoint away")
        require(not faults(cut / "checkpoints"), f"kill {number}: {faults(cut / 'checkpoints')}")
        during_a_save += any((cut / "checkpoints").glob("[wd]*ing-*"))
    for name in ("cut", "whole"):
        require(ended(fork(lambda name=name: train(folder / name))) == 0, f"the run {name} did not end")
    return {"kills": KILLS, "during_a_save": during_a_save}


# --- the program: a save killed at every stage -----------------------------------------------------------------------


def kill_at_every_stage(folder: Path) -> dict:
    """Kill a save before each of its calls of the system; then in the middle of TensorFlow's own files.

    Every child restores first what the one before has left, and so tells whether that was right.
    """
    kills = 0
    for is_damaged in (False, True):
        place = folder / f"damaged-{is_damaged}"
        for _ in range(3):
            require(ended(fork(lambda place=place: save_next(place, lambda: None))) == 0, "a save failed")
        for number in range(100):
            if is_damaged:
                damage_newest(place)
            status = ended(fork(lambda place=place, number=number: save_next(place, lambda: die_at(number, place))))
            if status == 0:
                break
            require(status == -signal.SIGKILL, f"stage {number} ended with {status}")
            require(is_damaged or not faults(place), f"stage {number}: {faults(place)}")
            kills += 1
    for size in (0, 1, 50, 200):  # the smallest file has more
        status = ended(fork(lambda place=place, size=size: save_next(place, lambda: die_beyond(size))))
        require(status == -signal.SIGXFSZ, f"the file of {size} bytes ended with {status}")
        kills += 1
    require(ended(fork(lambda: save_next(place, lambda: None))) == 0, "the last save failed")
    return {"kills": kills}


def save_next(folder: Path, prepare: Callable[[], None]) -> None:
    """Restore, check, and save the next step, whose weights tell its number."""
    weights, step = tf.Variable(tf.zeros([20])), tf.Variable(0)
    checkpointer = TFCheckpointer(str(folder), {"weights": [weights], "step": [step]}, keep=2, keep_every_steps=5)
    found, steps = checkpointer.restore_latest(), checkpointer.steps()
    require(found == int(step) and bool(tf.reduce_all(weights == float(found))), f"step {found} holds {weights}")
    require(not steps or found >= steps[-1] - 1, f"step {found} was restored of {steps}")
    weights.assign(tf.fill([20], float(found + 1)))
    step.assign(found + 1)
    prepare()
    checkpointer.save(found + 1)
    require(checkpointer.steps()[-1] == found + 1, "a save left no checkpoint")
    require(not list(folder.glob("*ing-*")), "a save left what a kill had left")


def die_at(number: int, folder: Path) -> None:
    """Kill this process at its next call of the system but `number` that touches `folder`, or is an fsync."""
    left = iter(range(number, -1, -1))

    def count() -> None:
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hear(event: str, arguments: tuple) -> None:
        if event.split(".")[0] in ("open", "os", "shutil") and str(folder) in str(arguments):
            count()

    flush = os.fsync
    os.fsync = lambda descriptor: (count(), flush(descriptor))
    sys.addaudithook(hear)


def die_beyond(size: int) -> None:
    """Let the system kill this process when it writes a file beyond `size` bytes: TensorFlow's writes are C++."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def damage_newest(folder: Path) -> None:
    """Flip a bit of the newest checkpoint, if it is whole and not the only one."""
    whole = [path for path in sorted(folder.glob("step-*")) if checksums.fault(path, step_of(path)) is None]
    if len(whole) > 1 and step_of(whole[-1]) == newest(folder.parent, folder.name):
        path = whole[-1] / "variables.data-00000-of-00001"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


# --- the program: children -------------------------------------------------------------------------------------------


def fork(work: Callable[[], object]) -> int:
    """Do `work` in a child; return its process id."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return child


def ended(child: int) -> int:
    """Wait for a child; return its status, below 0 for the signal that ended it."""
    for _ in waiting():
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
    os.kill(child, signal.SIGKILL)
    raise TimeoutError(f"A child did not end in {CHILD_SECONDS} seconds.")


def waiting() -> Iterator[None]:
    since = time.monotonic()
    while time.monotonic() - since < CHILD_SECONDS:
        yield
        time.sleep(0.002)


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def newest(folder: Path, name: str = "checkpoints") -> int:
    return max((step_of(path) for path in (folder / name).glob("step-*")), default=0)


def faults(folder: Path) -> list[str]:
    """Return what is wrong with the checkpoints that count."""
    return [fault for path in folder.glob("step-*") if (fault := checksums.fault(path, step_of(path)))]


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


if __name__ == "__main__":
    part, place = sys.argv[1:]
    shutil.rmtree(place, ignore_errors=True)
    Path(place).mkdir()
    print(json.dumps({"random": kill_at_random, "stages": kill_at_every_stage}[part](Path(place))))
