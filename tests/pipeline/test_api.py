"""The program as functions: twice in one process, in any thread, and leaving the process as it was."""

import json
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from components.interfaces import UserError
from pipeline import api
from pipeline.run_folder import RunFolder

TINY = [
    "TRAIN_STEPS = 3",
    "GLOBAL_BATCH_SIZE = 8",
    "LATENT_DIM = 5",
    "dcgan.generator.widths = (4, 4)",
    "dcgan.discriminator.widths = (4, 4)",
    "experiment.Experiment.steps_per_loop = 1",
    "experiment.Experiment.log_every = 1",
]
HINGE = "gan.alternating.loss = @adversarial.hinge"


def points(folder: Path) -> list[dict]:
    """Return the log points without what the clock says."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if not name.startswith("timing/")} for line in lines]


def process_state() -> tuple:
    """Return what a program would miss if it were changed: random states, Keras's settings, signal handlers."""
    return (
        random.getstate(),
        np.random.get_state()[1].tobytes(),
        tf.random.get_global_generator().state.numpy().tobytes(),
        keras.config.floatx(),
        keras.config.backend(),
        keras.config.dtype_policy().name,
        keras.config.image_data_format(),
        keras.backend.epsilon(),
        tf.distribute.has_strategy(),
        signal.getsignal(signal.SIGINT),
        signal.getsignal(signal.SIGTERM),
    )


def test_build_makes_live_parts_and_writes_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = api.build(["quickstart"], TINY)
    assert run.sampler.sample(2, seed=0).shape == (2, 28, 28, 1) and run.step == 0
    metrics = run.stepper.run(run.batches(), 2)
    assert run.step == 2 and np.isfinite(float(metrics["generator/loss"]))
    assert not list(tmp_path.iterdir())


def test_train_returns_the_trained_run_and_its_folder(tmp_path) -> None:
    summary = api.train(["quickstart"], TINY, workdir=tmp_path / "run")
    assert (summary.run.step, summary.workdir, summary.exit_status) == (3, tmp_path / "run", 0)
    assert [point["step"] for point in points(tmp_path / "run")] == [1, 2, 3]
    assert summary.run.sampler.sample(2, seed=0).shape == (2, 28, 28, 1)


@pytest.mark.slow
def test_train_twice_with_another_config_between_gives_the_first_again(tmp_path) -> None:
    api.train(["quickstart"], TINY, workdir=tmp_path / "a")
    api.train(["quickstart"], [*TINY, HINGE, "SEED = 1"], workdir=tmp_path / "other")
    api.build(["vae_tpu"], ["tfds_source.TFDSSource.name = 'mnist_5k'"], workdir=tmp_path / "none")
    api.train(["quickstart"], TINY, workdir=tmp_path / "b")
    assert points(tmp_path / "a") == points(tmp_path / "b") != points(tmp_path / "other")


@pytest.mark.slow
def test_train_leaves_the_process_as_it_was(tmp_path) -> None:
    before = process_state()
    api.train(["quickstart"], TINY, workdir=tmp_path / "run")
    api.dry_run(["quickstart"], TINY)
    for old, new in zip(before, process_state(), strict=True):
        assert old == new


@pytest.mark.slow
def test_train_goes_on_and_refuses_another_config_as_the_command_does(tmp_path) -> None:
    api.train(["quickstart"], TINY, workdir=tmp_path)
    assert api.train(["quickstart"], ["TRAIN_STEPS = 5", *TINY[1:]], workdir=tmp_path).run.step == 5
    with pytest.raises(UserError, match="hinge"):
        api.train(["quickstart"], [*TINY, HINGE], workdir=tmp_path)
    assert api.train(["quickstart"], [*TINY, HINGE], workdir=tmp_path, overwrite=True).run.step == 3


@pytest.mark.slow
def test_train_outside_the_main_thread_sets_no_signal_handlers(tmp_path) -> None:
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    done: list = []
    thread = threading.Thread(target=lambda: done.append(api.train(["quickstart"], TINY, workdir=tmp_path)))
    thread.start()
    thread.join()
    assert done[0].run.step == 3
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


@pytest.mark.slow
def test_config_of_a_run_repeats_its_losses_bit_for_bit(tmp_path) -> None:
    params = [*TINY, HINGE, "SEED = 3"]
    api.train(["quickstart"], params, workdir=tmp_path / "first")
    config = str(tmp_path / "first" / "config.gin")
    api.train([config], workdir=tmp_path / "again")
    assert points(tmp_path / "again") == points(tmp_path / "first")
    assert (tmp_path / "again" / "config.gin").read_text() == Path(config).read_text()


def test_config_of_a_run_without_a_workdir_is_refused_and_told_both_ways(tmp_path) -> None:
    RunFolder(tmp_path).write("", {}, api.build(["quickstart"], TINY).networks.spec, 0)
    with pytest.raises(UserError, match="--workdir=.*-again to repeat.*to go on"):
        api.train([str(tmp_path / "config.gin")])


@pytest.mark.parametrize(
    ("files", "folder"),
    [(["quickstart"], "runs/quickstart"), (["a/b.gin"], "runs/b"), (["quickstart.gin", "mine.gin"], "runs/mine")],
)
def test_default_workdir_bears_the_name_of_the_last_file(files, folder) -> None:
    assert api.default_workdir(files) == folder


def test_no_gin_file_is_refused() -> None:
    with pytest.raises(UserError, match="quickstart.gin"):
        api.train([])


@pytest.mark.slow
def test_manifest_tells_where_a_run_comes_from(tmp_path, repository) -> None:
    run = api.train(["quickstart"], TINY, workdir=tmp_path).run
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (start,) = manifest["starts"]
    assert {"python", "tensorflow", "keras", "numpy"} <= manifest["versions"].keys()
    assert manifest["data"]["fingerprint"] == run.networks.spec.fingerprint
    assert start["seed"] == 0 and start["command"] == sys.argv
    assert start["images_per_step"] == run.experiment.global_batch_size  # one batch for each step
    assert start["strategy"] == "OneDeviceStrategy, 1 in sync" and start["hardware"]
    if (repository / ".git").exists():
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True)
        assert start["commit"].removesuffix("-dirty") == head.stdout.strip()
    else:
        assert "commit" not in start


def test_file_that_is_not_there_is_told_before_tensorflow_is_imported(repository) -> None:
    code = (
        "import sys\nfrom pipeline import api\n"
        "try:\n    api.train(['quikstart'])\n"
        "except ValueError as error:\n    print(error)\nassert 'tensorflow' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "quickstart" in done.stdout, done.stderr
