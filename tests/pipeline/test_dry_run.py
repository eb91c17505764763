"""The dry run: what it tells, and that it leaves nothing behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from components.data_source.tfds_source import TFDSSource
from components.interfaces import UserError
from pipeline import api

TINY = ["TRAIN_STEPS = 50", "GLOBAL_BATCH_SIZE = 8", "dcgan.generator.widths = (4, 4)"]


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def line_with(text: str, words: str) -> str:
    return next(line for line in text.splitlines() if words in line)


@pytest.fixture(scope="module", autouse=True)
def prepared_digits() -> None:
    TFDSSource(name="mnist_5k").spec  # noqa: B018


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_report_tells_every_value_with_its_source_and_what_it_overrides(elsewhere) -> None:
    text = api.dry_run(["quickstart"], [*TINY, "generator/keras.optimizers.Adam.beta_1 = 0.25"])
    assert re.search(r"TRAIN_STEPS = 50 +--gin_param:1, over .*quickstart\.gin:\d+", text)
    assert re.search(r"beta_1 = 0\.25 +--gin_param:\d+, over .*quickstart\.gin:\d+", text)
    assert re.search(r"train_steps = %TRAIN_STEPS +.*run\.gin:\d+", text)
    assert "tf_checkpointer.TFCheckpointer, by default: keep = 3" in text
    assert not list(elsewhere.iterdir())


def test_report_counts_steps_images_and_actions(elsewhere) -> None:
    text = api.dry_run(
        ["quickstart"],
        [
            *TINY,
            "gan.alternating.discriminator_repeats = 3",
            "experiment.Experiment.steps_per_loop = 10",
            "experiment.Experiment.log_every = 20",
            "experiment.Experiment.sample_every = 30",
            "experiment.Experiment.save_every = 50",
        ],
    )
    # 50 steps of 3 batches of 8; logs at 20, 40, 50; previews at 0, 30, 50.
    assert "50 steps, 1,200 real images, 0.2 epochs" in text
    assert "5 looks of the host, 3 log points, 3 previews, 1 save" in text
    assert "previews  samples (class_montage.class_montage)" in text
    assert "draws 3 fresh batches of 8 real images: 1 replica of 8" in text


@pytest.mark.slow
def test_report_tells_accumulation_half_life_and_clipping(elsewhere) -> None:
    params = [
        "gan.alternating.accumulate = 2",
        "generator/interfaces.Player.ema_decay = None",
        "generator/interfaces.Player.ema_half_life_images = 10000",
        "discriminator/interfaces.Player.weight_clip = 0.01",
    ]
    text = api.dry_run(["quickstart"], [*TINY, *params])
    assert "once, a move over 2 batches" in text and "draws 2 fresh batches" in text
    assert "an average of half-life 10,000 images" in text and "clips its weights to 0.01" in text


@pytest.mark.slow
def test_report_tells_the_updates_in_order_with_players_and_optimizers(elsewhere) -> None:
    text = api.dry_run(
        ["quickstart"],
        [
            *TINY,
            "gan.alternating.discriminator_repeats = 3",
            "gan.alternating.first = 'generator'",
            "gan.alternating.loss = @adversarial.hinge",
            "from components.loss_library import penalties\ngan.alternating.penalties = [@penalties.r1]",
            "gan.alternating.penalty_every = 16",
            "generator/interfaces.Player.ema_decay = 0.9",
        ],
    )
    first, second, third = (line_with(text, f"  {number}. ") for number in (1, 2, 3))
    assert "GeneratorObjective(loss = adversarial.hinge)" in first
    assert "DiscriminatorObjective" in second and "3 times, each on a fresh batch" in second
    assert "[penalties.r1]" in third and "every 16 steps" in third
    player = line_with(text, "  generator: Adam")
    assert "learning_rate" in player and "average of decay 0.9" in player


def test_report_counts_parameters_and_memory(elsewhere) -> None:
    run = api.build(["quickstart"], TINY)
    text = api.dry_run(["quickstart"], TINY)
    for name, network in run.networks.items():
        assert f"{name}: {network.count_params():,} parameters" in text
    weights = 4 * sum(network.count_params() for network in run.networks.values())
    assert line_with(text, "  weights").split()[1] == f"{weights / 2**20:.1f}"
    assert "Not counted: " in text and "3.7 MiB (if held, as bytes)" in text
    assert run.networks.spec.fingerprint in line_with(text, "fingerprint")


def test_report_of_quickstart_is_a_page_or_two_of_text(elsewhere) -> None:
    lines = api.dry_run(["quickstart"]).splitlines()
    assert len(lines) <= 120 and not any(line != line.rstrip() for line in lines)


@pytest.mark.slow
def test_folder_of_another_run_is_told_and_left_as_it_is(elsewhere) -> None:
    api.train(["quickstart"], [*TINY, "TRAIN_STEPS = 1"][1:], workdir="taken")
    before = everything_in(elsewhere)
    text = api.dry_run(["quickstart"], [*TINY, "gan.alternating.loss = @adversarial.hinge"], workdir="taken")
    assert "@adversarial.non_saturating -> @adversarial.hinge" in text and "--overwrite" in text
    assert "goes on with the run that is there" in api.dry_run(["quickstart"], TINY, workdir="taken")
    assert everything_in(elsewhere) == before


def test_parts_that_do_not_fit_are_refused_as_in_training(elsewhere) -> None:
    with pytest.raises(UserError, match="multiples of 8"):
        api.dry_run(["quickstart"], ["dcgan.generator.widths = (4, 4, 4)"])
    with pytest.raises(UserError, match="require_accelerator"):
        api.dry_run(["quickstart"], TINY, require_accelerator=True)


@pytest.mark.slow
def test_data_that_are_not_prepared_are_foreseen_and_not_prepared(elsewhere, capsys) -> None:
    folder = f"tfds_source.TFDSSource.data_dir = '{elsewhere / 'data'}'"
    text = api.dry_run(["quickstart"], [*TINY, folder])
    said = line_with(capsys.readouterr().out, "Data: ")
    assert "28 x 28 x 1" in said and f"Not prepared: first they are written to {elsewhere / 'data'}." in said
    assert "fingerprint not known yet" in text and "epochs" not in text
    api.dry_run(["cgan"], [folder])
    assert "they are downloaded and written" in capsys.readouterr().out
    assert not list(elsewhere.iterdir())


@pytest.mark.slow
def test_command_writes_nothing_anywhere_and_exits_0_or_2(repository, tmp_path) -> None:
    places = {"HOME": tmp_path / "home", "TMPDIR": tmp_path / "tmp", "TFDS_DATA_DIR": tmp_path / "data"}
    for place in places.values():
        place.mkdir()
    environment = {**os.environ, **{name: str(place) for name, place in places.items()}, "PYTHONPATH": str(repository)}
    command = [sys.executable, "-m", "pipeline.main", "--gin_file=quickstart.gin", "--dry_run", "--strategy=cpu:2"]

    def run(*more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*command, *more], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )

    good = run("--gin_param=GLOBAL_BATCH_SIZE = 8")
    assert good.returncode == 0 and "2 replicas of 4" in good.stdout, good.stderr
    assert "name = 'cpu:2'" in good.stdout
    wrong = run("--gin_param=GLOBAL_BATCH_SIZE = 7")
    assert wrong.returncode == 2 and "Use 8" in wrong.stderr and "Traceback" not in wrong.stderr
    assert run("--mode=sample").returncode == 2
    # Keras writes its settings when it is first imported.
    files = {name for name in everything_in(tmp_path) if (tmp_path / name).is_file()}
    assert files <= {"home/.keras/keras.json"}
    assert not any(places["TFDS_DATA_DIR"].iterdir())
