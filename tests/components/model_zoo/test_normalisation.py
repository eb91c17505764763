"""Normalisation by name: conditional batch normalisation by hand, and over what the others average."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from components.interfaces import UserError
from components.model_zoo.normalisation import ConditionalBatchNorm, first_map, normaliser

EPSILON = 1e-3  # Keras's
MAPS = np.random.default_rng(0).normal(3.0, 2.0, size=(4, 3, 2, 8)).astype("float32")
LABELS = np.array([0, 2, 2, 1], "int32")


def standard(x, axis):
    return (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True) + EPSILON)


def test_conditional_norm_is_at_first_the_plain_one() -> None:
    layer = ConditionalBatchNorm(3)
    np.testing.assert_allclose(layer([MAPS, LABELS], training=True), standard(MAPS, (0, 1, 2)), rtol=1e-4, atol=1e-4)
    assert layer.gain.shape == layer.bias.shape == (3, 8) and len(layer.trainable_variables) == 2


@pytest.mark.parametrize("maps", [MAPS, MAPS[:, 0, 0]], ids=["maps", "units"])
def test_gain_and_bias_are_those_of_the_class(maps) -> None:
    layer = ConditionalBatchNorm(3)
    layer([maps, LABELS])
    gain, bias = (np.random.default_rng(seed).normal(size=(3, 8)).astype("float32") for seed in (1, 2))
    layer.gain.assign(gain)
    layer.bias.assign(bias)
    plain = standard(maps, tuple(range(maps.ndim - 1)))
    by_hand = np.stack([gain[label] * one + bias[label] for label, one in zip(LABELS, plain, strict=True)])
    np.testing.assert_allclose(layer([maps, LABELS], training=True), by_hand, rtol=1e-4, atol=1e-4)


def test_inference_uses_the_moving_statistics_whatever_the_batch() -> None:
    layer = ConditionalBatchNorm(3, momentum=0.0)
    layer([MAPS, LABELS], training=True)
    whole = layer([MAPS, LABELS], training=False)
    alone = layer([MAPS[:1], LABELS[:1]], training=False)
    np.testing.assert_allclose(whole[:1], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("normalisation", "expected"),
    [
        ("batch", standard(MAPS, (0, 1, 2))),
        ("batch_per_replica", standard(MAPS, (0, 1, 2))),
        ("layer", standard(MAPS, (1, 2, 3))),
        ("group", standard(MAPS, (1, 2))),  # 8 groups of one channel
        ("none", MAPS),
    ],
)
def test_name_says_over_what_is_averaged(normalisation, expected) -> None:
    inputs = keras.Input(MAPS.shape[1:])
    model = keras.Model(inputs, normaliser(normalisation)(inputs))
    np.testing.assert_allclose(model(MAPS, training=True), expected, rtol=1e-4, atol=1e-4)
    synchronized = [layer.synchronized for layer in model.layers if hasattr(layer, "synchronized")]
    assert synchronized == {"batch": [True], "batch_per_replica": [False]}.get(normalisation, [])


def test_groups_divide_the_channels() -> None:
    groups = {8: 8, 48: 16, 64: 32, 3: 1}  # at most 32
    for channels, expected in groups.items():
        model = keras.Model(inputs := keras.Input((2, 2, channels)), normaliser("group")(inputs))
        assert model.layers[-1].groups == expected


def test_first_map_in_groups_is_normalised_by_channels() -> None:
    model = keras.Model(inputs := keras.Input((48,)), first_map(inputs, (3, 2, 8), "group", normaliser("group"), 0.5))
    plain = standard(MAPS, (1, 2))
    by_hand = np.where(plain > 0, plain, 0.5 * plain)
    np.testing.assert_allclose(model(MAPS.reshape(4, 48)), by_hand, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("normalisation", ["layer", "group", "none"])
def test_class_without_a_batch_to_normalise_is_refused(normalisation) -> None:
    with pytest.raises(UserError, match="needs a network with batch normalisation.*Bind"):
        normaliser(normalisation, labels=keras.Input((), dtype="int32"), num_classes=3)


@pytest.mark.parametrize("normalisation", ["batch", "batch_per_replica", "layer", "group"])
def test_slope_of_a_penalty_on_gradients_is_that_of_differences(normalisation) -> None:
    """Keras's variance has the wrong second derivative, which shows behind a layer with weights."""
    keras.config.set_dtype_policy("float64")
    try:
        images = keras.Input((4, 4, 2), dtype="float64")
        x = keras.layers.Conv2D(4, 3, activation="softplus")(images)
        x = keras.layers.Flatten()(keras.ops.softplus(normaliser(normalisation)(x)))
        critic = keras.Model(images, keras.layers.Dense(1)(x))
    finally:
        keras.config.set_dtype_policy("float32")
    random = np.random.default_rng(0)
    for variable in critic.trainable_variables:
        variable.assign(random.normal(size=variable.shape))
    batch = tf.constant(random.normal(size=(5, 4, 4, 2)))

    def penalty() -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(batch)
            logits = critic(batch, training=True)
        return tf.reduce_sum(tf.square(tape.gradient(logits, batch)))

    kernel = critic.trainable_variables[0]
    with tf.GradientTape() as tape:
        value = penalty()
    way, start, step = random.normal(size=kernel.shape), kernel.numpy(), 1e-5
    ahead, behind = (_at(kernel, start + sign * step * way, penalty) for sign in (1, -1))
    np.testing.assert_allclose(np.sum(tape.gradient(value, kernel) * way), (ahead - behind) / (2 * step), rtol=1e-6)


def _at(variable: keras.Variable, value: np.ndarray, ask) -> float:
    variable.assign(value)
    return float(ask())
