"""Mode export: files of a tiny run, loaded where this project cannot be."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_parts import toy_spec

from components.interfaces import Networks, UserError
from components.sampler.image_sampler import ImageSampler
from pipeline import api
from pipeline.export import _form, _require_precision, _tell, _write, export
from pipeline.exporting import formats
from pipeline.exporting.check import Written, checked
from pipeline.exporting.networks import Exported, as_uint8, networks_of
from pipeline.exporting.plain import plain

ROWS = 7
TINY = [
    "TRAIN_STEPS = 2",
    "GLOBAL_BATCH_SIZE = 8",
    "experiment.Experiment.steps_per_loop = 1",
    "generator/interfaces.Player.ema_decay = 0.5",
]
CLASSES = [index % 10 for index in range(ROWS)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return what came of a tiny training of the quickstart, whose generator has an average and layers of our own."""
    return api.train(["quickstart"], TINY, workdir=tmp_path_factory.mktemp("export") / "run")


def call(trained, output=None, **changed) -> int:
    options = {"checkpoint": "latest", "formats": "keras", "num_images": ROWS}
    return export(str(trained.workdir), **{**options, **changed}, output=None if output is None else str(output))


def in_a_process_without_this_project(code: str, folder: Path) -> str:
    """Return what Python code prints in `folder`, where an import of this project fails."""
    block = "import sys\nfor name in ('components', 'pipeline', 'tools'): sys.modules[name] = None\n"
    command = [sys.executable, "-I", "-c", block + code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_files_give_the_run_s_own_images_in_a_process_without_this_project(trained, tmp_path, capsys) -> None:
    with_onnx = importlib.util.find_spec("tf2onnx") is not None
    names = "keras,saved_model,stablehlo" + (",onnx" if with_onnx else "")
    assert call(trained, tmp_path / "new", formats=names) == 0
    folder, printed = tmp_path / "new", capsys.readouterr().out
    assert "generator: the moving average of its weights" in printed
    assert "discriminator: its weights as trained" in printed

    facts = json.loads((folder / "export.json").read_text())
    assert facts["step"] == 2 and set(facts["networks"]) == {"generator", "discriminator"}
    suffixes = [".keras", ".weights.h5", ".saved_model", ".stablehlo"] + [".onnx"] * with_onnx
    for name, network in facts["networks"].items():
        assert [one["file"] for one in network["files"]] == [name + suffix for suffix in suffixes]
        exact = [one["max_difference"] for one in network["files"] if one["file"].endswith((".keras", ".h5"))]
        assert exact == [0, 0]
        for one in network["files"]:
            assert one["max_difference"] <= 1e-5 and one["bytes"] > 10_000 and one["file"] in printed

    code = (folder / "README.txt").read_text().partition("\n\nimport")[2]
    in_a_process_without_this_project(f"import{code}\nnp.savez('found.npz', latents, labels, pixels)", folder)
    with np.load(folder / "found.npz") as found:
        latents, labels, pixels = found.values()
    expected = as_uint8(trained.run.stepper.averages["generator"]([latents, labels], training=False)).numpy()
    assert np.abs(pixels.astype(int) - expected).max() <= 1 and len(pixels) == ROWS


def generator_of_classes_alone(spec) -> keras.Model:
    """Return a generator that does not look at its latents, with numbers beyond [-1, 1] too."""
    latents, labels = keras.Input((5,)), keras.Input((), dtype="int32")
    spread = keras.initializers.RandomUniform(-1.2, 1.2, seed=0)
    table = keras.layers.Embedding(spec.num_classes, int(np.prod(spec.image_shape)), embeddings_initializer=spread)
    return keras.Model([latents, labels], keras.layers.Reshape(spec.image_shape)(table(labels)))


def test_saved_model_serves_named_inputs_and_the_pixels_of_the_sampler(tmp_path) -> None:
    spec = toy_spec(16, 12, 3, num_classes=10)
    networks = Networks({"generator": generator_of_classes_alone(spec)}, spec)
    (generator,) = networks_of(networks, {})
    (saved_model,) = formats.chosen("saved_model")
    saved_model.write(generator, plain(generator.model), tmp_path / "served", ROWS)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    assert served.structured_input_signature[1] == {
        "latents": tf.TensorSpec((None, 5), tf.float32, "latents"),
        "labels": tf.TensorSpec((None,), tf.int32, "labels"),
    }
    outputs = served(latents=tf.zeros((ROWS, 5)), labels=tf.constant(CLASSES))
    np.testing.assert_array_equal(outputs["uint8"], ImageSampler(networks).sample(ROWS, seed=3, labels=CLASSES))
    assert outputs["images"].dtype == tf.float32 and outputs["uint8"].dtype == tf.uint8
    assert {0, 255} < set(outputs["uint8"].numpy().flat)


@pytest.mark.slow
def test_file_that_is_wrong_or_needs_this_project_is_told(trained, tmp_path) -> None:
    networks = {one.name: one for one in networks_of(trained.run.networks, trained.run.stepper.averages)}
    generator = networks["generator"]
    generator.model.save(tmp_path / "ours.keras")
    other = plain(generator.model)
    other.save(tmp_path / "right.keras")
    other.set_weights([2.0 * one for one in other.get_weights()])
    other.save(tmp_path / "wrong.keras")
    (tmp_path / "broken.stablehlo").write_bytes(b"no module")
    files = [(generator, place.suffix, place) for place in sorted(tmp_path.iterdir())]
    results = {one.place.name: one for one in checked(files, rows=ROWS, precision="float32")}
    assert [name for name, one in results.items() if one.is_right] == ["right.keras"]
    assert "could not be deserialized" in results["ours.keras"].fault
    assert results["wrong.keras"].difference > 0.01 and results["broken.stablehlo"].fault


def test_file_that_differs_ends_with_status_1_and_is_named(tmp_path, capsys) -> None:
    x = keras.Input((2,))
    network = Exported(name="net", model=keras.Model(x, x), weights="its weights as trained", spec=toy_spec())
    written = []
    for suffix, difference, fault in ((".a", 0.0, ""), (".b", 0.5, ""), (".c", None, "OSError: gone")):
        place = tmp_path / f"net{suffix}"
        place.write_bytes(b"0" * 2**19)
        kind = {"exported": network, "place": place, "suffix": suffix, "tolerance": 1e-4}
        written.append(Written(**kind, difference=difference, fault=fault))
    assert _tell(written) == 1
    told = capsys.readouterr()
    assert told.err == "These do not give what the run's own networks give: net.b, net.c. Do not use them.\n"
    assert "  net.b    0.50 MiB  max difference 5.0e-01 (at most 1e-04)\n" in told.out
    assert told.out.endswith("net.c    0.50 MiB  OSError: gone\n")
    assert _tell(written[:1]) == 0


@pytest.mark.parametrize("asked", ["keras,tflite", "tflite", "keras,"])
def test_format_that_is_none_is_refused(asked) -> None:
    wrong = asked.removeprefix("keras,")
    with pytest.raises(UserError, match=f"names some of keras, saved_model, stablehlo, onnx. Received {wrong!r}"):
        formats.chosen(asked)


def test_folder_that_cannot_be_written_is_refused(tmp_path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(UserError, match="`--output` must be a folder that can be written. .*taken: File exists"):
        _write([], {}, [], tmp_path / "taken", ROWS)


def test_packages_that_are_missing_are_told_with_the_extra(monkeypatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tf2onnx" else find(name))
    with pytest.raises(UserError, match=r"tf2onnx is not installed. Use pip install -e '.\[onnx\]', or leave onnx out"):
        formats.chosen("keras,onnx")


class Weighted(keras.layers.Layer):
    """Has weights, and nothing that says its plain form."""

    def build(self, shape):
        self.weight = self.add_weight(shape=(shape[-1],), name="weight")

    def call(self, x):
        return x * self.weight


def test_layer_without_a_plain_form_forbids_keras_files_alone() -> None:
    x = keras.Input((2,))
    model = keras.Model(x, Weighted()(x))
    with pytest.raises(UserError, match="has weights and no method `as_plain`.* Or leave keras out: --formats=saved"):
        _form(model, formats.chosen("keras,saved_model"))
    assert _form(model, formats.chosen("saved_model,stablehlo")) is model


def test_onnx_of_a_run_in_less_than_float32_is_refused() -> None:
    kinds = [formats.Format(".onnx", lambda *_: None, precisions=("float32",))]
    _require_precision(kinds, "float32")
    with pytest.raises(UserError, match="Experiment.precision is float32, .*Received a run in mixed_bfloat16. Leave"):
        _require_precision(kinds, "mixed_bfloat16")
