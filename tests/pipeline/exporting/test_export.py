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

from components.interfaces import UserError
from pipeline import api
from pipeline.export import export
from pipeline.exporting import check, formats
from pipeline.exporting.check import checked
from pipeline.exporting.networks import networks_of
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


def sampled(trained) -> tuple[np.ndarray, np.ndarray]:
    """Return the latents of the sampler's first images, as it draws them, and those images."""
    run = trained.run
    width = run.networks["generator"].inputs[0].shape[-1]
    latents = tf.random.stateless_normal([100, width], tf.constant([3, 0], tf.int64), alg="philox")
    return latents[:ROWS].numpy(), run.sampler.sample(ROWS, seed=3, labels=CLASSES)


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

    latents, images = sampled(trained)
    np.savez(tmp_path / "asked.npz", latents=latents, labels=np.int32(CLASSES))
    readme = (folder / "README.txt").read_text()
    code = readme[readme.index("import numpy") :].replace("\nlabels", "\nasked = np.load('../asked.npz')\nlabels")
    code = code.replace("# generator.keras", "latents, labels = asked['latents'], asked['labels']")
    for suffix in suffixes[2:]:  # the code draws from every file in turn; what each gave is kept
        code = code.replace(f"# generator{suffix}", f"all_images.append(images)  # {suffix}")
    last = "all_images.append(images)\npixels ="
    code = "all_images = []\n" + code.replace("pixels =", last).replace(
        "\nall_images.append(images)  # .saved", "\n#", 0
    )
    in_a_process_without_this_project(code + "\nnp.savez('../found.npz', *all_images, pixels=pixels)", folder)
    with np.load(tmp_path / "found.npz") as found:
        assert len(found) == len(suffixes)
        for one in found.values():
            whole = one if one.dtype == np.uint8 else np.round(np.clip(one * 127.5 + 127.5, 0, 255))
            assert np.abs(whole - images.astype("float32")).max() <= 1
            assert np.mean(whole == images) > 0.99
        np.testing.assert_array_equal(np.round(found["arr_0"] * 127.5 + 127.5), images)


def test_saved_model_serves_named_inputs_and_the_sampler_s_pixels(trained, tmp_path) -> None:
    generator = next(one for one in networks_of(trained.run.networks, trained.run.stepper.averages))
    (saved_model,) = formats.chosen("saved_model")
    saved_model.write(generator, plain(generator.model), tmp_path / "served", ROWS)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    assert served.structured_input_signature[1] == {
        "latents": tf.TensorSpec((None, 32), tf.float32, "latents"),
        "labels": tf.TensorSpec((None,), tf.int32, "labels"),
    }
    latents, images = sampled(trained)
    outputs = served(latents=tf.constant(latents), labels=tf.constant(CLASSES))
    np.testing.assert_array_equal(outputs["uint8"], images)
    assert outputs["images"].dtype == tf.float32 and outputs["uint8"].dtype == tf.uint8


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
    assert "components" in results["ours.keras"].fault and "not to be used here" in results["ours.keras"].fault
    assert results["wrong.keras"].difference > 0.01 and results["broken.stablehlo"].fault


@pytest.fixture
def without_a_check(monkeypatch):
    """Let files pass unloaded; loading is the slow part."""

    def passed(files, *, rows, precision):
        return [
            check.Written(exported=exported, suffix=suffix, place=place, tolerance=1e-4, difference=0.5 * (index == 1))
            for index, (exported, suffix, place) in enumerate(files)
        ]

    monkeypatch.setattr("pipeline.export.checked", passed)


def test_file_that_differs_ends_with_status_1_and_is_named(trained, without_a_check, capsys) -> None:
    assert call(trained) == 1
    told = capsys.readouterr()
    assert told.err == ("These do not give what the run's own networks give: generator.weights.h5. Do not use them.\n")
    assert "generator.weights.h5" in told.out and "max difference 5.0e-01 (at most 1e-04)" in told.out
    assert (trained.workdir / "export" / "generator.keras").is_file(), "without --output, it is in the run folder"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"formats": "keras,tflite"},
            "`--formats` names some of keras, saved_model, stablehlo, onnx. Received 'tflite'",
        ),
        ({"formats": ""}, "`--formats` names some of .*Received ''"),
        ({"checkpoint": "7"}, "7"),
    ],
)
def test_what_cannot_be_exported_is_refused(trained, changed, told) -> None:
    with pytest.raises(UserError, match=told):
        call(trained, **changed)


def test_folder_that_cannot_be_written_is_refused(trained) -> None:
    place = trained.workdir / "config.gin"
    with pytest.raises(UserError, match="`--output` must be a folder that can be written. .*config.gin: File exists"):
        call(trained, place)


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
    from pipeline.export import _form

    x = keras.Input((2,))
    model = keras.Model(x, Weighted()(x))
    with pytest.raises(UserError, match="has weights and no method `as_plain`.* Or leave keras out: --formats=saved"):
        _form(model, formats.chosen("keras,saved_model"))
    assert _form(model, formats.chosen("saved_model,stablehlo")) is model


def test_onnx_of_a_run_in_less_than_float32_is_refused() -> None:
    from pipeline.export import _require_precision

    kinds = [formats.Format(".onnx", lambda *_: None, precisions=("float32",))]
    _require_precision(kinds, "float32")
    with pytest.raises(UserError, match="Experiment.precision is float32, .*Received a run in mixed_bfloat16. Leave"):
        _require_precision(kinds, "mixed_bfloat16")
