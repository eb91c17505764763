"""Differentiable augmentations: what each does to a picture, and what holds for every one found here."""

import inspect

import numpy as np
import pytest
import tensorflow as tf
from toy_parts import toy_random

from components.augmentation import diff_augment

EVERY = [
    function
    for _, function in inspect.getmembers(diff_augment, inspect.isfunction)
    if function.__module__ == diff_augment.__name__ and not function.__name__.startswith("_")
]


class Fixed:
    """Draws the same number everywhere."""

    def __init__(self, value: float) -> None:
        self.value = value

    def uniform(self, purpose, shape=()):
        return tf.fill([1, *shape], self.value)

    def occasion(self, purpose):
        return purpose


def picture(*shape: int) -> tf.Tensor:
    return tf.reshape(tf.range(1, 1 + int(np.prod(shape)), dtype=tf.float32), [1, *shape])


def test_color_at_the_middle_of_its_ranges_does_nothing() -> None:
    images = picture(4, 4, 3)
    np.testing.assert_allclose(diff_augment.color(images, random=Fixed(0.5)), images, rtol=1e-6)


def test_color_by_hand() -> None:
    images = tf.constant([0.0, 0.4, 0.8, -0.4], shape=[1, 1, 2, 2])  # two pixels of two channels
    # the draw 0 is the low end: b = -1 -> -0.25 with brightness 0.5; s = -1 -> factor 0.5; c = -1 -> factor 0.75
    darker = np.array([[-0.25, 0.15], [0.55, -0.65]])
    greyer = darker.mean(1, keepdims=True) + 0.5 * (darker - darker.mean(1, keepdims=True))
    flatter = greyer.mean() + 0.75 * (greyer - greyer.mean())
    value = diff_augment.color(images, random=Fixed(0.0), brightness=0.5, saturation=0.5, contrast=0.25)
    np.testing.assert_allclose(value[0, 0], flatter, atol=1e-6)


@pytest.mark.parametrize(("draw", "down", "right"), [(0.0, 1, 2), (0.5, 0, 0), (0.99, -1, -2)])
def test_translation_shifts_by_whole_pixels_and_fills_with_0(draw, down, right) -> None:
    images = picture(4, 6, 1)  # round(0.25 * 4) = 1 row, round(0.25 * 6) = 2 columns
    expected = np.zeros_like(images)
    for row in range(4):
        for column in range(6):
            if 0 <= row - down < 4 and 0 <= column - right < 6:
                expected[0, row, column] = images[0, row - down, column - right]
    np.testing.assert_array_equal(diff_augment.translation(images, random=Fixed(draw), ratio=0.25), expected)


def test_cutout_sets_a_rectangle_of_its_ratio_to_0() -> None:
    value = diff_augment.cutout(picture(4, 8, 2), random=Fixed(0.5), ratio=0.5).numpy()
    hole = value[0, :, :, 0] == 0
    assert hole.sum() == 2 * 4 and hole[1:3, 2:6].all()
    np.testing.assert_array_equal(value[0][~hole], picture(4, 8, 2).numpy()[0][~hole])


@pytest.mark.parametrize(("share", "flipped"), [(0.9, True), (0.1, False)])
def test_flip_mirrors_left_to_right(share, flipped) -> None:
    images = picture(2, 3, 1)
    expected = images[:, :, ::-1] if flipped else images
    np.testing.assert_array_equal(diff_augment.flip(images, random=Fixed(0.5), share=share), expected)


@pytest.mark.parametrize("augmentation", EVERY)
@pytest.mark.parametrize("shape", [(28, 28, 1), (8, 12, 3), (7, 5, 4)])
def test_augmentation_keeps_shape_lets_gradients_pass_and_differs_from_image_to_image(augmentation, shape) -> None:
    images = tf.tile(tf.random.stateless_uniform([1, *shape], [0, 0], 0.1, 1), [16, 1, 1, 1])
    random = toy_random(rows=16)
    with tf.GradientTape() as tape:
        tape.watch(images)
        first = augmentation(images, random=random)
    second = augmentation(images, random=random)
    assert first.shape == images.shape and first.dtype == tf.float32
    assert len(np.unique(np.asarray(first), axis=0)) > 1, "each image draws its own"
    assert not np.array_equal(first, second), "and so does each call"
    gradient = tape.gradient(first, images)
    assert np.isfinite(gradient).all() and np.any(gradient != 0)


@pytest.mark.parametrize("augmentation", EVERY)
def test_augmentation_is_alike_in_a_graph_and_under_xla(augmentation) -> None:
    images = tf.random.stateless_uniform([4, 8, 8, 3], [0, 0], -1, 1)
    eager = augmentation(images, random=toy_random())
    for compiled in (False, True):
        graph = tf.function(lambda: augmentation(images, random=toy_random()), jit_compile=compiled)()
        np.testing.assert_allclose(eager, graph, atol=1e-6)
