"""Images keep their values and their shape through model, grid, film, archive and folder."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from toy_parts import toy_spec

from components.interfaces import Networks, UserError
from components.model_zoo import dcgan
from components.sampler.image_sampler import ImageSampler
from pipeline import film, grid

CHANNELS = [1, 3, 4]


def decoded(path) -> np.ndarray:
    return tf.io.decode_png(path.read_bytes()).numpy()


def frames_of(path) -> list[np.ndarray]:
    """Return every frame, as it is shown."""
    with Image.open(path) as film_file:
        found = []
        for index in range(film_file.n_frames):
            film_file.seek(index)
            shown = np.asarray(film_file)
            found.append(shown.reshape(*shown.shape[:2], -1))
        return found


def extreme(channels: int) -> np.ndarray:
    """Return 5 images of 2 x 3 pixels: black, white, one grey, and both ends side by side."""
    images = np.zeros([5, 2, 3, channels], np.uint8)
    images[1], images[2] = 255, 7
    images[3, :, ::2] = 255
    images[4] = np.arange(6 * channels).reshape(2, 3, channels) * 10
    return images


@pytest.mark.parametrize("channels", CHANNELS)
def test_images_of_extreme_values_are_written_as_they_are(channels, tmp_path) -> None:
    images, labels = extreme(channels), [0, 1, 2, 3, 4]
    grid.write(images, labels, tmp_path / "a.npz", columns=3)
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["images"], images)
    grid.write(images, labels, tmp_path / "folder", columns=3)
    files = sorted((tmp_path / "folder").iterdir())
    np.testing.assert_array_equal(np.stack([decoded(file) for file in files]), images)
    grid.write(images, labels, tmp_path / "a.png", columns=3)
    picture = decoded(tmp_path / "a.png")
    assert picture.shape == (4, 9, channels)
    for index, image in enumerate(images):
        top, left = index // 3 * 2, index % 3 * 3
        np.testing.assert_array_equal(picture[top : top + 2, left : left + 3], image)
    assert not picture[2:, 6:].any()


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("ending", ["png", "apng"])
def test_animated_png_has_the_pixels_as_they_are_in_order(channels, ending, tmp_path) -> None:
    film.write(iter(extreme(channels)), tmp_path / f"a.{ending}", 40)
    np.testing.assert_array_equal(np.stack(frames_of(tmp_path / f"a.{ending}")), extreme(channels))
    with Image.open(tmp_path / f"a.{ending}") as file:
        assert file.info["duration"] == 40 and file.info["loop"] == 0
    np.testing.assert_array_equal(decoded(tmp_path / f"a.{ending}"), extreme(channels)[0])


def test_gif_of_grey_pictures_has_the_pixels_as_they_are_for_another_decoder(tmp_path) -> None:
    film.write(extreme(1), tmp_path / "new" / "a.gif", None)
    found = tf.io.decode_gif((tmp_path / "new" / "a.gif").read_bytes()).numpy()
    np.testing.assert_array_equal(found, np.repeat(extreme(1), 3, axis=-1))
    with Image.open(tmp_path / "new" / "a.gif") as file:
        assert file.info["duration"] == 200
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.gif"]


@pytest.mark.parametrize("channels", [3, 4])
def test_gif_of_colours_has_every_frame(channels, tmp_path) -> None:
    film.write(extreme(channels), tmp_path / "a.gif", 60)
    found = tf.io.decode_gif((tmp_path / "a.gif").read_bytes()).numpy()
    assert found.shape == (5, 2, 3, 3)
    np.testing.assert_array_equal(found[1], 255)
    if channels == 3:  # of so few colours each is there
        np.testing.assert_array_equal(found, extreme(3))


def test_film_of_pictures_without_a_difference_is_shown_for_as_long(tmp_path) -> None:
    film.write([extreme(1)[0], extreme(1)[1], extreme(1)[1]], tmp_path / "a.png", 100)
    with Image.open(tmp_path / "a.png") as file:
        times = []
        for index in range(file.n_frames):
            file.seek(index)
            times.append(file.info["duration"])
    assert times == [100, 200]


@pytest.mark.parametrize("channels", [2, 5])
def test_picture_of_other_channels_is_refused_and_an_archive_is_not(channels, tmp_path) -> None:
    images = np.zeros([2, 4, 4, channels], np.uint8)
    for output in (tmp_path / "a.png", tmp_path / "folder"):
        with pytest.raises(UserError, match=f"1, 3 or 4 channels. Received {channels}. An archive"):
            grid.write(images, [0, 0], output, columns=2)
    with pytest.raises(UserError, match="1, 3 or 4 channels"):
        film.write(images, tmp_path / "a.gif", None)
    grid.write(images, [0, 0], tmp_path / "a.npz", columns=2)
    with np.load(tmp_path / "a.npz") as archive:
        assert archive["images"].shape == (2, 4, 4, channels)


@pytest.mark.parametrize("channels", CHANNELS)
def test_samples_that_are_not_square_pass_model_grid_and_film(channels, tmp_path) -> None:
    spec = toy_spec(8, 12, channels)
    network = dcgan.generator(spec, latent_dim=3, widths=(4, 4))
    images = ImageSampler(Networks({"generator": network}, spec)).sample(7, seed=0)
    assert images.shape == (7, 8, 12, channels)
    grid.write(images, [0] * 7, tmp_path / "a.png", columns=4)
    assert decoded(tmp_path / "a.png").shape == (16, 48, channels)
    film.write((grid.tile(images[index : index + 2], 2) for index in range(6)), tmp_path / "a.apng", None)
    found = frames_of(tmp_path / "a.apng")
    assert len(found) == 6 and found[5].shape == (8, 24, channels)
    np.testing.assert_array_equal(found[5], grid.tile(images[5:7], 2))


def test_film_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(UserError, match="can be written"):
        film.write(extreme(1), Path("/dev/null/a.gif"), None)
