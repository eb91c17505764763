"""The command line, as a person or a scheduler uses it."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

TINY = ["--gin_file=quickstart.gin", "--gin_param=GLOBAL_BATCH_SIZE = 8", "--gin_param=dcgan.generator.widths = (4, 4)"]
LOOP = "--gin_param=experiment.Experiment.steps_per_loop = 5"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pipeline.main", *arguments]


def environment(repository) -> dict[str, str]:
    loud = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    return {**loud, "PYTHONPATH": str(repository)}


@pytest.fixture
def gantry(repository, tmp_path):
    """Return a function that runs the program in a folder that is not the source's."""

    def run(*arguments: str, expect: int = 0) -> str:
        done = subprocess.run(
            command(*arguments), cwd=tmp_path, env=environment(repository), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == expect, done.stdout + done.stderr
        assert expect == 1 or "Traceback" not in done.stderr
        return done.stdout + done.stderr

    return run


def variables(run_folder, step: int) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(run_folder / "checkpoints" / f"step-{step:09d}" / "variables"))
    names = [name for name in reader.get_variable_to_shape_map() if "CHECKPOINTABLE" not in name]
    return {name: reader.get_tensor(name) for name in names}


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--help"], 0, "--gin_file"),
        (["--gin_fil=x"], 2, "gin_file"),
        ([], 2, "--gin_file=quickstart.gin"),
        (["--mode=sample"], 2, "--workdir"),
        (["--mode=reconstruct"], 2, "--workdir"),
        (["--mode=reconstruct", "--workdir=run", "--labels=3"], 2, "--seed"),
        *((["--mode=" + mode], 2, "--workdir") for mode in ("interpolate", "traverse", "neighbours", "film")),
        (["--mode=sample", "--workdir=run", "--rows=3"], 2, "is for --mode=interpolate and --mode=traverse and"),
        (["--mode=interpolate", "--workdir=run", "--path=round"], 2, "spherical|linear"),
        (["--mode=interpolate", "--workdir=run", "--num_images=3"], 2, "--rows"),
        (["--mode=film", "--workdir=run", "--checkpoint=3"], 2, "has no effect with --mode=film"),
        (["--gin_file=quickstart.gin", "--seed=3"], 2, "SEED = 3"),
        (["--gin_file=quickstart.gin", "--num_images=3"], 2, "--mode=sample"),
        (["--mode=sample", "--workdir=run", "--gin_param=SEED = 4"], 2, "--gin_param is for --mode=train"),
        (["--mode=sample", "--workdir=run", "--dry_run"], 2, "--dry_run is for --mode=train"),
        (["--gin_file=quickstart.gin", "--overwrite", "--force_resume"], 2, "Received both"),
        (["--gin_file=quickstart.gin", "--strategy="], 2, "needs a value"),
        (["--gin_file=quickstart.gin", "--workdir="], 2, "needs a value"),
        (["--mode=sample", "--workdir=a", "--workdir=b"], 2, "--mode=report takes several"),
        (["--gin_file=quickstart.gin", "--workdir=a", "--workdir=b"], 2, "takes one --workdir"),
        (["--mode=report"], 2, "--workdir"),
        (["--mode=report", "--workdir=nowhere"], 2, "must name the folder of a run"),
        (["--mode=report", "--workdir=.", "--seed=3"], 2, "--seed is for"),
        (["--mode=trian"], 2, "sample"),
        (["quickstart.gin"], 2, "--gin_file"),
        (["--gin_file=quikstart"], 2, "quickstart"),
    ],
)
def test_question_or_mistake_is_answered_without_tensorflow(arguments, status, words, repository, tmp_path) -> None:
    text = (
        "import sys; from pipeline.main import main; status = main(['main', *sys.argv[1:]]);"
        "sys.exit(99 if 'tensorflow' in sys.modules else status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        cwd=tmp_path,
        env=environment(repository),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert words in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_run_trains_goes_on_refuses_another_config_and_samples(gantry, tmp_path) -> None:
    first = gantry(*TINY, LOOP, "--gin_param=TRAIN_STEPS = 10")
    folder = tmp_path / "runs" / "quickstart"
    assert "step 10/10" in first and "runs/quickstart" in first and "\r" not in first
    assert "oneDNN" not in first and "cuInit" not in first
    further = gantry(*TINY, LOOP, "--gin_param=TRAIN_STEPS = 15")
    assert "going on at step 10" in further and "step 15/15" in further
    refused = gantry(*TINY, LOOP, "--gin_param=gan.alternating.loss = @adversarial.hinge", expect=2)
    assert "@adversarial.non_saturating -> @adversarial.hinge" in refused
    points = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [point["step"] for point in points] == [10, 15]
    assert len(list((folder / "samples").glob("*.png"))) == 3
    gantry("--mode=sample", f"--workdir={folder}", "--labels=7", "--num_images=10", "--output=row.png")
    assert tf.io.decode_png((tmp_path / "row.png").read_bytes()).shape == (28, 280, 1)


@pytest.mark.slow
def test_sample_writes_archives_and_folders_and_refuses_what_is_not_there(gantry, tmp_path) -> None:
    gantry(*TINY, LOOP, "--gin_param=TRAIN_STEPS = 5", "--workdir=run")
    gantry("--mode=sample", "--workdir=run", "--labels=0,3", "--num_images=5", "--output=a.npz", "--checkpoint=5")
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["labels"], [0, 3, 0, 3, 0])
        assert archive["images"].shape == (5, 28, 28, 1)
    gantry("--mode=sample", "--workdir=run", "--num_images=3", "--output=pictures")
    assert len(list((tmp_path / "pictures").iterdir())) == 3
    for arguments, words in (
        (["--workdir=nowhere"], "must name the folder of a run"),
        (["--workdir=run", "--labels=10"], "0 to 9"),
        (["--workdir=run", "--checkpoint=6"], "There are: 5"),
        (["--workdir=run", "--checkpoint=best"], "best_metric"),
        (["--workdir=run", "--output=a.gif"], ".png"),
    ):
        assert words in gantry("--mode=sample", *arguments, expect=2)


