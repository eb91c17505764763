"""The digit classifier: real digits score high, wrong labels score chance, one picture has no variety."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools import frechet, score_digits
from tools.score_digits import Digits


@pytest.fixture(scope="module")
def digits() -> tuple[Digits, Digits]:
    return score_digits.real_digits()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def classifier(digits: tuple[Digits, Digits], cache: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setattr(score_digits, "_EPOCHS", 2)
        return score_digits.cached_classifier(digits[0])


def test_real_digits_are_each_digit_once(digits: tuple[Digits, Digits]) -> None:
    labels = np.concatenate([part.labels for part in digits])
    assert np.bincount(labels).tolist() == [500] * 10
    images = np.concatenate([part.images for part in digits])
    assert len({image.tobytes() for image in images}) == 5000


def test_score_of_real_digits_is_high(digits: tuple[Digits, Digits], classifier: Any) -> None:
    score = score_digits.score(digits[1], classifier)
    assert score.accuracy > 0.93
    assert score.duplicates < 0.02
    assert score.count == 1000


def test_score_of_shuffled_labels_is_chance(digits: tuple[Digits, Digits], classifier: Any) -> None:
    labels = np.random.default_rng(0).permutation(digits[1].labels)
    score = score_digits.score(Digits(digits[1].images, labels), classifier)
    assert 0.05 < score.accuracy < 0.15


def test_score_of_one_image_a_class_has_no_variety(digits: tuple[Digits, Digits], classifier: Any) -> None:
    real = score_digits.score(digits[1], classifier)
    _, logits = classifier.predict(digits[1].images, verbose=0)
    right = logits.argmax(-1) == digits[1].labels
    first = [np.flatnonzero(right & (digits[1].labels == digit))[0] for digit in range(10)]
    score = score_digits.score(Digits(digits[1].images[first * 20], np.tile(np.arange(10), 20)), classifier, real)
    assert score.accuracy == 1.0
    assert score.duplicates == 1.0
    assert np.all(score.feature_distance < 0.02 * real.feature_distance)
    assert np.all(score.pixel_distance < 0.02 * real.pixel_distance)


def test_score_of_a_class_never_rightly_read_has_variety_zero(digits: tuple[Digits, Digits], classifier: Any) -> None:
    blank = Digits(np.zeros((20, 28, 28, 1), np.uint8), np.repeat([0, 8], 10))
    score = score_digits.score(blank, classifier, score_digits.score(digits[1], classifier))
    assert 0.0 in score.class_accuracy[[0, 8]]
    assert score.pixel_distance[[0, 8]].tolist() == [0.0, 0.0]
    assert np.isnan(score.class_accuracy[1])


def test_gaussian_distance_of_diagonal_covariances_has_a_closed_form() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 7))
    first_deviation, second_deviation = random.uniform(0.0, 3.0, (2, 7))
    first_deviation[0] = second_deviation[1] = 0.0  # singular
    distance = frechet.gaussian_distance(first, np.diag(first_deviation**2), second, np.diag(second_deviation**2))
    expected = ((first - second) ** 2).sum() + ((first_deviation - second_deviation) ** 2).sum()
    np.testing.assert_allclose(distance, expected, rtol=1e-12)


def test_gaussian_distance_does_not_change_when_both_are_turned() -> None:
    random = np.random.default_rng(1)
    turn, _ = np.linalg.qr(random.normal(size=(5, 5)))
    means, deviations = random.normal(size=(2, 5)), random.uniform(0.1, 2.0, (2, 5))
    turned = [(turn @ mean, turn @ np.diag(one**2) @ turn.T) for mean, one in zip(means, deviations, strict=True)]
    expected = ((means[0] - means[1]) ** 2).sum() + ((deviations[0] - deviations[1]) ** 2).sum()
    np.testing.assert_allclose(frechet.gaussian_distance(*turned[0], *turned[1]), expected, rtol=1e-10)


@pytest.mark.parametrize("count", [200, 20])  # of fewer rows than features the covariance is singular
def test_frechet_distance_of_equal_sets_is_zero_and_of_shifted_ones_the_shift(count: int) -> None:
    rows = np.maximum(np.random.default_rng(2).normal(size=(count, 60)), 0.0).astype(np.float32) * 10
    rows[:, 0] = 0.0  # a unit that never fires
    assert frechet.frechet_distance(rows, rows[::-1]) < 1e-9
    np.testing.assert_allclose(frechet.frechet_distance(rows.astype(np.float64), rows + 2.0), 4.0 * 60, rtol=1e-5)
    assert frechet.frechet_distance(rows[:, :1], rows[:, :1]) == 0.0


def test_block_distance_is_the_mean_over_whole_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_digits, "_BLOCK", 10)
    rows, learnt = np.random.default_rng(3).normal(size=(2, 25, 2))
    parts = [frechet.frechet_distance(rows[start : start + 10], learnt) for start in (0, 10)]
    np.testing.assert_allclose(score_digits.block_distance(rows, learnt), np.mean(parts))
    assert np.isnan(score_digits.block_distance(rows[:1], learnt))


def test_yardstick_puts_real_digits_nearer_than_noise(
    digits: tuple[Digits, Digits], classifier: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    measure = score_digits.yardstick()
    noise = np.random.default_rng(0).integers(0, 256, (1000, 28, 28, 1)).astype(np.uint8)
    found = measure.score(Digits(noise, digits[1].labels))
    assert 0.0 < measure.real.frechet < 0.1 * found.frechet
    assert measure.real.variety(measure.real) == 1.0


def test_distances_of_two_points_are_euclidean() -> None:
    rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(score_digits._distances(rows), [[0.0, 5.0], [5.0, 0.0]])


def test_main_prints_both_scores(
    digits: tuple[Digits, Digits],
    classifier: Any,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(score_digits.quiet, "start", lambda: None)
    np.savez(tmp_path / "x.npz", images=digits[1].images, labels=digits[1].labels)
    assert score_digits.main([str(tmp_path / "x.npz")]) == 0
    out = capsys.readouterr().out
    assert "Training" not in out  # it was found in the cache
    assert re.search(r"Fréchet distance in features +(\d+\.\d\d) +\1", out)
    assert re.search(r"of the least varied class +1\.00 +1\.00", out)
    assert len(list((cache / "gantry").iterdir())) == 1


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
