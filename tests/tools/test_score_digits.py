"""The tool that scores digits: real digits score high, wrong labels score chance, one picture has no variety."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from components.evaluator.frechet import frechet_distance
from tools import score_digits
from tools.score_digits import Digits, Yardstick


@pytest.fixture(scope="module")
def few_steps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Let the classifier learn a little, in a cache of this module."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setattr(score_digits, "_TRAIN_STEPS", 126)
        patch.setattr(score_digits.quiet, "start", lambda: None)
        yield cache


@pytest.fixture(scope="module")
def measure(few_steps: Path) -> Yardstick:
    return score_digits.yardstick()


def held_out(measure: Yardstick) -> Digits:
    return Digits(measure.held_out.images, measure.held_out.labels)


@pytest.mark.slow
def test_real_digits_are_each_digit_once_and_score_high(measure: Yardstick) -> None:
    assert np.bincount(np.concatenate([measure.learnt.labels, measure.held_out.labels])).tolist() == [500] * 10
    images = np.concatenate([measure.learnt.images, measure.held_out.images])
    assert len({image.tobytes() for image in images}) == 5000
    score = measure.score(held_out(measure))
    assert score == measure.real()
    assert score.accuracy > 0.93 and score.duplicates < 0.02 and score.count == 1000
    assert 0.8 < score.variety_least < score.variety <= 1.0


@pytest.mark.slow
def test_few_samples_stand_beside_real_digits_in_blocks_as_small(measure: Yardstick) -> None:
    features, learnt = measure.held_out.features, measure.learnt.features
    blocks = [frechet_distance(features[start : start + 250], learnt) for start in range(0, 1000, 250)]
    np.testing.assert_allclose(measure.real(250).frechet, np.mean(blocks))
    assert measure.real(250).frechet > measure.real().frechet  # fewer images, a greater distance


@pytest.mark.slow
def test_score_of_shuffled_labels_is_chance_and_of_noise_is_far(measure: Yardstick) -> None:
    digits = held_out(measure)
    labels = np.random.default_rng(0).permutation(digits.labels)
    assert 0.05 < measure.score(Digits(digits.images, labels)).accuracy < 0.15
    noise = np.random.default_rng(0).integers(0, 256, (1000, 28, 28, 1)).astype(np.uint8)
    found = measure.score(Digits(noise, digits.labels))
    assert 0.0 < measure.real().frechet < 0.1 * found.frechet


@pytest.mark.slow
def test_score_of_one_image_a_class_has_no_variety(measure: Yardstick) -> None:
    digits = held_out(measure)
    right = measure.held_out.logits.argmax(axis=1) == digits.labels
    first = [np.flatnonzero(right & (digits.labels == digit))[0] for digit in range(10)]
    score = measure.score(Digits(digits.images[first * 20], np.tile(np.arange(10), 20)))
    assert score.accuracy == 1.0 and score.duplicates == 1.0 and score.variety == 0.0


def test_block_distance_is_the_mean_over_whole_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_digits, "_BLOCK", 10)
    rows, learnt = np.random.default_rng(3).normal(size=(2, 25, 2))
    parts = [frechet_distance(rows[start : start + 10], learnt) for start in (0, 10)]
    np.testing.assert_allclose(
        score_digits.block_distance(rows, learnt, score_digits.block_of(len(rows))), np.mean(parts)
    )


@pytest.mark.slow
def test_main_prints_both_scores(measure: Yardstick, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digits = held_out(measure)
    np.savez(tmp_path / "x.npz", images=digits.images, labels=digits.labels)
    assert score_digits.main([str(tmp_path / "x.npz")]) == 0
    out = capsys.readouterr().out
    assert "Training" not in out  # it was found in the cache
    assert re.search(r"Fréchet distance in features +(\d+\.\d\d) +\1", out)
    assert re.search(r"of the least varied class +(\d\.\d\d) +\1", out)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"images": np.zeros((2, 28, 28, 1), np.uint8)}, "labels"),
        ({"images": np.zeros((2, 28, 28, 1), np.float32), "labels": np.zeros(2, np.int32)}, "float32[2, 28, 28, 1]"),
        ({"images": np.zeros((2, 32, 32, 3), np.uint8), "labels": np.zeros(2, np.int32)}, "uint8[2, 32, 32, 3]"),
        ({"images": np.zeros((2, 28, 28, 1), np.uint8), "labels": np.zeros(3, np.int32)}, "int32[3]"),
        ({"images": np.zeros((2, 28, 28, 1), np.uint8), "labels": np.array([3, 10])}, "3 to 10"),
        ({"images": np.zeros((0, 28, 28, 1), np.uint8), "labels": np.zeros(0, np.int32)}, "uint8[0, 28, 28, 1]"),
        ({"images": np.array([None]), "labels": np.zeros(1, np.int32)}, "pickle"),
    ],
)
def test_main_with_wrong_arrays_exits_2_and_says_why(
    arrays: dict[str, np.ndarray], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    assert score_digits.main([str(tmp_path / "x.npz")]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "--mode=sample" in error


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 cut off", None])
def test_main_with_no_archive_exits_2(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.npz"
    if content is not None:
        path.write_bytes(content)
    assert score_digits.main([str(path)]) == 2
    assert "Samples are an npz file" in capsys.readouterr().err
