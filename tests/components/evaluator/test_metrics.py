"""Metrics against other implementations of the same formulas, hand-computed values and properties."""

import math

import numpy as np
import pytest
from scipy import linalg

from components.evaluator import frechet, kernel, neighbours
from components.evaluator.classes import ClassAccuracy, InceptionScore, inception_score
from components.evaluator.distances import mean_distance, squared_distances
from components.evaluator.diversity import Diversity, NearDuplicates
from components.evaluator.frechet import FrechetDistance
from components.evaluator.kernel import KernelDistance
from components.evaluator.metric import Metric, SampleSet
from components.evaluator.neighbours import DensityCoverage, PrecisionRecall
from components.interfaces import UserError

EVERY: list[Metric] = [
    FrechetDistance(),
    KernelDistance(),
    PrecisionRecall(),
    DensityCoverage(),
    InceptionScore(),
    ClassAccuracy(),
    Diversity(),
    NearDuplicates(),
]


def samples(features: np.ndarray, labels: np.ndarray | None = None, logits: np.ndarray | None = None) -> SampleSet:
    """Return a set whose images are features as bytes."""
    rows = np.asarray(features, np.float64)
    pixels = np.clip(np.round(rows * 20 + 128), 0, 255).astype(np.uint8)
    return SampleSet(
        images=pixels[:, None, :, None],
        labels=np.zeros(len(rows), np.int32) if labels is None else labels.astype(np.int32),
        features=rows,
        logits=rows if logits is None else logits,
        classes=logits is not None,
    )


def two(count: int = 60, width: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.normal(size=(count, width)), random.normal(0.3, 1.2, size=(count + 7, width))


@pytest.mark.parametrize("count", [300, 12])
def test_frechet_distance_is_that_of_the_square_root_of_a_matrix(count: int) -> None:
    real, fake = two(count, 10)
    first, second = np.cov(real, rowvar=False), np.cov(fake, rowvar=False)
    apart = ((real.mean(axis=0) - fake.mean(axis=0)) ** 2).sum()
    expected = apart + np.trace(first + second - 2 * linalg.sqrtm(first @ second).real)
    np.testing.assert_allclose(frechet.frechet_distance(real, fake), expected, rtol=1e-6)


def test_gaussian_distance_of_diagonal_covariances_has_a_closed_form() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 7))
    first_deviation, second_deviation = random.uniform(0.0, 3.0, (2, 7))
    first_deviation[0] = second_deviation[1] = 0.0  # singular
    distance = frechet.gaussian_distance(first, np.diag(first_deviation**2), second, np.diag(second_deviation**2))
    expected = ((first - second) ** 2).sum() + ((first_deviation - second_deviation) ** 2).sum()
    np.testing.assert_allclose(distance, expected, rtol=1e-12)


@pytest.mark.parametrize("count", [200, 20])  # of fewer rows than features the covariance is singular
def test_frechet_distance_of_equal_sets_is_zero_and_of_shifted_ones_the_shift(count: int) -> None:
    rows = np.maximum(np.random.default_rng(2).normal(size=(count, 60)), 0.0) * 10
    rows[:, 0] = 0.0  # a unit that never fires
    assert frechet.frechet_distance(rows, rows[::-1]) < 1e-9
    np.testing.assert_allclose(frechet.frechet_distance(rows, rows + 2.0), 4.0 * 60, rtol=1e-6)
    assert frechet.frechet_distance(rows[:, :1], rows[:, :1]) == 0.0


def test_frechet_distance_of_a_collapsed_set_is_the_spread_and_the_shift_of_the_real_one() -> None:
    real, _ = two()
    collapsed = np.full((60, 8), 2.0)
    expected = np.trace(np.cov(real, rowvar=False)) + ((real.mean(axis=0) - 2.0) ** 2).sum()
    np.testing.assert_allclose(frechet.frechet_distance(real, collapsed), expected, rtol=1e-9)
    assert frechet.frechet_distance(collapsed, collapsed) == 0.0


