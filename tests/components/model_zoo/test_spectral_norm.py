"""Spectral normalisation, against singular values computed by NumPy and gradients in closed form."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from components.model_zoo.spectral_norm import SpectralNorm, constrained
from components.stepper import strategy

MATRIX = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
X = np.random.default_rng(1).normal(size=(3, 5)).astype("float32")


def dense(matrix=MATRIX, steps=100) -> SpectralNorm:
    """Return a layer with `matrix` as its kernel, after `steps` of power iteration."""
    layer = SpectralNorm(keras.layers.Dense(matrix.shape[1], bias_initializer=keras.initializers.Constant(0.5)))
    layer.build((None, matrix.shape[0]))
    layer.layer.kernel.assign(matrix)
    for _ in range(steps):
        layer(np.zeros((1, matrix.shape[0]), "float32"), training=True)
    return layer


def test_sigma_is_the_largest_singular_value_and_output_is_divided_by_it() -> None:
    largest = np.linalg.svd(MATRIX, compute_uv=False)[0]
    layer = dense()
    np.testing.assert_allclose(layer.sigma(), largest, rtol=1e-5)
    np.testing.assert_allclose(layer(X), X @ MATRIX / largest + 0.5, rtol=1e-4, atol=1e-5)


def test_one_step_of_power_iteration_is_that_of_the_paper() -> None:
    layer = dense(steps=0)
    u = layer.u.numpy()
    layer(X, training=True)
    v = MATRIX @ u / np.linalg.norm(MATRIX @ u)
    u = MATRIX.T @ v / np.linalg.norm(MATRIX.T @ v)
    np.testing.assert_allclose(layer.u, u, rtol=1e-5)


def test_convolution_is_normalised_as_a_matrix_of_its_outputs() -> None:
    layer = SpectralNorm(keras.layers.Conv2D(4, 3))
    images = np.random.default_rng(2).normal(size=(1, 5, 5, 2)).astype("float32")
    for _ in range(200):
        layer(images, training=True)
    kernel = layer.layer.kernel.numpy()
    np.testing.assert_allclose(layer.sigma(), np.linalg.svd(kernel.reshape(18, 4), compute_uv=False)[0], rtol=1e-4)
    plain = keras.ops.conv(images, kernel / layer.sigma().numpy())
    np.testing.assert_allclose(layer(images), plain, rtol=1e-4, atol=1e-5)


def test_embedding_is_normalised() -> None:
    layer = SpectralNorm(keras.layers.Embedding(5, 4))
    layer(np.array([1]))
    layer.layer.embeddings.assign(MATRIX)
    for _ in range(100):
        layer(np.array([1]), training=True)
    np.testing.assert_allclose(layer(np.array([3]))[0], MATRIX[3] / np.linalg.svd(MATRIX)[1][0], rtol=1e-4)


def test_gradient_goes_through_sigma_in_closed_form() -> None:
    layer = dense()
    weights = np.random.default_rng(3).normal(size=(3, 4)).astype("float32")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(X) * weights)
    gradient = tape.gradient(loss, layer.layer.kernel.value)
    left, values, right = np.linalg.svd(MATRIX)
    plain = X.T @ weights  # the gradient with respect to the normalised matrix
    inner = np.sum(plain * MATRIX / values[0])
    by_hand = (plain - inner * np.outer(left[:, 0], right[0])) / values[0]  # equation 12
    np.testing.assert_allclose(gradient, by_hand, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.sum(gradient * MATRIX), 0.0, atol=1e-4)  # scaling the matrix changes nothing


def test_gradient_is_that_of_finite_differences() -> None:
    # Of a matrix whose power iteration has converged, sigma's dependence on u and v has no first order.
    layer = dense()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(layer(X)))
    gradient = tape.gradient(loss, layer.layer.kernel.value).numpy()

    def value(matrix):
        return np.sum(np.square(X @ matrix / np.linalg.svd(matrix, compute_uv=False)[0] + 0.5))

    for place in ((0, 0), (2, 3), (4, 1)):
        change = np.zeros(MATRIX.shape)
        change[place] = 1e-4
        numeric = (value(MATRIX + change) - value(MATRIX - change)) / 2e-4
        np.testing.assert_allclose(gradient[place], numeric, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("training", [False, True])
def test_forward_pass_leaves_the_kernel_and_only_training_moves_u(training) -> None:
    layer = dense(steps=1)
    kernel, u = layer.layer.kernel.numpy(), layer.u.numpy()
    layer(X, training=training)
    np.testing.assert_array_equal(layer.layer.kernel, kernel)
    assert np.array_equal(layer.u, u) != training
    assert [v.path.rpartition("/")[2] for v in layer.trainable_variables] == ["kernel", "bias"]
    assert [v.path.rpartition("/")[2] for v in layer.non_trainable_variables] == ["u"]


def test_kernel_of_zeros_gives_zeros() -> None:
    np.testing.assert_array_equal(dense(np.zeros((5, 4), "float32"), steps=2)(X), np.full((3, 4), 0.5))


def test_bfloat16_divides_in_float32() -> None:
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        layer = dense()
        assert layer(X).dtype == tf.bfloat16 and layer.u.dtype == "float32"
        np.testing.assert_allclose(layer.sigma(), np.linalg.svd(MATRIX)[1][0], rtol=1e-5)
    finally:
        keras.config.set_dtype_policy(policy)


def test_saved_layer_comes_back_with_its_vector(tmp_path) -> None:
    inputs = keras.Input((5,))
    layer = dense(steps=1)
    keras.Model(inputs, layer(inputs)).save(tmp_path / "one.keras")
    again = keras.models.load_model(tmp_path / "one.keras")
    np.testing.assert_array_equal(again.layers[-1].u, layer.u)
    np.testing.assert_array_equal(again(X), layer(X))


def test_graph_eager_and_xla_agree_on_output_gradient_and_vector() -> None:
    found = []
    for options in (None, {"jit_compile": False}, {"jit_compile": True}):
        layer = dense(steps=0)
        layer.u.assign(np.ones(4, "float32"))

        def step(layer=layer):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(layer(X, training=True)))
            return loss, tape.gradient(loss, layer.layer.kernel.value)

        found.append([*(step if options is None else tf.function(step, **options))(), layer.u.value])
    for other in found[1:]:
        for value, expected in zip(other, found[0], strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


def test_second_derivative_is_that_of_a_gradient_penalty_in_closed_form() -> None:
    layer = dense(np.array([[3.0], [4.0]], "float32"), steps=5)  # sigma is 5, the gradient by x is (3, 4) / 5
    with tf.GradientTape() as outer:
        x = tf.ones([1, 2])
        with tf.GradientTape() as inner:
            inner.watch(x)
            score = layer(x, training=True)
        slope = inner.gradient(score, x)
        penalty = tf.reduce_sum(slope[:, 0])
    by_hand = np.array([[16.0], [-12.0]]) / 125  # d (w_0 / |w|) / dw
    np.testing.assert_allclose(outer.gradient(penalty, layer.layer.kernel.value), by_hand, rtol=1e-4)


def test_layer_is_left_alone_unless_asked() -> None:
    layer = keras.layers.Dense(2)
    assert constrained(layer, False) is layer and isinstance(constrained(layer, True), SpectralNorm)


@pytest.mark.parametrize("hardware", ["cpu:2", pytest.param("cpu:8", marks=pytest.mark.slow)])
def test_vector_is_the_same_on_all_replicas_and_on_one(hardware) -> None:
    chosen = strategy.select(name=hardware).strategy
    with chosen.scope():
        layer = dense(steps=0)
        layer.u.assign(np.ones(4, "float32"))

    @tf.function
    def run(count):
        for _ in tf.range(count):
            chosen.run(lambda: layer(X, training=True))

    run(tf.constant(3))
    alone = dense(steps=0)
    alone.u.assign(np.ones(4, "float32"))
    for _ in range(3):
        alone(X, training=True)
    for vector in chosen.experimental_local_results(layer.u.value):
        np.testing.assert_allclose(vector, alone.u, rtol=1e-6)
