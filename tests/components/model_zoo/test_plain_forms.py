"""Every layer of the zoo, found by inspection, against its form in layers and ops of Keras alone."""

import importlib
import inspect
import pkgutil

import keras
import numpy as np
import pytest
from toy_parts import toy_spec

from components import model_zoo
from components.interfaces import Composed, Networks
from components.model_zoo import (
    attention,
    conditioning,
    exact_normalisation,
    fourier,
    layers,
    normalisation,
    resnet,
    spectral_norm,
    vae_networks,
)
from components.sampler.vae_sampler import VAESampler
from pipeline.exporting.networks import as_uint8
from pipeline.exporting.plain import is_of_keras, plain

B, K = 6, 3
MAP = (4, 6, 2)
LABELS = "labels"
# {layer: [(what makes it, the shapes of its inputs)]}; a new layer of the zoo needs a line here.
SAMPLES = {
    attention.Attend: [(attention.Attend, [MAP, MAP, (4, 6, 5)])],
    attention.GatedSum: [(attention.GatedSum, [MAP, MAP])],
    conditioning.ClassEmbedding: [(lambda: conditioning.ClassEmbedding(K, 4), [LABELS])],
    conditioning.OneHot: [(lambda: conditioning.OneHot(K), [LABELS])],
    conditioning.LabelStripes: [(lambda: conditioning.LabelStripes(4, 6, K, 2), [LABELS])],
    conditioning.LabelPlanes: [(lambda: conditioning.LabelPlanes(4, 6, K), [LABELS])],
    exact_normalisation.BatchNormalization: [
        (lambda: exact_normalisation.BatchNormalization(synchronized=False), [MAP]),
    ],
    exact_normalisation.GroupNormalization: [
        (lambda: exact_normalisation.GroupNormalization(2), [MAP]),
        (lambda: exact_normalisation.GroupNormalization(2), [(6,)]),
    ],
    exact_normalisation.LayerNormalization: [
        (lambda: exact_normalisation.LayerNormalization(axis=[1, 2, 3]), [MAP]),
    ],
    fourier.FourierConv2DTranspose: [
        (lambda: fourier.FourierConv2DTranspose(3, 5), [MAP]),
        (lambda: fourier.FourierConv2DTranspose(3, 3, use_bias=False, activation="tanh"), [MAP]),
    ],
    layers.StatelessDropout: [(lambda: layers.StatelessDropout(0.5), [MAP])],
    normalisation.ConditionalBatchNorm: [
        (lambda: normalisation.ConditionalBatchNorm(K), [MAP, LABELS]),
        (lambda: normalisation.ConditionalBatchNorm(K, synchronized=False), [(5,), LABELS]),
    ],
    resnet.PlacesSum: [(resnet.PlacesSum, [MAP])],
    spectral_norm.SpectralNorm: [
        (lambda: spectral_norm.SpectralNorm(keras.layers.Dense(4)), [(5,)]),
        (lambda: spectral_norm.SpectralNorm(keras.layers.Conv2D(4, 3, strides=2, use_bias=False)), [MAP]),
        (lambda: spectral_norm.SpectralNorm(keras.layers.Embedding(K, 4)), [LABELS]),
    ],
}


def classes_of_the_zoo(base: type) -> set[type]:
    """Return the classes that modules of the zoo define below `base`."""
    found = set()
    for module in pkgutil.iter_modules(model_zoo.__path__):
        name = f"components.model_zoo.{module.name}"
        members = inspect.getmembers(importlib.import_module(name), inspect.isclass)
        found |= {one for _, one in members if issubclass(one, base) and one.__module__ == name}
    return found


def test_every_layer_of_the_zoo_is_tried_here_and_every_model_tells_its_parts() -> None:
    models = classes_of_the_zoo(keras.Model)
    assert classes_of_the_zoo(keras.layers.Layer) - models == set(SAMPLES)
    assert models and all(issubclass(one, Composed) for one in models)


