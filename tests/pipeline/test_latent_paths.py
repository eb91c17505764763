"""Paths, against values computed by hand."""

import math

import numpy as np
import pytest

from pipeline.latent_paths import PATHS, linear, spherical

HALVES = np.array([0.0, 0.5, 1.0])


def row(*numbers: float) -> np.ndarray:
    return np.array([numbers], np.float32)


def test_linear_path_has_the_mean_in_its_middle() -> None:
    np.testing.assert_array_equal(linear(row(1, 0), row(3, 4), HALVES), [[[1, 0], [2, 2], [3, 4]]])


def test_spherical_path_between_orthogonal_vectors_is_a_quarter_of_a_circle() -> None:
    # Thirds of a right angle: cos 30 = sin 60 = sqrt(3) / 2, sin 30 = cos 60 = 1 / 2.
    found = spherical(row(2, 0, 0), row(0, 0, 2), np.array([0, 1 / 3, 2 / 3, 1]))
    root = math.sqrt(3)
    np.testing.assert_allclose(found, [[[2, 0, 0], [root, 0, 1], [1, 0, root], [0, 0, 2]]], atol=1e-6)


def test_spherical_path_between_vectors_of_a_norm_keeps_it_and_its_steps_are_equal() -> None:
    draws = np.random.default_rng(0).normal(size=[2, 5, 64])
    start, end = (7 * draws / np.linalg.norm(draws, axis=-1, keepdims=True)).astype(np.float32)
    path = spherical(start, end, np.linspace(0, 1, 9))
    np.testing.assert_allclose(np.linalg.norm(path, axis=-1), 7.0, rtol=1e-6)
    steps = np.linalg.norm(np.diff(path, axis=1), axis=-1)
    np.testing.assert_allclose(steps, np.broadcast_to(steps[:, :1], steps.shape), rtol=1e-4)
    assert (np.linalg.norm(linear(start, end, HALVES), axis=-1)[:, 1] < 6).all()


def test_spherical_path_between_vectors_of_two_norms_in_the_middle_is_their_sum_over_twice_the_cosine_of_half() -> None:
    # 60 degrees: sin 30 / sin 60 = 1 / sqrt(3).
    start, end = row(1, 0), row(2 * 0.5, 2 * math.sqrt(3) / 2)
    np.testing.assert_allclose(spherical(start, end, HALVES)[0, 1], (start + end)[0] / math.sqrt(3), rtol=1e-6)


@pytest.mark.parametrize("end", [(1.0, 2.0), (3.0, 6.0), (-1.0, -2.0), (0.0, 0.0)])
def test_spherical_path_between_vectors_on_one_line_is_the_linear_one(end) -> None:
    np.testing.assert_array_equal(spherical(row(1, 2), row(*end), HALVES), linear(row(1, 2), row(*end), HALVES))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_path_begins_and_ends_exactly_where_it_was_told(path) -> None:
    start, end = np.random.default_rng(1).normal(size=[2, 50, 16]).astype(np.float32)
    found = path(start, end, np.linspace(0, 1, 5))
    assert found.shape == (50, 5, 16) and found.dtype == np.float32
    np.testing.assert_array_equal(found[:, 0], start)
    np.testing.assert_array_equal(found[:, -1], end)
