"""The small parts around the loop: grid, status line, stop signal, run folder, actions."""

import io
import json
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from toy_parts import toy_spec

from components.interfaces import Grid, UserError
from pipeline import actions, grid
from pipeline.quantities import clock
from pipeline.run_folder import RunFolder
from pipeline.status import StatusLine
from pipeline.stop import StopSignal


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_tile_lays_images_row_by_row_and_leaves_the_rest_black(channels) -> None:
    images = np.stack([np.full((2, 3, channels), value, np.uint8) for value in (10, 20, 30)])
    picture = grid.tile(images, columns=2)
    assert picture.shape == (4, 6, channels)
    np.testing.assert_array_equal(picture[::2, ::3, 0], [[10, 20], [30, 0]])
    np.testing.assert_array_equal(picture[:2, :3], images[0])


def test_write_makes_a_grid_an_archive_or_a_folder(tmp_path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 2, 2, 1), np.uint8)
    grid.write(images, [7, 7, 1], tmp_path / "a" / "grid.png", columns=3)
    assert tf.io.decode_png((tmp_path / "a" / "grid.png").read_bytes()).shape == (2, 6, 1)
    grid.write(images, [7, 7, 1], tmp_path / "a.npz", columns=3)
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["images"], images)
        np.testing.assert_array_equal(archive["labels"], [7, 7, 1])
        assert archive["images"].dtype == np.uint8 and archive["labels"].dtype == np.int32
    grid.write(images, [7, 7, 1], tmp_path / "folder", columns=3)
    with pytest.raises(UserError, match="without images of an earlier call.*000000-7.png"):
        grid.write(images[:1], [3], tmp_path / "folder", columns=3)
    assert sorted(p.name for p in (tmp_path / "folder").iterdir()) == ["000000-7.png", "000001-7.png", "000002-1.png"]


def test_write_to_another_ending_or_an_impossible_place_is_refused(tmp_path) -> None:
    images = np.zeros((1, 2, 2, 1), np.uint8)
    (tmp_path / "file").touch()
    for output, words in ((tmp_path / "a.jpg", "ends in .png"), (tmp_path / "file" / "a.png", "can be written")):
        with pytest.raises(UserError, match=words):
            grid.write(images, [0], output, columns=1)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "has_returns"), [(io.StringIO, False), (_Terminal, True)])
def test_status_line_redraws_in_a_terminal_and_litters_no_file(stream, has_returns) -> None:
    out = stream()
    status = StatusLine(0, 100, 64, out)
    status.show(10, {"generator/loss": 0.5, "generator/accuracy": 0.25})
    status.keep(20, {"generator/loss": 0.5, "generator/accuracy": 0.25})
    text = out.getvalue()
    assert ("\r" in text) is has_returns
    assert "step 20/100" in text and "generator/loss 0.5000, accuracy 25.0%" in text and text.endswith(" left\n")
    assert text.count("\n") == 1 and status.images_per_second > 0


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0s"), (59.6, "1m 00s"), (185, "3m 05s"), (3600, "1h 00m"), (7830, "2h 10m")]
)
def test_clock_says_a_duration_as_a_person_does(seconds, words) -> None:
    assert clock(seconds) == words


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_first_signal_is_a_request_and_handlers_come_back(number, status, capfd) -> None:
    before = signal.getsignal(number)
    with StopSignal() as stop:
        assert not stop.requested and stop.exit_status == 0
        os.kill(os.getpid(), number)
        assert stop.requested == number and stop.exit_status == status
    assert signal.getsignal(number) is before
    assert "saving" in capfd.readouterr().err


def test_run_folder_refuses_another_run_and_says_the_differences(tmp_path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.require_same(["anything"], toy_spec())  # nothing there yet
    folder.write("A = 1\n", {"seed": 0}, toy_spec(), 0)
    folder.require_same([], toy_spec())
    with pytest.raises(UserError, match="A: 1 -> 2"):
        folder.require_same(["A: 1 -> 2"], toy_spec())
    other = toy_spec(8, 8, 1)
    with pytest.raises(UserError, match="fingerprint: 0 -> 1"):
        folder.require_same([], type(other)(**{**vars(other), "fingerprint": "1"}))
    assert folder.spec() == toy_spec()
    folder.write("A = 1\n", {"seed": 0}, toy_spec(), 30)
    assert [start["step"] for start in json.loads(folder.manifest.read_text())["starts"]] == [0, 30]


def test_run_folder_that_lost_its_config_or_manifest_is_refused(tmp_path) -> None:
    folder = RunFolder(tmp_path)
    folder.checkpoints.mkdir()
    with pytest.raises(UserError, match="has lost it"):
        folder.require_same([], toy_spec())
    folder.config.write_text("A = 1\n")
    folder.manifest.write_text("{half")
    with pytest.raises(UserError, match="cannot be read"):
        folder.require_same([], toy_spec())
    with pytest.raises(UserError, match="must name the folder of a run"):
        RunFolder(tmp_path / "none").require_run()


def test_run_folder_clears_what_a_run_wrote_and_nothing_else(tmp_path) -> None:
    folder = RunFolder(tmp_path)
    folder.write("A = 1\n", {}, toy_spec(), 0)
    (folder.checkpoints / "step-1").mkdir(parents=True)
    for name in ("samples/000000001.png", "grid/000000001.png.writing", "history/000000001.png", "both/000000001.png"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / "history.png").touch()
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "both" / "mine.png").touch()
    folder.clear()
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == ["both", "both/mine.png", "thesis.tex"]


def test_draw_tiles_every_preview_for_every_writer() -> None:
    given: list[tuple] = []
    writer = SimpleNamespace(images=lambda step, name, picture: given.append((step, name, picture)))
    images = np.stack([np.full((2, 3, 1), value, np.uint8) for value in (10, 20, 30, 40)])
    previews = {"samples": lambda: Grid(images, 2), "row": lambda: Grid(images, 4)}
    actions.draw(previews, [writer, writer])(7, {})
    assert [one[:2] for one in given] == [(7, "samples")] * 2 + [(7, "row")] * 2
    np.testing.assert_array_equal(given[0][2][::2, ::3, 0], [[10, 20], [30, 40]])
    np.testing.assert_array_equal(given[3][2][::2, ::3, 0], [[10, 20, 30, 40]])


def test_every_acts_at_multiples_and_at_the_end() -> None:
    seen: list[int] = []
    action = actions.every(20, 50, lambda step, metrics: seen.append(step))
    for step in range(10, 60, 10):
        action(step, {})
    assert seen == [20, 40, 50]


def test_metrics_that_are_not_finite_stop_the_run() -> None:
    actions.refuse_nan(5, {"a": 1.0})
    with pytest.raises(UserError, match="step 5 .*not: b, c"):
        actions.refuse_nan(5, {"a": 1.0, "b": float("nan"), "c": float("inf")})


def test_log_points_are_means_over_steps_since_the_last() -> None:
    points: dict[int, dict[str, float]] = {}
    writer = SimpleNamespace(scalars=lambda step, values: points.setdefault(step, dict(values)))
    experiment = SimpleNamespace(log_every=40, train_steps=50)
    run = SimpleNamespace(experiment=experiment, step=0)
    add = actions.log(run, [writer], StatusLine(0, 50, 1, io.StringIO()))
    add(30, {"x": 1.0})
    add(40, {"x": 5.0})
    add(50, {"x": 7.0})
    assert points[40]["x"] == (30 * 1.0 + 10 * 5.0) / 40
    assert points[50]["x"] == 7.0 and sorted(points) == [40, 50]