def randomised(model: keras.Model) -> keras.Model:
    """Return the model with weights none of which is special; what is a variance stays above 0."""
    random = np.random.default_rng(0)
    for weight in model.weights:
        low = 0.5 if weight.path.endswith("variance") else -1.0
        weight.assign(random.uniform(low, 2.0, weight.shape))
    return model


def model_of(layer: keras.layers.Layer, shapes: list) -> keras.Model:
    inputs = [keras.Input((), dtype="int32") if shape == LABELS else keras.Input(shape) for shape in shapes]
    return randomised(keras.Model(inputs, layer(inputs if len(inputs) > 1 else inputs[0])))


def examples(shapes: list) -> list:
    random = np.random.default_rng(1)
    found = [np.arange(B) % K if shape == LABELS else random.normal(size=(B, *shape)) for shape in shapes]
    return [one.astype("int32" if shape == LABELS else "float32") for one, shape in zip(found, shapes, strict=True)]


CASES = [
    pytest.param(*sample, id=f"{one.__name__}-{index}")
    for one, samples in SAMPLES.items()
    for index, sample in enumerate(samples)
]


@pytest.mark.parametrize(("make", "shapes"), CASES)
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_layer_and_its_plain_form_compute_the_same(make, shapes, policy) -> None:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model = model_of(make(), shapes)
    finally:
        keras.config.set_dtype_policy(before)
    form = plain(model)
    assert all(is_of_keras(operation) for operation in form.operations)
    expected, found = (np.asarray(one(examples(shapes), training=False)) for one in (model, form))
    assert found.dtype == expected.dtype and found.shape == expected.shape
    kinds = (fourier.FourierConv2DTranspose, exact_normalisation._WithPlainTwin)
    adds_otherwise = any(isinstance(layer, kinds) for layer in model.layers)
    tolerance = 2e-2 if policy != "float32" else 1e-5 if adds_otherwise else 1e-6
    np.testing.assert_allclose(found.astype("float32"), expected.astype("float32"), rtol=tolerance, atol=tolerance)


def test_plain_form_does_not_follow_the_weights_of_the_layer() -> None:
    shapes = [MAP, LABELS]
    model = model_of(normalisation.ConditionalBatchNorm(K), shapes)
    form = plain(model)
    before = form(examples(shapes))
    for weight in model.weights:
        weight.assign(weight + 1.0)
    np.testing.assert_array_equal(form(examples(shapes)), before)


@pytest.mark.parametrize("conditional", [False, True])
def test_vae_parts_draw_and_reconstruct_what_the_sampler_does(conditional) -> None:
    spec = toy_spec(4, 6, 2, num_classes=K)
    vae = vae_networks.dense(spec, latent_dim=2, hidden=3, conditional=conditional)
    for weight in vae.weights:
        weight.assign(np.random.default_rng(weight.shape[0]).normal(scale=0.5, size=weight.shape))
    sampler, parts = VAESampler(Networks({"vae": vae}, spec), chunk_size=B), vae.parts()
    assert set(parts) == {"generator", "encoder", "reconstruction"}
    labels = np.arange(B, dtype="int32") % K
    images = np.random.default_rng(0).integers(0, 256, (B, 4, 6, 2)).astype("uint8")
    scaled = images.astype("float32") / 127.5 - 1
    reconstructed = as_uint8(parts["reconstruction"]([scaled, labels]))
    latents = parts["encoder"]([scaled, labels])["mean"].numpy()
    np.testing.assert_array_equal(as_uint8(parts["generator"]([latents, labels])), reconstructed)
    # The sampler's pixels are rounded from [0, 1], those of the part from [-1, 1]: halves may fall either way.
    expected = sampler.reconstruct(images, labels=labels.tolist())
    assert np.abs(reconstructed.numpy().astype(int) - expected).max() <= 1
    assert len(np.unique(expected)) > 50
