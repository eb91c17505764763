"""Mode reconstruct: pairs of real images and their reconstructions, from a run folder."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from toy_parts import ToySource, toy_spec

from components.interfaces import UserError
from pipeline import api
from pipeline.reconstruct import pairs_of_rows, real_images, reconstruct, require_like, write

TINY = ["TRAIN_STEPS = 2", "GLOBAL_BATCH_SIZE = 8", "tfds_source.TFDSSource.name = 'mnist_5k'", "LATENT_DIM = 3"]
LOOP = "experiment.Experiment.steps_per_loop = 1"
VAE = [*TINY, LOOP, "vae_networks.convolutional.widths = (2, 2)", "vae_networks.convolutional.hidden = 8"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return what came of a tiny training of the shipped conditional model."""
    return api.train(["vae_conv"], VAE, workdir=tmp_path_factory.mktemp("vae") / "run")


def call(trained, **changed) -> int:
    options = {"checkpoint": "latest", "seed": 0, "num_images": 12, "output": None}
    return reconstruct(str(trained.workdir), **{**options, **changed})


def picture(path) -> np.ndarray:
    return tf.io.decode_png(path.read_bytes()).numpy()


def numbered(first: int, count: int) -> np.ndarray:
    """Return images of 1 x 1 pixel that bear their number."""
    return np.arange(first, first + count, dtype=np.uint8).reshape(-1, 1, 1, 1)


def test_pairs_of_rows_stand_one_above_the_other_and_the_rest_is_black() -> None:
    rows = pairs_of_rows(numbered(1, 5), numbered(11, 5), columns=3).reshape(4, 3)
    np.testing.assert_array_equal(rows, [[1, 2, 3], [11, 12, 13], [4, 5, 0], [14, 15, 0]])


def test_archive_holds_what_the_run_makes_of_its_own_data(trained, tmp_path) -> None:
    assert call(trained, output=str(tmp_path / "new" / "a.npz")) == 0
    with np.load(tmp_path / "new" / "a.npz") as archive:
        images, labels, originals = (archive[name] for name in ("images", "labels", "originals"))
    assert images.shape == originals.shape == (12, 28, 28, 1) and images.dtype == originals.dtype == np.uint8
    assert labels.dtype == np.int32
    run = trained.run
    np.testing.assert_array_equal(images, run.sampler.reconstruct(originals, labels=labels.tolist()))
    (batch,) = run.experiment.data.batches(global_batch_size=12, seed=0, start_batch=0).take(1)
    np.testing.assert_allclose(originals / 127.5 - 1, batch["image"], atol=1e-6)
    np.testing.assert_array_equal(labels, batch["label"])


def test_picture_is_pairs_of_rows_of_ten_columns_in_the_run_folder(trained, tmp_path, capsys) -> None:
    call(trained, seed=3)
    place = trained.workdir / "reconstruction.png"
    assert f"of step 2 are in {place}" in capsys.readouterr().out
    call(trained, seed=3, output=str(tmp_path / "a.npz"))
    with np.load(tmp_path / "a.npz") as archive:
        shown = picture(place).reshape(4, 28, 10, 28).swapaxes(1, 2)
        np.testing.assert_array_equal(shown[0], archive["originals"][:10, :, :, 0])
        np.testing.assert_array_equal(shown[1], archive["images"][:10, :, :, 0])
        np.testing.assert_array_equal(shown[2, :2], archive["originals"][10:, :, :, 0])
        np.testing.assert_array_equal(shown[3, :2], archive["images"][10:, :, :, 0])
    call(trained, num_images=3, output=str(tmp_path / "few.png"))
    assert picture(tmp_path / "few.png").shape == (56, 84, 1)


def test_folder_holds_both_and_another_seed_takes_other_images(trained, tmp_path) -> None:
    call(trained, num_images=3, output=str(tmp_path / "zero"))
    call(trained, num_images=3, seed=1, output=str(tmp_path / "one"))
    names = {kind: sorted(one.name for one in (tmp_path / "zero" / kind).iterdir()) for kind in ("originals",)}
    assert [name[:6] for name in names["originals"]] == ["000000", "000001", "000002"]
    assert names["originals"] == sorted(one.name for one in (tmp_path / "zero" / "reconstructions").iterdir())
    firsts = [next(iter(sorted((tmp_path / seed / "originals").iterdir()))) for seed in ("zero", "one")]
    assert not np.array_equal(*map(picture, firsts))


def test_real_images_of_fewer_are_the_first_of_more() -> None:
    images, labels = real_images(ToySource(), 250, seed=4)
    assert images.shape == (250, 4, 4, 1) and images.dtype == np.uint8 and labels.dtype == np.int32
    fewer, _ = real_images(ToySource(), 101, seed=4)
    np.testing.assert_array_equal(fewer, images[:101])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"checkpoint": "7"}, "There are: 2"),
        ({"checkpoint": "first"}, "'latest', 'best' or a step"),
        ({"output": "a.gif"}, ".png or .npz"),
        ({"output": "/dev/null/a.npz"}, "can be written"),
        ({"output": "/dev/null/a.png"}, "can be written"),
        ({"output": "/dev/null/a"}, "can be written"),
    ],
)
def test_request_that_cannot_be_met_is_refused(trained, changed, words) -> None:
    with pytest.raises(UserError, match=words):
        call(trained, **changed)


def test_folder_without_a_run_is_refused(tmp_path) -> None:
    with pytest.raises(UserError, match="must name the folder of a run"):
        reconstruct(str(tmp_path), checkpoint="latest", seed=0, num_images=1, output=None)


def test_run_of_a_gan_is_refused(tmp_path) -> None:
    narrow = ["dcgan.generator.widths = (2, 2)", "dcgan.discriminator.widths = (2, 2)"]
    summary = api.train(["quickstart"], [*TINY, LOOP, *narrow], workdir=tmp_path / "gan")
    with pytest.raises(UserError, match="ImageSampler, which reconstructs none. Use --mode=sample"):
        call(summary)
    assert not (tmp_path / "gan" / "reconstruction.png").exists()


def test_data_of_another_shape_are_refused_and_other_data_are_announced(capsys) -> None:
    spec = toy_spec()
    require_like(spec, spec)
    assert not capsys.readouterr().out
    require_like(replace(spec, name="other", fingerprint="1"), spec)
    told = "trained on other data: on toy (train, fingerprint 0), and these are other (train, fingerprint 1)"
    assert told in capsys.readouterr().out
    for change, words in (({"image_shape": (8, 8, 1)}, r"\(8, 8, 1\)"), ({"num_classes": 5}, "num_classes=5")):
        with pytest.raises(UserError, match=words):
            require_like(replace(spec, **change), spec)


def test_archive_of_data_without_labels_has_zeros(tmp_path) -> None:
    write(numbered(1, 2), numbered(5, 2), np.zeros(2, np.int32), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["labels"], [0, 0])
