"""The history of a run, in a picture."""

import numpy as np
import pytest
import tensorflow as tf

from components.interfaces import UserError
from components.writers.history_picture import HistoryPicture

OPTIONS = {"rows": 3, "row": 1, "kept_steps": (0, 30), "every": 50}


def montage(step: int, channels: int = 1, columns: int = 2) -> np.ndarray:
    """Return three rows of images of 4 x 5, each row filled with step + its number."""
    rows = [np.full((4, columns * 5, channels), step + row, np.uint8) for row in range(3)]
    return np.concatenate(rows)


def read(path) -> np.ndarray:
    return tf.io.decode_png(path.read_bytes()).numpy()


def everything_in(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def draw(folder, steps) -> None:
    writer = HistoryPicture(str(folder), **OPTIONS)
    writer.rewind(steps[0] - 10)
    for step in steps:
        writer.images(step, "samples", montage(step))


@pytest.mark.parametrize("channels", [1, 3])
def test_history_has_the_row_of_kept_steps_and_of_multiples_in_order(channels, tmp_path) -> None:
    writer = HistoryPicture(str(tmp_path), **OPTIONS)
    for step in range(0, 110, 10):
        writer.images(step, "samples", montage(step, channels))
    expected = np.concatenate([montage(step, channels)[4:8] for step in (0, 30, 50, 100)])
    np.testing.assert_array_equal(read(tmp_path / "history.png"), expected)
    assert sorted(path.name for path in (tmp_path / "history").iterdir()) == [
        f"{step:09d}.png" for step in (0, 30, 50, 100)
    ]
    np.testing.assert_array_equal(read(tmp_path / "history" / "000000030.png"), montage(30, channels)[4:8])


def test_history_keeps_no_other_preview(tmp_path) -> None:
    HistoryPicture(str(tmp_path / "run"), **OPTIONS).images(0, "grid", montage(0))
    assert not (tmp_path / "run").exists()


def test_history_over_a_resume_is_that_of_a_run_without_a_stop(tmp_path) -> None:
    draw(tmp_path / "whole", range(0, 110, 10))
    draw(tmp_path / "cut", range(0, 60, 10))  # a kill after step 50, whose last save was at step 20
    draw(tmp_path / "cut", range(30, 110, 10))
    assert everything_in(tmp_path / "whole") == everything_in(tmp_path / "cut")


def test_history_rewinds_to_the_step(tmp_path) -> None:
    draw(tmp_path, range(0, 60, 10))
    writer = HistoryPicture(str(tmp_path), **OPTIONS)
    writer.rewind(40)
    np.testing.assert_array_equal(read(tmp_path / "history.png"), np.concatenate([montage(0)[4:8], montage(30)[4:8]]))
    writer.rewind(-1)
    assert not everything_in(tmp_path)


def test_history_whose_composition_was_cut_off_is_made_whole(tmp_path) -> None:
    draw(tmp_path, range(0, 40, 10))
    before = everything_in(tmp_path)
    (tmp_path / "history.png").unlink()
    HistoryPicture(str(tmp_path), **OPTIONS).rewind(30)
    assert everything_in(tmp_path) == before


def test_history_of_a_preview_that_became_wider_ends_in_black(tmp_path) -> None:
    writer = HistoryPicture(str(tmp_path), **OPTIONS)
    writer.images(30, "samples", montage(30, columns=1))
    writer.images(50, "samples", montage(50, columns=2))
    picture = read(tmp_path / "history.png")
    assert picture.shape == (8, 10, 1) and not picture[:4, 5:].any() and (picture[:4, :5] == 31).all()


def test_history_of_a_row_that_is_not_there_is_refused(tmp_path) -> None:
    with pytest.raises(UserError, match="row=3, rows=3"):
        HistoryPicture(str(tmp_path), rows=3, row=3)
    with pytest.raises(UserError, match="Received 5 for a picture of 12 pixels"):
        HistoryPicture(str(tmp_path), rows=5).images(0, "samples", montage(0))
