"""How long a run trained, and how fast: worked out by hand."""

import json

import pytest
from report_pages import page_of, shown
from run_folders import CONFIG, make

from pipeline.reporting import comparison_page, facts, pace


def run_of(folder, speeds: dict[int, float], starts: dict[int, int | None]):
    """Make a run with a log point at each step of `speeds`, and starts {first step: images of a step}."""
    make(folder)
    points = [{"step": step, "generator/loss": 1.0, pace.SPEED: speed} for step, speed in speeds.items()]
    points.insert(1, {"step": 10, "evaluation/recall": 0.5})  # an evaluation is a line of its own, without a speed
    (folder / "metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    manifest = json.loads((folder / "manifest.json").read_text())
    days = enumerate(starts.items(), start=1)  # pauses of a day, which no time may hold
    manifest["starts"] = [
        {"step": step, "time": f"2026-01-{day:02d}T03:04:05+0000", "images_per_step": images}
        for day, (step, images) in days
    ]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return facts.read(folder)


@pytest.mark.parametrize(
    ("speeds", "starts", "seconds", "words"),
    [
        # 10 steps of 10 images each: 100/10 + 100/5 + 100/10 + 100/20
        ({10: 10, 20: 5, 30: 10, 40: 20}, {0: 10}, 45.0, "45s"),
        # resumed at 20 with 20 images a step: 100/10 + 100/5 + 200/10 + 200/20
        ({10: 10, 20: 5, 30: 10, 40: 20}, {0: 10, 20: 20}, 60.0, "about 1m 00s"),
        # resumed at 25, between two points: its speed counts for all 10 steps, 100/10 + 100/5 + 100/10 + 100/20
        ({10: 10, 20: 5, 30: 10, 40: 20}, {0: 10, 25: 10}, 45.0, "about 45s"),
        # a later start went back to an older checkpoint: points after 10 are its own, 100/10 + 300/5
        ({10: 10, 40: 5}, {0: 10, 30: 20, 10: 10}, 70.0, "about 1m 10s"),
    ],
)
def test_time_in_training_is_summed_over_starts_without_their_pauses(speeds, starts, seconds, words, tmp_path) -> None:
    run = run_of(tmp_path / "run", speeds, starts)
    assert pace.seconds(run) == pytest.approx(seconds)
    text = shown(page_of(tmp_path / "run"))
    assert f"Time in training {words} Images a second, median" in text
    assert ("over all starts, without the pauses between them" in text) == (len(starts) > 1)


def test_speed_is_told_as_the_median_that_it_is(tmp_path) -> None:
    run_of(tmp_path / "run", {10: 10, 20: 500, 30: 20, 40: 40}, {0: 10})  # sorted 10 20 40 500: (20 + 40) / 2
    text = shown(page_of(tmp_path / "run"))
    assert "Images a second, median 30 " in text and "the median of 4 log points" in text


@pytest.mark.parametrize("starts", [{}, {0: None}])
@pytest.mark.parametrize("speeds", [{10: 10, 40: 20}, {10: 10, 40: 0}, {10: 10, 40: float("nan")}])
def test_time_that_is_not_known_is_not_told(starts, speeds, tmp_path) -> None:
    run_of(tmp_path / "run", speeds, starts)
    text = shown(page_of(tmp_path / "run"))
    assert "Time in training" not in text and "Images a second, median" in text


def test_time_that_a_speed_of_zero_would_make_endless_is_not_told(tmp_path) -> None:
    assert pace.seconds(run_of(tmp_path / "run", {10: 10, 40: 0}, {0: 10})) is None


def test_epochs_count_all_images_that_a_step_draws(tmp_path) -> None:
    run_of(tmp_path / "run", {10: 10, 40: 20}, {0: 24})  # 40 steps of 24 images, of 80 examples
    assert "Epochs 12.0" in shown(page_of(tmp_path / "run"))


def test_comparison_tells_both_runs_times_and_medians(tmp_path) -> None:
    one = run_of(tmp_path / "one", {10: 10, 40: 20}, {0: 10})  # 100/10 + 300/20
    make(tmp_path / "other", config=CONFIG)
    text = shown(comparison_page.write([one, facts.read(tmp_path / "other")]))
    assert "time in training images a second, median" in text and "finished, well 40 25s 15 " in text
    assert "without the pauses between them" in text
