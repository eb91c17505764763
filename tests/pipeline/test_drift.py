"""What may change when a run goes on and what may not, and runs of older versions."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from components import draws
from components.interfaces import UserError
from pipeline import api, configs
from pipeline.free_to_change import FREE_TO_CHANGE
from pipeline.run_folder import RunFolder
from pipeline.sample import sample

RELEASED = sorted((Path(__file__).parent.parent / "released").iterdir())


def drift(*changes: str) -> list[str]:
    """Return what a run of the quickstart would be told where it is resumed with `changes`."""
    texts = []
    for params in ((), changes):
        config = configs.parse(["quickstart"], params)
        texts.append(config.operative_text())
    return configs.differences(*texts, ignore=FREE_TO_CHANGE)


@pytest.mark.parametrize(
    "change",
    [
        "TRAIN_STEPS = 7",
        "experiment.Experiment.log_every = 20",
        "experiment.Experiment.save_every = 20",
        "experiment.Experiment.sample_every = 20",
        "experiment.Experiment.steps_per_loop = 10",
        "experiment.Experiment.writers = [@metrics_file.MetricsFile]",
        "experiment.Experiment.previews = {}",
        "experiment.Experiment.max_rollbacks = 3",
        "strategy.select.name = 'cpu:2'",
        "from components.stepper import distributed_stepper\n"
        "distributed_stepper.DistributedStepper.loop_on_device = True",
        "tf_checkpointer.TFCheckpointer.keep = 9",
        "tf_checkpointer.TFCheckpointer.best_metric = 'generator/loss'",
        "from components.watch import quality_watch\nexperiment.Experiment.watch = @quality_watch.QualityWatch\n"
        "quality_watch.QualityWatch.stop_after = 100",
    ],
)
def test_what_shapes_no_step_may_change(change) -> None:
    assert drift(change) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("SEED = 1", "SEED: 0 -> 1"),
        ("GLOBAL_BATCH_SIZE = 32", "GLOBAL_BATCH_SIZE: 64 -> 32"),
        ("LATENT_DIM = 8", "LATENT_DIM: 32 -> 8"),
        ("tfds_source.TFDSSource.split = 'test'", "TFDSSource.split"),
        ("dcgan.generator.widths = (8, 8)", "dcgan.generator.widths: (64, 32) -> (8, 8)"),
        ("from components.loss_library import adversarial\ngan.alternating.loss = @adversarial.hinge", "hinge"),
        ("generator/keras.optimizers.Adam.learning_rate = 0.5", "learning_rate: 0.002 -> 0.5"),
        ("generator/interfaces.Player.ema_decay = 0.5", "ema_decay: 0.998 -> 0.5"),
        ("experiment.Experiment.precision = 'mixed_bfloat16'", "precision"),
    ],
)
def test_what_shapes_a_step_is_told(change, told) -> None:
    lines = drift(change)
    assert len(lines) == 1 and told in lines[0]


def copy_of(released: Path, folder: Path) -> RunFolder:
    shutil.copytree(released, folder)
    return RunFolder(folder)


@pytest.mark.slow
@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.name)
def test_run_of_a_released_version_samples_and_goes_on(released, tmp_path, capsys) -> None:
    folder = copy_of(released, tmp_path / "run")
    output = tmp_path / "images.npz"
    asked = {"seed": 0, "num_images": 3, "labels": "balanced", "truncation": None}
    assert sample(str(folder.path), checkpoint="latest", output=str(output), **asked) == 0
    with np.load(output) as archive:
        assert archive["images"].shape == (3, 28, 28, 1) and archive["images"].std() > 0
    with pytest.raises(UserError, match=r"SEED: 0 -> 1\n.*--force_resume"):
        api.train([str(folder.config)], ["SEED = 1"], workdir=folder.path)
    summary = api.train([str(folder.config)], ["TRAIN_STEPS = 6"], workdir=folder.path)
    assert summary.run.step == 6
    assert f"draws 1 -> {draws.VERSION}. Bits are promised" in capsys.readouterr().out
    assert json.loads(folder.manifest.read_text())["starts"][-1]["changed_versions"][-1].startswith("draws")
    assert json.loads(folder.manifest.read_text())["format"] == 1
    forced = api.train([str(folder.config)], ["TRAIN_STEPS = 7", "SEED = 1"], workdir=folder.path, force_resume=True)
    assert forced.run.step == 7 and "versions changed" not in capsys.readouterr().out


def test_config_of_a_name_that_is_gone_says_so_with_the_nearest(tmp_path) -> None:
    folder = copy_of(RELEASED[0], tmp_path / "run")
    folder.config.write_text(folder.config.read_text().replace("dcgan.generator", "dcgan.generatr"))
    with pytest.raises(UserError, match=r"`dcgan.generatr`; .*has no `generatr`[^`]*`dcgan.generator`"):
        configs.parse([str(folder.config)])


def test_folder_of_a_later_version_is_refused_with_its_name(tmp_path) -> None:
    folder = copy_of(RELEASED[0], tmp_path / "run")
    manifest = json.loads(folder.manifest.read_text())
    folder.manifest.write_text(json.dumps({**manifest, "format": 99, "versions": {"gantry": "9.9"}}))
    with pytest.raises(UserError, match=r"version 9\.9, format 99.*Use that version"):
        folder.spec()


def test_versions_that_changed_since_the_last_start_are_named(tmp_path) -> None:
    folder = copy_of(RELEASED[0], tmp_path / "run")  # of draws before the first that had a number
    manifest = json.loads(folder.manifest.read_text())
    for versions, changed in (
        ({"tensorflow": "2.0.0"}, [f"tensorflow 2.0.0 -> {tf.__version__}", f"draws 1 -> {draws.VERSION}"]),
        ({"tensorflow": tf.__version__, "draws": str(draws.VERSION)}, []),
    ):
        folder.manifest.write_text(json.dumps({**manifest, "versions": versions}))
        assert folder.changed_versions() == changed
    assert RunFolder(tmp_path / "new").changed_versions() == []
