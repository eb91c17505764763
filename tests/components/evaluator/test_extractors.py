"""Feature extractors: one door for images, features that repeat, and refusals that say what is lacking."""

import hashlib
import random
from pathlib import Path

import keras
import numpy as np
import pytest
import requests
import tensorflow as tf
from PIL import Image
from toy_parts import ToySource, toy_spec

from components.evaluator import cached_files, classifier, inception_2015, real_images
from components.evaluator.classifier import Classifier
from components.evaluator.conversion import Conversion
from components.evaluator.extractor import FeatureNetwork
from components.evaluator.inception_2015 import Inception2015
from components.evaluator.keras_model import KerasModel
from components.interfaces import UserError

BYTES = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 1)).astype(np.uint8)
TO_THREE = Conversion(size=(8, 8), channels=3, low=-1.0, high=1.0)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gantry"


# --- conversion ------------------------------------------------------------------------------------------------------


def test_conversion_maps_bytes_to_the_range_and_repeats_one_channel() -> None:
    found = TO_THREE(tf.constant(BYTES)).numpy()
    np.testing.assert_allclose(found, np.repeat(BYTES / 127.5 - 1.0, 3, axis=-1), atol=1e-6)


@pytest.mark.parametrize(("name", "size"), [("bicubic", (20, 20)), ("bicubic", (5, 7)), ("bilinear", (5, 7))])
def test_conversion_resizes_as_pillow_does(name, size) -> None:
    image = np.random.default_rng(1).integers(60, 190, (16, 16)).astype(np.uint8)  # not near the ends: no clipping
    conversion = Conversion(size=size, channels=1, low=0.0, high=255.0, resize=name)
    found = conversion(tf.constant(image[None, :, :, None])).numpy()[0, :, :, 0]
    filters = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}
    expected = Image.fromarray(image.astype(np.float32), mode="F").resize(size[::-1], filters[name])
    np.testing.assert_allclose(found, np.asarray(expected), atol=0.02)


def test_conversion_of_one_value_keeps_it_whatever_the_size() -> None:
    conversion = Conversion(size=(299, 299), channels=3, low=-1.0, high=127 / 128)
    for value in (0, 128, 255):
        found = conversion(tf.fill([1, 7, 9, 1], tf.constant(value, tf.uint8))).numpy()
        np.testing.assert_allclose(found, (value - 128) / 128, atol=1e-6)


@pytest.mark.parametrize(
    ("images", "told"),
    [
        (BYTES.astype(np.float32) / 255, r"float32\[6, 8, 8, 1\] in \[0, 1\]"),
        (BYTES.astype(np.float32), r"float32"),
        (BYTES.astype(np.int32), r"int32"),
        (BYTES[..., 0], r"uint8\[6, 8, 8\]"),
        (np.repeat(BYTES, 4, axis=-1), r"uint8\[6, 8, 8, 4\]"),
        (BYTES[:0], r"uint8\[0, 8, 8, 1\]"),
    ],
)
def test_images_of_another_type_range_or_shape_are_refused(images, told) -> None:
    network = FeatureNetwork(lambda x: (x[:, 0, 0], None), TO_THREE, certificate={"extractor": "toy"})
    with pytest.raises(UserError, match=f"must be uint8.*Received {told}.*round"):
        network(images, np.zeros(len(images), np.int32))


def test_features_do_not_depend_on_the_batches_and_must_be_finite() -> None:
    def function(x):
        return tf.reshape(x, [x.shape[0], -1]), x[:, 0, 0]

    labels = np.arange(6, dtype=np.int32)
    network = FeatureNetwork(function, TO_THREE, certificate={"extractor": "toy"}, batch_size=4)
    found = network(BYTES, labels)
    assert found.features.shape == (6, 192) and found.features.dtype == np.float64 and found.logits.shape == (6, 3)
    np.testing.assert_array_equal(found.features[2:3], network(BYTES[2:3], labels[2:3]).features)
    broken = FeatureNetwork(lambda x: (x[:, 0, 0] / 0.0, None), TO_THREE, certificate={"extractor": "toy"})
    with pytest.raises(UserError, match="finite"):
        broken(BYTES, labels)


def test_real_images_are_bytes_and_fewer_are_the_first_of_more() -> None:
    images, labels = real_images.first(250, ToySource(), seed=4)
    assert images.shape == (250, 4, 4, 1) and images.dtype == np.uint8 and labels.dtype == np.int32
    np.testing.assert_array_equal(real_images.first(101, ToySource(), seed=4)[0], images[:101])


