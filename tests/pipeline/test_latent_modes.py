"""Modes interpolate, traverse, neighbours and film, of tiny runs."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from components.interfaces import UserError
from pipeline import api
from pipeline.film import film
from pipeline.interpolate import interpolate
from pipeline.neighbours import neighbours
from pipeline.sample import sample
from pipeline.traverse import traverse

pytestmark = pytest.mark.slow

TINY = [
    *("TRAIN_STEPS = 2", "GLOBAL_BATCH_SIZE = 8", "tfds_source.TFDSSource.name = 'mnist_5k'", "LATENT_DIM = 3"),
    *("experiment.Experiment.steps_per_loop = 1", "experiment.Experiment.sample_every = 1"),
]
NARROW = ["dcgan.generator.widths = (2, 2)", "dcgan.discriminator.widths = (2, 2)"]
VAE = ["vae_networks.convolutional.widths = (2, 2)", "vae_networks.convolutional.hidden = 8"]
OPTIONS = {
    interpolate: {"truncation": None, "path": "spherical", "class_change": "gradual", "frame_milliseconds": None},
    traverse: {"around": "sample", "frame_milliseconds": None},
    neighbours: {"truncation": None},
}


@pytest.fixture(scope="module")
def gan(tmp_path_factory):
    return api.train(["quickstart"], [*TINY, *NARROW], workdir=tmp_path_factory.mktemp("gan") / "run")


@pytest.fixture(scope="module")
def vae(tmp_path_factory):
    return api.train(["vae_conv"], [*TINY, *VAE], workdir=tmp_path_factory.mktemp("vae") / "run")


def call(mode, run, output, **changed) -> dict[str, np.ndarray]:
    """Return what a mode wrote into an archive; nothing where it wrote something else."""
    options = {"checkpoint": "latest", "seed": 0, "labels": "balanced", "rows": 3, "columns": 5, "output": str(output)}
    assert mode(str(run.workdir), **{**options, **OPTIONS[mode], **changed}) == 0
    if output.suffix != ".npz":
        return {}
    with np.load(output) as archive:
        return dict(archive)


def samples(run, output, **changed) -> np.ndarray:
    options = {"checkpoint": "latest", "seed": 0, "num_images": 6, "labels": "balanced", "truncation": None}
    assert sample(str(run.workdir), **{**options, **changed}, output=str(output)) == 0
    with np.load(output) as archive:
        return archive["images"]


@pytest.mark.parametrize("changed", [{}, {"path": "linear", "truncation": 0.4}, {"class_change": "halfway", "seed": 3}])
def test_ends_of_an_interpolation_are_the_samples_of_their_latents(gan, tmp_path, changed) -> None:
    found = call(interpolate, gan, tmp_path / "a.npz", labels="3,7", **changed)
    shared = {name: changed[name] for name in ("seed", "truncation") if name in changed}
    wanted = samples(gan, tmp_path / "b.npz", labels="3,7", **shared)
    images = found["images"].reshape(3, 5, 28, 28, 1)
    np.testing.assert_array_equal(images[:, 0], wanted[::2])
    np.testing.assert_array_equal(images[:, -1], wanted[1::2])
    assert found["labels"].reshape(3, 5).tolist() == [[3, 3, 7, 7, 7]] * 3
    assert ("shares" in found) == (changed.get("class_change") != "halfway")


def test_interpolation_is_a_grid_in_the_run_folder_and_a_film(gan, tmp_path, capsys) -> None:
    call(interpolate, gan, tmp_path / "a.gif", frame_milliseconds=50)
    assert tf.io.decode_gif((tmp_path / "a.gif").read_bytes()).shape == (5, 56, 56, 3)
    options = {"checkpoint": "latest", "seed": 0, "labels": "balanced", "rows": 3, "columns": 5, "output": None}
    interpolate(str(gan.workdir), **options, **OPTIONS[interpolate])
    picture = tf.io.decode_png((gan.workdir / "interpolation.png").read_bytes())
    assert picture.shape == (84, 140, 1)
    assert f"are in {gan.workdir / 'interpolation.png'}" in capsys.readouterr().out


def test_truncated_samples_are_others_and_closer_together(gan, tmp_path) -> None:
    kinds = {psi: samples(gan, tmp_path / "a.npz", truncation=psi, num_images=40, labels="1") for psi in (None, 0.1)}
    spread = {psi: images.astype(float).var(axis=0).sum() for psi, images in kinds.items()}
    assert spread[0.1] < 0.2 * spread[None]


def test_traversal_of_a_gan_walks_the_first_latents_around_a_sample(gan, tmp_path) -> None:
    found = call(traverse, gan, tmp_path / "a.npz", rows=2, labels="4", seed=2)
    base = gan.run.sampler.latents(1, seed=2)[0]
    assert found["dimensions"].tolist() == [0, 1] and found["values"].tolist() == [-3, -1.5, 0, 1.5, 3]
    assert "activity" not in found and (found["labels"] == 4).all()
    latents = found["latents"].reshape(2, 5, 3)
    np.testing.assert_array_equal(latents[1, :, [0, 2]], np.repeat(base[[0, 2], None], 5, axis=1))
    np.testing.assert_array_equal(found["images"], gan.run.sampler.decode(found["latents"], found["labels"]))


def test_traversal_of_an_autoencoder_walks_the_most_active_latents_around_a_code(vae, tmp_path, capsys) -> None:
    found = call(traverse, vae, tmp_path / "a.npz", rows=9, labels="4", around="example")
    assert (np.diff(found["activity"][found["dimensions"]]) <= 0).all()
    assert sorted(found["dimensions"].tolist()) == [0, 1, 2], "there are but three"
    assert "the most active first" in capsys.readouterr().out
    (batch,) = vae.run.experiment.data.batches(global_batch_size=100, seed=0, start_batch=0).take(1)
    first = int(np.flatnonzero(batch["label"].numpy() == 4)[0])
    image = np.round(batch["image"].numpy()[first : first + 1] * 127.5 + 127.5).astype(np.uint8)
    code = vae.run.sampler.encode(image, labels=[4])[0]
    one = found["latents"].reshape(3, 5, 3)[0, 0]
    others = [index for index in range(3) if index != found["dimensions"][0]]
    np.testing.assert_allclose(one[others], code[others], atol=1e-5)


def test_neighbours_lie_beside_their_samples(gan, tmp_path, capsys) -> None:
    found = call(neighbours, gan, tmp_path / "a.npz", labels="3,7", columns=4)
    np.testing.assert_array_equal(found["images"], samples(gan, tmp_path / "b.npz", labels="3,7")[:3])
    assert found["neighbours"].shape == (3, 3, 28, 28, 1) and found["labels"].tolist() == [3, 7, 3]
    assert found["neighbour_labels"].shape == (3, 3) and (np.diff(found["distances"], axis=1) >= 0).all()
    difference = (found["images"][:, None].astype(float) - found["neighbours"]) / 255
    np.testing.assert_allclose(found["distances"], np.sqrt((difference**2).sum(axis=(2, 3, 4))), rtol=1e-5)
    assert "nearest of 5,000 training images" in capsys.readouterr().out
    call(neighbours, gan, tmp_path / "a.png", columns=4)
    assert tf.io.decode_png((tmp_path / "a.png").read_bytes()).shape == (84, 112, 1)
    call(neighbours, gan, tmp_path / "folder", columns=4)
    assert len(list((tmp_path / "folder").iterdir())) == 12


def test_film_shows_the_pictures_of_the_run_in_order_of_step(gan, tmp_path, capsys) -> None:
    assert film(str(gan.workdir), output=str(tmp_path / "a.png"), frame_milliseconds=300) == 0
    assert "3 pictures, of steps 0 to 2" in capsys.readouterr().out
    with Image.open(tmp_path / "a.png") as found:
        assert found.n_frames == 3
        for step in range(3):
            found.seek(step)
            with Image.open(gan.workdir / "samples" / f"{step:09d}.png") as wanted:
                np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
            assert found.info["duration"] == 300
    assert film(str(gan.workdir), output=None, frame_milliseconds=None) == 0
    assert tf.io.decode_gif((gan.workdir / "film.gif").read_bytes()).shape == (3, 280, 280, 3)


def test_film_of_pictures_of_two_sizes_ends_in_black(gan, tmp_path) -> None:
    run = tmp_path / "run"
    (run / "samples").mkdir(parents=True)
    for name in ("config.gin", "manifest.json"):
        (run / name).write_text("")
    for step, (height, width) in enumerate([(2, 5), (4, 3)]):
        Image.fromarray(np.full([height, width], 9 + step, np.uint8)).save(run / "samples" / f"{step:09d}.png")
    (run / "samples" / "000000002.png.writing").write_bytes(b"half")
    film(str(run), output=str(tmp_path / "a.png"), frame_milliseconds=None)
    with Image.open(tmp_path / "a.png") as found:
        first = np.asarray(found)
        assert found.n_frames == 2 and first.shape == (4, 5)
    assert (first[:2] == 9).all() and not first[2:].any()


@pytest.mark.parametrize(
    ("mode", "kind", "changed", "words"),
    [
        (interpolate, "gan", {"labels": "3,10"}, "classes from 0 to 9"),
        (interpolate, "gan", {"truncation": 0.0}, "above 0. Received 0.0"),
        (interpolate, "gan", {"output": "a.mp4"}, ".gif or .apng"),
        (interpolate, "gan", {"checkpoint": "7"}, "There are: 2"),
        (interpolate, "gan", {"output": "/dev/null/a.gif"}, "can be written"),
        (traverse, "gan", {"around": "example"}, "ImageSampler, which encodes none. Use --around=sample"),
        (traverse, "gan", {"labels": "3,4"}, "of one class. Received --labels=3,4"),
        (neighbours, "gan", {"output": "a.gif"}, ".png or .npz"),
        (neighbours, "gan", {"columns": 5002}, "There are 5000 training images"),
    ],
)
def test_request_that_cannot_be_met_is_refused(mode, kind, changed, words, request) -> None:
    options = {"checkpoint": "latest", "seed": 0, "labels": "balanced", "rows": 3, "columns": 5, "output": "a.png"}
    with pytest.raises(UserError, match=words):
        mode(str(request.getfixturevalue(kind).workdir), **{**options, **OPTIONS[mode], **changed})


def test_film_that_cannot_be_made_is_refused(gan, tmp_path) -> None:
    with pytest.raises(UserError, match="ends in .gif, .apng, .png. Received 'a.npz'"):
        film(str(gan.workdir), output="a.npz", frame_milliseconds=None)
    with pytest.raises(UserError, match="must name the folder of a run"):
        film(str(tmp_path), output=None, frame_milliseconds=None)
    for name in ("config.gin", "manifest.json"):
        (tmp_path / name).write_text("")
    with pytest.raises(UserError, match="has none: samples/STEP.png"):
        film(str(tmp_path), output=None, frame_milliseconds=None)
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "000000004.png").write_bytes(b"half")
    with pytest.raises(UserError, match="000000004.png cannot be read"):
        film(str(tmp_path), output=None, frame_milliseconds=None)
