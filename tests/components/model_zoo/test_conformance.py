"""Every network factory of the zoo, found by inspection, with every value that a binding of names may have."""

import functools
import importlib
import inspect
import pkgutil
import typing

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_parts import in_a_move, toy_random, toy_spec

from components import model_zoo
from components.interfaces import DataSpec, UserError

B = 4
CLASSES = 3
ELSEWHERE = {"vae_networks"}  # one model of its own shape, with tests of its own
SMALL = {"latent_dim": 3, "codes": 2, "widths": (4, 4, 8), "final_widths": (8,)}
# What a value needs beside it, where a default does not go with it.
BESIDE = {
    ("resnet.generator", "normalisation", value): {"conditioning": "one_hot"} for value in ("layer", "group", "none")
}
SIZES = [(28, 28, 1), (32, 48, 2)]  # 32 x 32 x 3 is what bfloat16 is tried on
FAST = {
    "dcgan.generator-conditioning=batch_norm",
    "dcgan.discriminator-spectral_norm=True",
    "mnist_dcgan.discriminator-conditioning=auxiliary_classifier",
    "resnet.generator",
}


def factories() -> dict:
    """Return {module.function: factory}: public functions from a DataSpec to a model."""
    found = {}
    for module in pkgutil.iter_modules(model_zoo.__path__):
        if module.name in ELSEWHERE:
            continue
        members = inspect.getmembers(importlib.import_module(f"components.model_zoo.{module.name}"), inspect.isfunction)
        for name, function in members:
            hints = typing.get_type_hints(function)
            own = function.__module__.endswith(f".{module.name}") and not name.startswith("_")
            if own and hints.get("spec") is DataSpec and hints.get("return") is keras.Model:
                found[f"{module.name}.{name}"] = function
    return found


FACTORIES = factories()


def values(annotation) -> list:
    """Return the values of an annotation that is a set of names, or a switch."""
    if annotation is bool:
        return [False, True]
    if typing.get_origin(annotation) is typing.Literal:
        return list(typing.get_args(annotation))
    return [value for part in typing.get_args(annotation) for value in values(part)]


def cases() -> list:
    """Return (name, bindings) of each factory: the defaults, and each value of each name alone."""
    found = []
    for name, factory in FACTORIES.items():
        hints = typing.get_type_hints(factory)
        found.append((name, name, {}))
        for parameter, declared in inspect.signature(factory).parameters.items():
            for value in values(hints[parameter]):
                if value != declared.default:
                    bindings = {parameter: value, **BESIDE.get((name, parameter, value), {})}
                    found.append((f"{name}-{parameter}={value}", name, bindings))
        if "attention_at" in hints:
            found.append((f"{name}-attention", name, {"attention_at": (16,)}))
    return found


def parametrised(found, fast=FAST):
    return [pytest.param(*one, id=label, marks=[] if label in fast else pytest.mark.slow) for label, *one in found]


def size_of(name: str, bindings: dict) -> list[tuple[int, int, int]]:
    """Return the sizes that a factory allows."""
    return [(32, 32, 3)] if "attention_at" in bindings else SIZES


@functools.cache
def parameters(name: str) -> set[str]:
    return set(inspect.signature(FACTORIES[name]).parameters)


def make(name: str, bindings: dict, size) -> keras.Model:
    small = {key: value for key, value in SMALL.items() if key in parameters(name)}
    if "widths" in small and size == (28, 28, 1):
        small["widths"] = (4, 8)  # 28 is not a multiple of 8
    keras.utils.set_random_seed(1)
    return FACTORIES[name](toy_spec(*size, num_classes=CLASSES), **{**small, **bindings})


def inputs(model: keras.Model) -> list[tf.Tensor]:
    shape = model.inputs[0].shape[1:]
    return [tf.random.stateless_uniform([B, *shape], [1, 2], -1, 1), tf.range(B) % CLASSES]


def outputs(model: keras.Model, training: bool) -> dict[str, tf.Tensor]:
    with in_a_move(random=toy_random(rows=B)):
        result = model(inputs(model), training=training)
    return result if isinstance(result, dict) else {"images": result}


def widths(name: str, bindings: dict, size) -> dict[str, list[int] | None]:
    """Return {output: its shape but the first axis}, None for any one axis."""
    role = name.rpartition(".")[2]
    if role == "generator":
        return {"images": list(size)}
    if role == "encoder":
        return {"mean": [3], "log_variance": [3]}
    if role == "recognition":
        return {"class_logits": [CLASSES], "code_mean": [2]}
    named = bindings.get("conditioning") == "auxiliary_classifier"
    return {"logits": [], "features": None, **({"class_logits": [CLASSES]} if named else {})}


def require_conforming(name: str, bindings: dict, size) -> keras.Model:
    """Return the model, whose outputs are float32 of the shapes promised and finite."""
    model = make(name, bindings, size)
    expected = widths(name, bindings, size)
    for training in (False, True):
        found = outputs(model, training)
        assert found.keys() == expected.keys()
        for key, value in found.items():
            assert value.dtype == tf.float32 and np.isfinite(value).all()
            shape = value.shape.as_list()
            assert shape == [B, *expected[key]] if expected[key] is not None else len(shape) == 2
    assert "images" not in found or np.abs(found["images"]).max() <= 1
    return model


def test_every_family_has_its_factories() -> None:
    pairs = {f"{family}.{role}" for family in ("dcgan", "mnist_dcgan", "cgan", "cwgan", "resnet") for role in ROLES}
    assert set(FACTORIES) == pairs | {"mnist_dcgan.recognition", "dcgan.encoder"}


