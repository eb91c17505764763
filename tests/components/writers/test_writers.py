"""What writers leave on disk."""

import json

import numpy as np
import pytest
import tensorflow as tf

from components.writers.event_file import EventFile
from components.writers.history_picture import HistoryPicture
from components.writers.metrics_file import MetricsFile
from components.writers.picture_folder import PictureFolder

EVERY = [EventFile, HistoryPicture, MetricsFile, PictureFolder]


@pytest.mark.parametrize("kind", EVERY)
def test_writer_touches_no_file_before_it_is_given_something(kind, tmp_path) -> None:
    writer = kind(str(tmp_path / "run"))
    writer.rewind(0)
    writer.close()
    assert not (tmp_path / "run").exists()


def test_metrics_file_rewinds_to_the_step_and_drops_half_a_line(tmp_path) -> None:
    writer = MetricsFile(str(tmp_path))
    for step in (10, 20, 30):
        writer.scalars(step, {"loss": step / 10})
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text() + '{"step": 15, "lo')
    again = MetricsFile(str(tmp_path))
    again.rewind(20)
    again.scalars(25, {"loss": 2.5})
    points = [json.loads(line) for line in path.read_text().splitlines()]
    assert points == [{"step": 10, "loss": 1.0}, {"step": 20, "loss": 2.0}, {"step": 25, "loss": 2.5}]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_picture_folder_writes_the_pixels(channels, tmp_path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, channels), np.uint8)
    PictureFolder(str(tmp_path)).images(3, "samples", picture)
    read = tf.io.decode_png((tmp_path / "samples" / "000000003.png").read_bytes()).numpy()
    np.testing.assert_array_equal(read, picture)


def test_picture_folder_rewinds_every_preview_to_the_step(tmp_path) -> None:
    writer = PictureFolder(str(tmp_path))
    for step in (10, 20, 30):
        for name in ("samples", "reconstructions"):
            writer.images(step, name, np.zeros((2, 2, 1), np.uint8))
    (tmp_path / "samples" / "mine.png").touch()
    PictureFolder(str(tmp_path)).rewind(20)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png"))
    drawn = [f"{name}/{step:09d}.png" for name in ("reconstructions", "samples") for step in (10, 20)]
    assert left == [*drawn, "samples/mine.png"]


def test_event_file_holds_curves_and_pictures(tmp_path) -> None:
    writer = EventFile(str(tmp_path))
    writer.scalars(1, {"generator/loss": 0.5})
    writer.images(1, "samples", np.zeros((2, 2, 1), np.uint8))
    writer.close()
    (path,) = (tmp_path / "events").iterdir()
    tags = [v.tag for event in tf.compat.v1.train.summary_iterator(str(path)) for v in event.summary.value]
    assert tags == ["generator/loss", "samples"]