def test_squared_discrepancy_is_that_of_two_loops() -> None:
    x, y = two(9, 3)

    def k(a, b):
        return (float(a @ b) / 3 + 1) ** 3

    within_x = sum(k(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j) / (9 * 8)
    within_y = sum(k(a, b) for i, a in enumerate(y) for j, b in enumerate(y) if i != j) / (16 * 15)
    across = sum(k(a, b) for a in x for b in y) / (9 * 16)
    np.testing.assert_allclose(kernel.squared_discrepancy(x, y), within_x + within_y - 2 * across, rtol=1e-6)


def test_kernel_distance_is_the_mean_over_blocks_with_their_deviation() -> None:
    x, y = two(23, 3)
    parts = [kernel.squared_discrepancy(x[i : i + 5], y[i : i + 5]) for i in (0, 5, 10, 15)]
    found = KernelDistance(block_size=5).measure(samples(x), samples(y))
    np.testing.assert_allclose(found["kernel_distance"], np.mean(parts), rtol=1e-12)
    np.testing.assert_allclose(found["kernel_distance_spread"], np.std(parts, ddof=1), rtol=1e-12)


def test_kernel_distance_has_no_bias_where_both_sets_are_of_one_kind() -> None:
    random = np.random.default_rng(0)
    found = [kernel.squared_discrepancy(*random.normal(size=(2, 10, 2))) for _ in range(2000)]
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(2000)


def loops(real: np.ndarray, fake: np.ndarray, k: int) -> dict[str, float]:
    """Precision, recall, density and coverage, one pair at a time."""

    def radius(rows, i):
        return sorted(np.linalg.norm(rows[i] - rows[j]) for j in range(len(rows)) if j != i)[k - 1]

    real_radius = [radius(real, i) for i in range(len(real))]
    fake_radius = [radius(fake, i) for i in range(len(fake))]
    inside = np.array([[np.linalg.norm(y - x) <= r for x, r in zip(real, real_radius, strict=True)] for y in fake])
    back = np.array([[np.linalg.norm(x - y) <= r for y, r in zip(fake, fake_radius, strict=True)] for x in real])
    return {
        "precision": inside.any(axis=1).mean(),
        "recall": back.any(axis=1).mean(),
        "density": inside.sum() / (k * len(fake)),
        "coverage": inside.any(axis=0).mean(),
    }


def test_neighbour_metrics_are_those_of_loops_over_pairs() -> None:
    x, y = two(40, 3)
    expected = loops(x, y, 4)
    found = {
        **PrecisionRecall(k=4).measure(samples(x), samples(y)),
        **DensityCoverage(k=4).measure(samples(x), samples(y)),
    }
    assert found == pytest.approx(expected, rel=1e-6)
    assert 0 < found["precision"] < 1 and 0 < found["coverage"] < 1


def test_neighbour_metrics_of_points_on_a_line_are_as_computed_by_hand() -> None:
    # Balls of the real points with k = 1: [-1, 1], [0, 2], [-1, 5]; of the generated ones: [-0.5, 0.5], [-0.5, 0.5].
    real, fake = np.array([[0.0], [1.0], [2.0 + 1.0]]), np.array([[0.0], [0.5]])
    found = {
        **PrecisionRecall(k=1).measure(samples(real), samples(fake)),
        **DensityCoverage(k=1).measure(samples(real), samples(fake)),
    }
    # Balls reach 1, 1 and 2: 0.0 lies in those of 0 and 1; 0.5 in those of 0 and 1; none in that of 3.
    assert found == {"precision": 1.0, "recall": pytest.approx(2 / 3), "density": 2.0, "coverage": pytest.approx(2 / 3)}


def test_neighbour_metrics_of_equal_sets_are_one_and_of_distant_ones_zero() -> None:
    x, _ = two()
    same = {**PrecisionRecall().measure(samples(x), samples(x)), **DensityCoverage().measure(samples(x), samples(x))}
    assert same == {"precision": 1.0, "recall": 1.0, "density": pytest.approx(6 / 5), "coverage": 1.0}
    far = samples(x + 100)
    apart = {**PrecisionRecall().measure(samples(x), far), **DensityCoverage().measure(samples(x), far)}
    assert set(apart.values()) == {0.0}


def test_inception_score_of_sure_and_even_classes_is_their_number_and_of_alike_images_one() -> None:
    sure = 100.0 * np.eye(4)[np.arange(40) % 4]
    np.testing.assert_allclose(inception_score(sure), 4.0, rtol=1e-9)
    assert inception_score(np.ones((40, 4))) == 1.0
    assert inception_score(1e6 * np.ones((5, 3))) == 1.0
    probabilities = np.array([[0.7, 0.3], [0.2, 0.8]])
    mean = probabilities.mean(axis=0)
    expected = np.exp((probabilities * np.log(probabilities / mean)).sum(axis=1).mean())
    np.testing.assert_allclose(inception_score(np.log(probabilities) + 5.0), expected, rtol=1e-9)


def test_inception_score_is_the_mean_over_splits() -> None:
    logits, _ = two(40, 4)
    expected = np.mean([inception_score(part) for part in np.split(logits, 4)])
    found = InceptionScore(splits=4).measure(samples(logits), samples(logits))
    np.testing.assert_allclose(found["inception_score"], expected)


def test_class_accuracy_counts_the_images_read_as_asked() -> None:
    logits = np.eye(3)[[0, 1, 1, 2]]
    found = ClassAccuracy().measure(
        samples(logits), samples(np.zeros((4, 2)), labels=np.array([0, 1, 2, 2]), logits=logits)
    )
    assert found == {"class_accuracy": 0.75, "class_accuracy_least": 0.5}


def test_distances_of_points_are_euclidean_and_zero_for_the_same_row() -> None:
    rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(squared_distances(rows, rows), [[0.0, 25.0], [25.0, 0.0]])
    assert mean_distance(rows) == 5.0 and mean_distance(rows[:1]) == 0.0
    many = np.random.default_rng(0).normal(1000.0, 1e-3, (50, 300))
    assert not np.diag(squared_distances(many, many)).any()


def test_diversity_is_the_mean_distance_in_a_class_as_a_share_of_the_real_one() -> None:
    labels = np.array([0, 0, 1, 1])
    real = samples(np.array([[0.0], [2.0], [0.0], [4.0]]), labels)
    fake = samples(np.array([[5.0], [6.0], [0.0], [4.0]]), labels)
    assert Diversity().measure(real, fake) == {"diversity": 0.75, "diversity_least": 0.5}
    assert Diversity().measure(real, samples(np.ones((4, 1)), labels)) == {"diversity": 0.0, "diversity_least": 0.0}
    alike = samples(np.ones((4, 1)), labels)
    assert Diversity().measure(alike, alike)["diversity"] == 1.0
    with pytest.raises(UserError, match="all alike"):
        Diversity().measure(alike, fake)


def test_diversity_leaves_out_images_of_a_wrong_class() -> None:
    labels, logits = np.array([0, 0, 0]), np.eye(2)[[0, 0, 1]]
    real = samples(np.array([[0.0], [2.0], [4.0]]), labels, np.eye(2)[[1, 1, 1]])  # their class is known: all count
    fake = samples(np.array([[0.0], [1.0], [99.0]]), labels, logits)
    assert Diversity().measure(real, fake)["diversity"] == pytest.approx(3 / 8)


def test_near_duplicates_are_copies_of_real_images_and_of_each_other() -> None:
    x = np.random.default_rng(0).normal(size=(40, 20))
    fresh = np.random.default_rng(1).normal(size=(40, 20))
    none = {"duplicates_of_real": 0.0, "duplicates_of_generated": 0.0}
    assert NearDuplicates().measure(samples(x), samples(fresh)) == none
    copied = np.concatenate([x[:10], fresh[:30]])
    assert NearDuplicates().measure(samples(x), samples(copied)) == none | {"duplicates_of_real": 0.25}
    twice = np.concatenate([fresh[:20], fresh[:5], fresh[20:35]])
    assert NearDuplicates().measure(samples(x), samples(twice)) == none | {"duplicates_of_generated": 0.25}


@pytest.mark.parametrize("metric", EVERY, ids=lambda one: type(one).__name__)
def test_metric_of_a_collapsed_generator_is_finite_and_complete(metric: Metric) -> None:
    random = np.random.default_rng(0)
    labels = np.arange(40) % 4
    real = samples(random.normal(size=(40, 4)), labels, random.normal(size=(40, 4)))
    fake = samples(np.zeros((40, 4)), labels, np.zeros((40, 4)))
    for pair in ((real, fake), (fake, real) if not isinstance(metric, Diversity) else (fake, fake), (fake, fake)):
        found = metric.measure(*pair)
        assert set(found) == set(metric.better)
        assert all(type(value) is float and math.isfinite(value) for value in found.values()), found


@pytest.mark.parametrize("metric", EVERY, ids=lambda one: type(one).__name__)
def test_metric_of_any_number_of_images_is_finite_or_refuses_with_the_number_needed(metric: Metric) -> None:
    random = np.random.default_rng(0)
    is_right = []
    for count in range(1, 14):
        rows = random.normal(size=(count, 30))
        one = samples(rows, np.zeros(count), rows)
        try:
            found = metric.measure(one, one)
        except UserError as error:
            assert f"Received {count}" in str(error) and "at least" in str(error)
            is_right.append(False)
            continue
        assert all(math.isfinite(value) for value in found.values())
        is_right.append(True)
    assert is_right == sorted(is_right) and is_right[-1]


def test_neighbour_radii_do_not_depend_on_how_rows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = two(50, 5)
    whole = neighbours.squared_radii(x, 3)
    monkeypatch.setattr(neighbours, "in_rows", lambda function, rows: np.concatenate([function(r[None]) for r in rows]))
    np.testing.assert_allclose(neighbours.squared_radii(x, 3), whole, rtol=1e-9)