# --- classifier ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_classifier_is_trained_once_the_same_each_time_and_touches_no_random_state(cache, capsys) -> None:
    source = ToySource(toy_spec(5, 5, 3))
    images, labels = real_images.first(20, source)
    states = [random.getstate(), np.random.get_state()[1].tolist()]
    tf.random.set_seed(3)
    expected = tf.random.uniform([2]).numpy()
    tf.random.set_seed(3)
    first = Classifier(train_steps=3).load(source)
    np.testing.assert_array_equal(tf.random.uniform([2]), expected)
    assert [random.getstate(), np.random.get_state()[1].tolist()] == states
    assert "Training the classifier once" in capsys.readouterr().out
    (kept,) = cache.iterdir()

    again = Classifier(train_steps=3).load(source)
    assert "Training" not in capsys.readouterr().out
    kept.unlink()
    anew = Classifier(train_steps=3).load(source)
    for other in (again, anew):
        assert other.certificate == first.certificate
        np.testing.assert_array_equal(other(images, labels).features, first(images, labels).features)
    found = first(images, labels)
    assert found.features.shape == (20, 128) and found.logits.shape == (20, 2) and found.classes
    assert 0 <= first.certificate["extractor_accuracy"] <= 1 and len(first.certificate["extractor_hash"]) == 16


@pytest.mark.slow
def test_classifier_in_a_damaged_file_is_trained_anew(cache, capsys) -> None:
    first = Classifier(train_steps=1).load(ToySource())
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:1000])
    assert Classifier(train_steps=1).load(ToySource()).certificate == first.certificate
    assert "cannot be read" in capsys.readouterr().out


def test_classifier_of_data_without_labels_is_refused() -> None:
    with pytest.raises(UserError, match="no classes.*KerasModel"):
        Classifier().load(ToySource(toy_spec(num_classes=0)))


def test_cache_that_cannot_be_written_is_refused(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match="XDG_CACHE_HOME"):
        cached_files.write(cached_files.folder() / "a", lambda place: place.write_text("x"))


def test_parts_share_no_example() -> None:
    learnt, held_out = classifier.parts(ToySource())
    assert (len(learnt[0]), len(held_out[0])) == (800, 200)
    assert not {one.tobytes() for one in learnt[0]} & {one.tobytes() for one in held_out[0]}


# --- a Keras model ---------------------------------------------------------------------------------------------------


@pytest.fixture
def model_file(tmp_path) -> str:
    images = keras.Input((6, 6, 3))
    x = keras.layers.Conv2D(2, 3, name="maps")(images)
    keras.Model(images, keras.layers.Dense(5, name="head")(keras.layers.Flatten()(x))).save(tmp_path / "m.keras")
    return str(tmp_path / "m.keras")


def test_keras_model_gives_its_output_or_a_layer_in_its_own_size_and_range(model_file) -> None:
    labels = np.zeros(6, np.int32)
    network = KerasModel(path=model_file, value_range=(-1.0, 1.0)).load(ToySource())
    model = keras.saving.load_model(model_file)
    converted = Conversion(size=(6, 6), channels=3, low=-1.0, high=1.0)(tf.constant(BYTES))
    np.testing.assert_allclose(network(BYTES, labels).features, model(converted), rtol=1e-4, atol=1e-5)
    assert KerasModel(path=model_file, layer="maps").load(ToySource())(BYTES, labels).features.shape == (6, 32)
    assert network.certificate["extractor_hash"] == hashlib.sha256(Path(model_file).read_bytes()).hexdigest()[:16]


def test_keras_model_that_is_none_is_refused(model_file, tmp_path) -> None:
    with pytest.raises(UserError, match="maps.*head"):
        KerasModel(path=model_file, layer="tail").load(ToySource())
    (tmp_path / "garbage.keras").write_text("x")
    for path in ("nowhere.keras", str(tmp_path / "garbage.keras")):
        with pytest.raises(UserError, match="a file that Keras can load"):
            KerasModel(path=path).load(ToySource())
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]).save(tmp_path / "flat.keras")
    with pytest.raises(UserError, match="a model of images"):
        KerasModel(path=str(tmp_path / "flat.keras")).load(ToySource())


