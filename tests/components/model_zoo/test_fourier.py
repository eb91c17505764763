"""The convolution by way of spectra is Keras's own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from components.interfaces import UserError
from components.model_zoo.fourier import FourierConv2DTranspose

B, C, FILTERS = 3, 4, 5


@pytest.mark.parametrize(
    ("size", "kernel"),
    [((7, 7), 5), ((4, 6), 3), ((5, 3), (3, 5)), ((6, 7), 4), ((1, 1), 5), ((2, 9), 1), ((8, 1), (2, 3))],
)
@pytest.mark.parametrize("use_bias", [True, False])
def test_layer_and_its_gradients_are_those_of_keras(size, kernel, use_bias) -> None:
    rng = np.random.default_rng(0)
    inputs = tf.constant(rng.normal(size=(B, *size, C)), tf.float32)
    weights = tf.constant(rng.normal(size=(B, *size, FILTERS)), tf.float32)
    results = []
    for make in (keras.layers.Conv2DTranspose, FourierConv2DTranspose):
        layer = make(FILTERS, kernel, padding="same", use_bias=use_bias, activation="tanh")
        layer.build(inputs.shape)
        layer.set_weights([np.random.default_rng(1).normal(size=w.shape, scale=0.2) for w in layer.weights])
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs)
            loss = tf.reduce_sum(weights * outputs)
        results.append([outputs, *tape.gradient(loss, [inputs, *layer.trainable_variables])])
    for expected, received in zip(*results, strict=True):
        assert received.dtype == tf.float32
        np.testing.assert_allclose(received, expected, rtol=1e-4, atol=2e-5)


def test_one_pixel_meets_the_middle_of_the_kernel_alone() -> None:
    layer = FourierConv2DTranspose(1, 3, use_bias=False)
    layer.build((1, 1, 1, 1))
    layer.set_weights([np.arange(9.0).reshape(3, 3, 1, 1)])
    np.testing.assert_allclose(layer(tf.fill([1, 1, 1, 1], 2.0)), [[[[2.0 * 4.0]]]], rtol=1e-6)


def test_two_pixels_by_hand() -> None:
    layer = FourierConv2DTranspose(1, (1, 3), use_bias=False)
    layer.build((1, 1, 2, 1))
    layer.set_weights([np.array([1.0, 10.0, 100.0]).reshape(1, 3, 1, 1)])
    # Each pixel p spreads over p - 1, p, p + 1 with the taps 1, 10, 100.
    np.testing.assert_allclose(layer(tf.reshape([2.0, 3.0], [1, 1, 2, 1]))[0, 0, :, 0], [20 + 3, 200 + 30], rtol=1e-5)


@pytest.mark.parametrize("settings", [{"strides": 2}, {"padding": "valid"}, {"dilation_rate": 2}])
def test_other_convolutions_are_refused(settings) -> None:
    with pytest.raises(UserError, match="Use keras.layers.Conv2DTranspose"):
        FourierConv2DTranspose(3, 5, **settings)
