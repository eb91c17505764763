"""Likelihoods at numbers one can do by hand."""

import math

import numpy as np
import tensorflow as tf

from components.loss_library import likelihood


def test_bernoulli_at_zero_logits_is_log_two_a_pixel() -> None:
    pixels = tf.constant([[0.0, 1.0, 0.3], [1.0, 1.0, 1.0]])
    np.testing.assert_allclose(likelihood.bernoulli(tf.zeros([2, 3]), pixels), [3 * math.log(2)] * 2, rtol=1e-6)


def test_bernoulli_of_certain_and_right_pixels_is_zero_and_of_wrong_ones_the_logit() -> None:
    logits = tf.constant([[30.0, -30.0]])
    np.testing.assert_allclose(likelihood.bernoulli(logits, tf.constant([[1.0, 0.0]])), [0.0], atol=1e-6)
    np.testing.assert_allclose(likelihood.bernoulli(logits, tf.constant([[0.0, 1.0]])), [60.0], rtol=1e-6)


def test_gaussian_is_the_density_of_the_textbook() -> None:
    logits, pixels, s = tf.constant([[0.0, 0.0]]), tf.constant([[0.5, 0.9]]), 0.2
    expected = (0.0**2 + 0.4**2) / (2 * s**2) + 2 * math.log(s * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(likelihood.gaussian(logits, pixels, standard_deviation=s), [expected], rtol=1e-5)