ROLES = ("generator", "discriminator")


@pytest.mark.parametrize(("name", "bindings"), parametrised(cases()))
def test_outputs_gradients_and_saved_form(name, bindings, tmp_path) -> None:
    for size in size_of(name, bindings):
        model = require_conforming(name, bindings, size)
    kernels = [v.numpy() for v in model.trainable_variables]
    with tf.GradientTape() as tape:
        found = outputs(model, training=True)
        loss = tf.add_n([tf.reduce_sum(tf.sin(value)) for value in found.values()])
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert gradient is not None and np.isfinite(tf.convert_to_tensor(gradient)).all(), variable.path
    for before, variable in zip(kernels, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(before, variable, err_msg=f"the forward pass moved {variable.path}")
    model.save(tmp_path / "network.keras")
    again = outputs(keras.models.load_model(tmp_path / "network.keras"), training=False)
    for key, value in outputs(model, training=False).items():
        np.testing.assert_array_equal(again[key], value)


@pytest.mark.parametrize(("name", "bindings"), parametrised(cases()))
def test_bfloat16_leaves_outputs_in_float32(name, bindings) -> None:
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        require_conforming(name, bindings, (32, 32, 3))
    finally:
        keras.config.set_dtype_policy(policy)


def conditioned(value_wanted) -> list:
    return [case for case in cases() if value_wanted(case[2].get("conditioning"))]


CONDITIONAL = conditioned(lambda value: value not in (None, "none"))
FAST_WAYS = {"resnet.generator-conditioning=one_hot", "cgan.discriminator-conditioning=planes"}


@pytest.mark.parametrize(("name", "bindings"), parametrised(CONDITIONAL, FAST_WAYS | FAST))
def test_class_reaches_the_outputs_that_look_at_it(name, bindings) -> None:
    model = make(name, bindings, (28, 28, 1))
    for variable in model.trainable_variables:  # what starts alike for all classes must not hide the way
        if variable.path.endswith(("gain", "bias")):
            variable.assign(np.random.default_rng(0).normal(1.0, 0.5, variable.shape))
    first, labels = inputs(model)
    one, other = (model([first, y], training=False) for y in (labels, (labels + 1) % CLASSES))
    key = "images" if "generator" in name else "logits"
    one, other = (x if isinstance(x, dict) else {"images": x} for x in (one, other))
    looks = bindings["conditioning"] != "auxiliary_classifier"
    assert np.allclose(one[key], other[key]) != looks


@pytest.mark.parametrize(("name", "bindings"), parametrised(CONDITIONAL, FAST_WAYS | FAST))
def test_class_is_refused_where_data_have_none(name, bindings) -> None:
    small = {key: value for key, value in SMALL.items() if key in parameters(name) and key != "widths"}
    with pytest.raises(UserError, match="needs labelled data. Received 'toy' with num_classes=0. Bind"):
        FACTORIES[name](toy_spec(32, 32, 3, num_classes=0), **{**small, **bindings})


@pytest.mark.parametrize("name", [name for name in FACTORIES if name.rpartition(".")[2] in ROLES])
def test_default_looks_at_no_label_where_data_have_none(name) -> None:
    small = {key: value for key, value in SMALL.items() if key in parameters(name) and key != "widths"}
    model = FACTORIES[name](toy_spec(32, 32, 3, num_classes=0), **small)
    first, labels = inputs(model)
    one, other = (model([first, y]) for y in (labels, labels + 1))
    key = (lambda x: x) if "generator" in name else (lambda x: x["logits"])
    np.testing.assert_array_equal(key(one), key(other))


@pytest.mark.parametrize("normalisation", ["layer", "group", "none"])
@pytest.mark.parametrize("name", [name for name in FACTORIES if name.endswith("generator")])
def test_class_in_a_batch_norm_that_is_not_there_is_refused(name, normalisation) -> None:
    with pytest.raises(UserError, match=f"Received `{name}` with normalisation='{normalisation}'.*Bind"):
        make(name, {"conditioning": "batch_norm", "normalisation": normalisation}, (32, 32, 3))


@pytest.mark.parametrize("name", ["cgan.discriminator", "cwgan.discriminator"])
def test_channels_of_stripes_that_are_not_there_are_refused(name) -> None:
    with pytest.raises(UserError, match="Received 2 with the conditioning 'projection'"):
        make(name, {"conditioning": "projection", "label_channels": 2}, (32, 32, 3))


@pytest.mark.parametrize("size", [(64, 64, 3), (128, 128, 3), (32, 48, 1)])
def test_dcgan_reaches_every_multiple_through_its_widths(size) -> None:
    halvings = int(np.log2(size[0] // 4))
    images = make("dcgan.generator", {"widths": (4,) * halvings}, size)
    assert images.output.shape == (None, *size)
    first = next(layer for layer in images.layers if isinstance(layer, keras.layers.Reshape))
    assert first.output.shape[1:3] == (size[0] >> halvings, size[1] >> halvings)
    assert outputs(make("dcgan.discriminator", {"widths": (4,) * halvings}, size), False)["logits"].shape == (B,)


@pytest.mark.parametrize("name", [name for name in FACTORIES if name.startswith(("dcgan", "mnist"))])
def test_size_that_does_not_fit_is_refused_with_the_rule(name) -> None:
    with pytest.raises(UserError, match=f"`{name}` needs .* multiples of .*Received 66 x 64"):
        FACTORIES[name](toy_spec(66, 64, 3))