def test_keras_model_without_one_known_output_is_refused_with_what_to_bind(tmp_path) -> None:
    def saved(model: keras.Model) -> KerasModel:
        model.save(tmp_path / "model.keras")
        return KerasModel(path=str(tmp_path / "model.keras"))

    images = keras.Input((6, 6, 3))
    flat = keras.layers.Flatten(name="flat")(images)
    for outputs in ([flat, flat + 1.0], {"a": flat}):
        with pytest.raises(UserError, match="features from one tensor.*`KerasModel.layer`"):
            saved(keras.Model(images, outputs)).load(ToySource())(BYTES, np.zeros(6, np.int32))
    with pytest.raises(UserError, match="whose input is known.*before it was called"):
        saved(keras.Sequential([keras.layers.Flatten()])).load(ToySource())
    within = keras.Input((6, 6, 3))
    inner = keras.Model(within, keras.layers.Flatten()(within), name="inner")
    saved(keras.Model(images, keras.layers.Dense(2)(inner(images))))
    with pytest.raises(UserError, match="the model itself computes once. Received 'inner'"):
        KerasModel(path=str(tmp_path / "model.keras"), layer="inner").load(ToySource())


# --- Inception -------------------------------------------------------------------------------------------------------


def frozen(folder: Path, pool: str = "pool_3") -> Path:
    """Write a small graph with the names of the real one; its last layers take one image at a time, as there."""
    with tf.Graph().as_default() as graph:
        raw = tf.compat.v1.placeholder(tf.float32, [1, None, None, 3], name="ExpandDims")
        x = tf.multiply(tf.image.resize(raw, (299, 299)) - 128.0, 1 / 128, name="Mul")
        pooled = tf.reduce_mean(x, axis=(1, 2), keepdims=True, name=pool)
        flat = tf.reshape(pooled, [1, 3], name=f"{pool}/_reshape")
        weights = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 4), name="softmax/weights")
        tf.add(tf.matmul(flat, weights, name="softmax/logits/MatMul"), 5.0, name="softmax/logits")
    path = folder / inception_2015.GRAPH
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def test_inception_loads_a_graph_of_its_names_and_scores_batches(tmp_path) -> None:
    path = frozen(tmp_path)
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    network = Inception2015(path=str(path), sha256=checksum.upper()).load(ToySource())
    images = np.full((3, 7, 7, 1), 192, np.uint8)
    images[1] = 0
    found = network(images, np.zeros(3, np.int32))
    np.testing.assert_allclose(found.features, [[0.5] * 3, [-1.0] * 3, [0.5] * 3], atol=1e-6)
    np.testing.assert_allclose(found.logits, found.features @ np.arange(12).reshape(3, 4), atol=1e-5)
    assert network.certificate["extractor_hash"] == checksum
    assert "299 x 299" in network.certificate["resizer"] and not found.classes


def test_inception_is_read_from_its_archive_in_the_cache(tmp_path, cache) -> None:
    import tarfile

    cache.mkdir()
    with tarfile.open(cache / inception_2015.ARCHIVE, "w:gz") as archive:
        archive.add(frozen(tmp_path), inception_2015.GRAPH)
    assert Inception2015().load(ToySource())(BYTES, np.zeros(6, np.int32)).features.shape == (6, 3)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "is not there. Copy inception-2015-12-05.tgz, from http"),
        ({"path": "nowhere.pb", "download": True}, "nowhere.pb, which is not there"),
        ({"download": True}, "needs `Inception2015.sha256`"),
        ({"download": True, "sha256": "0" * 64}, "needs a network. Received ConnectionError"),
    ],
)
def test_inception_that_is_not_there_is_refused(settings, told, monkeypatch) -> None:
    def fail(*arguments, **values):
        raise requests.ConnectionError

    monkeypatch.setattr(requests, "get", fail)
    with pytest.raises(UserError, match=told):
        Inception2015(**settings).load(ToySource())


def test_inception_download_of_another_checksum_is_refused_and_not_kept(cache, monkeypatch) -> None:
    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def raise_for_status(self):
            pass

        def iter_content(self, size):
            return [b"not ", b"it"]

    monkeypatch.setattr(requests, "get", lambda *arguments, **values: Answer())
    with pytest.raises(UserError, match=f"has {hashlib.sha256(b'not it').hexdigest()}"):
        Inception2015(download=True, sha256="0" * 64).load(ToySource())
    assert not list(cache.iterdir())


def test_inception_in_a_file_of_another_kind_or_checksum_is_refused(tmp_path) -> None:
    path = frozen(tmp_path)
    with pytest.raises(UserError, match="must be that of the file"):
        Inception2015(path=str(path), sha256="0" * 64).load(ToySource())
    with pytest.raises(UserError, match="the graph of 2015"):
        Inception2015(path=str(frozen(tmp_path, pool="pool_4"))).load(ToySource())
    for name in ("x.pb", "x.tgz"):
        (tmp_path / name).write_bytes(b"garbage")
        with pytest.raises(UserError, match="or an archive that holds it"):
            Inception2015(path=str(tmp_path / name)).load(ToySource())
