"""Networks of users' own layers in plain Keras, or the reason why not."""

import keras
import numpy as np
import pytest

from pipeline.exporting.plain import NotPlainError, is_of_keras, plain

X = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")


class Squared(keras.layers.Layer):
    """Has no weights, and a call of keras.ops."""

    def call(self, x, training=None):
        return keras.ops.sin(x) if training else keras.ops.square(x)

    def compute_output_shape(self, shape):
        return shape


class Weighted(keras.layers.Layer):
    """Has weights, and nothing that says its plain form."""

    def build(self, shape):
        self.weight = self.add_weight(shape=(shape[-1],), name="weight")

    def call(self, x):
        return x * self.weight


class Block(keras.layers.Layer):
    """Is made of layers, one of which is not Keras's own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = [keras.layers.Dense(4), Squared(), keras.layers.Dense(4)]

    def build(self, shape):
        for layer in self.inner:
            layer.build(shape)

    def call(self, x):
        for layer in self.inner:
            x = layer(x)
        return x

    def as_plain(self, inputs):
        return self.call(inputs)


def of(*stages) -> keras.Model:
    x = inputs = keras.Input((4,), name="latents")
    for stage in stages:
        x = stage(x)
    return keras.Model(inputs, x, name="toy")


def require_same(model: keras.Model) -> keras.Model:
    form = plain(model)
    assert all(is_of_keras(one) for one in form.operations) and form.name == model.name
    expected, found = (keras.tree.flatten(one(X, training=False)) for one in (model, form))
    for left, right in zip(expected, found, strict=True):
        largest = np.max(np.abs(left), initial=1.0)  # a sum rounds by its terms, which may cancel
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-6 * largest)
    assert not {id(one) for one in form.weights} & {id(one) for one in model.weights}
    return form


def test_layer_without_weights_is_opened_as_in_inference() -> None:
    form = require_same(of(keras.layers.Dense(4), Squared()))
    np.testing.assert_array_equal(form(X, training=True), form(X))


def test_layers_within_layers_and_a_layer_used_twice_are_opened() -> None:
    block, twice = Block(), keras.layers.Dense(4)
    form = require_same(of(twice, block, twice, Block(), keras.layers.Dropout(0.5)))
    assert len(form.weights) == 2 + 4 + 4, "a layer used twice is one layer"


def test_models_in_a_model_are_opened() -> None:
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), Squared()])
    form = require_same(of(inner, of(Squared(), keras.layers.Dense(4)), inner))
    assert len(form.weights) == 4


def test_sequential_network_is_opened() -> None:
    require_same(keras.Sequential([keras.Input((4,)), Squared(), keras.layers.Dense(2)]))


def test_outputs_keep_their_structure_and_inputs_their_names() -> None:
    x = keras.Input((4,), name="latents")
    model = keras.Model(x, {"a": Squared()(x), "b": x[:, 0]})
    form = require_same(model)
    assert set(form(X)) == {"a", "b"} and [one.name for one in form.inputs] == ["latents"]


@pytest.mark.parametrize(
    ("stage", "told"),
    [
        (Weighted(name="w"), "The layer 'w', a .*Weighted, has no plain form: it has weights and no method `as_plain`"),
        (keras.layers.Dense(2, activation=lambda x: x), "a Dense, refers to something that has no name"),
        (keras.layers.TimeDistributed(Squared()), "refers to .*Squared"),
    ],
)
def test_network_without_a_plain_form_is_refused_with_the_layer(stage, told) -> None:
    with pytest.raises(NotPlainError, match=told):
        plain(of(keras.layers.Reshape((2, 2)), stage))


def test_own_activation_is_refused_by_its_name() -> None:
    def own_activation(x):
        return x

    with pytest.raises(NotPlainError, match="'dense.*', a Dense, refers to own_activation"):
        plain(of(keras.layers.Dense(2, activation=own_activation)))


def test_model_that_is_not_functional_is_refused() -> None:
    class Own(keras.Model):
        def call(self, x):
            return x

    with pytest.raises(NotPlainError, match="must hold a functional model. The network 'own' is a .*Own"):
        plain(Own(name="own"))