@pytest.mark.slow
def test_reconstruct_writes_pairs_and_refuses_a_run_that_cannot(gantry, tmp_path) -> None:
    tiny = ["--gin_param=TRAIN_STEPS = 20", "--gin_param=vae_networks.convolutional.widths = (4, 4)"]
    data = "--gin_param=tfds_source.TFDSSource.name = 'mnist_5k'"
    gantry("--gin_file=vae_conv", *tiny, data, "--gin_param=GLOBAL_BATCH_SIZE = 8", "--workdir=vae")
    told = gantry("--mode=reconstruct", "--workdir=vae", "--num_images=12", "--checkpoint=20", "--seed=3")
    assert "12 images (seed 3)" in told and "step 20" in told
    assert tf.io.decode_png((tmp_path / "vae" / "reconstruction.png").read_bytes()).shape == (4 * 28, 280, 1)
    gantry("--mode=reconstruct", "--workdir=vae", "--num_images=5", "--output=a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        assert {name: archive[name].shape for name in archive} == {
            "images": (5, 28, 28, 1),
            "labels": (5,),
            "originals": (5, 28, 28, 1),
        }
    gantry(*TINY, LOOP, "--gin_param=TRAIN_STEPS = 5", "--workdir=gan")
    assert "reconstructs none" in gantry("--mode=reconstruct", "--workdir=gan", expect=2)


@pytest.mark.slow
def test_accelerator_that_is_required_and_not_there_is_an_error(gantry, tmp_path) -> None:
    text = gantry(*TINY, "--require_accelerator", "--strategy=tpu", expect=2)
    assert "No TPU was found" in text and not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_run_that_a_signal_stops_ends_with_the_bits_of_one_that_was_left_alone(
    number, status, gantry, repository, tmp_path
) -> None:
    arguments = [*TINY, LOOP, "--gin_param=TRAIN_STEPS = 400", "--gin_param=experiment.Experiment.log_every = 5"]
    gantry(*arguments, "--workdir=whole")
    process = subprocess.Popen(
        command(*arguments, "--workdir=cut"),
        cwd=tmp_path,
        env=environment(repository),
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if line.startswith("step 2"):
            process.send_signal(number)
            break
    process.stdout.read()
    assert process.wait(timeout=60) == status
    saved = sorted((tmp_path / "cut" / "checkpoints").iterdir())
    stopped = int(saved[-1].name.removeprefix("step-"))
    assert 20 <= stopped < 400
    assert f"going on at step {stopped}" in gantry(*arguments, "--workdir=cut")
    whole, cut = variables(tmp_path / "whole", 400), variables(tmp_path / "cut", 400)
    assert whole.keys() == cut.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(value, cut[name], err_msg=name)


@pytest.mark.slow
def test_latent_modes_write_pictures_films_and_archives(gantry, tmp_path) -> None:
    gantry(*TINY, LOOP, "--gin_param=TRAIN_STEPS = 5", "--workdir=run")
    size = ["--workdir=run", "--rows=2", "--columns=3"]
    walked = gantry("--mode=interpolate", *size, "--labels=3,7", "--truncation=0.7", "--output=a.gif")
    assert "2 spherical paths of 3 steps (classes 3,7, seed 0), of step 5, are in a.gif." in walked
    assert tf.io.decode_gif((tmp_path / "a.gif").read_bytes()).shape == (3, 28, 56, 3)
    assert "Latents 0, 1 from -3 to 3" in gantry("--mode=traverse", *size, "--labels=4", "--output=b.npz")
    with np.load(tmp_path / "b.npz") as archive:
        assert archive["images"].shape == (6, 28, 28, 1) and (archive["labels"] == 4).all()
    assert "the 2 nearest of 5,000" in gantry("--mode=neighbours", *size)
    assert tf.io.decode_png((tmp_path / "run" / "neighbours.png").read_bytes()).shape == (56, 84, 1)
    assert "2 pictures, of steps 0 to 5" in gantry("--mode=film", "--workdir=run", "--frame_milliseconds=500")
    assert tf.io.decode_gif((tmp_path / "run" / "film.gif").read_bytes()).shape == (2, 280, 280, 3)
