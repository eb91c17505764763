"""The two texts beside exported files: export.json for programs, README.txt for people."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from components.interfaces import DataSpec
from pipeline.exporting.check import Written
from pipeline.exporting.networks import RANGES, Exported
from pipeline.run_folder import versions

_PACKAGES = ("tensorflow", "keras", "numpy", "tf2onnx", "onnx", "onnxruntime")

# How images are drawn, by the suffix of a file.
_USES = {
    ".keras": """\
model = keras.models.load_model("{file}")
images = np.asarray(model([{values}]))""",
    ".saved_model": """\
serve = tf.saved_model.load("{file}").signatures["serving_default"]
images = serve({tensors})["images"].numpy()""",
    ".stablehlo": """\
from tensorflow.compiler.tf2xla.python import xla  # one of the runtimes for StableHLO
module, version = open("{file}", "rb").read(), xla.call_module_maximum_supported_version()
types = {{"Sout": [{shape}], "Tout": [tf.float32], "platforms": ["CPU"]}}
images = xla.call_module([{values}], module=module, version=version, **types)[0].numpy()""",
    ".onnx": """\
import onnxruntime
session = onnxruntime.InferenceSession("{file}")
images = session.run(["images"], {{{feed}}})[0]""",
}


def write(folder: Path, files: Sequence[Written], *, run: Mapping[str, Any], rows: int) -> None:
    """Write export.json and README.txt into `folder`.

    Args:
      folder: where the files are.
      files: written and checked.
      run: facts of the run: its step and the like.
      rows: the batch of StableHLO modules.
    """
    networks: dict[str, dict[str, Any]] = {}
    for file in files:
        network = networks.setdefault(file.exported.name, {**_network(file.exported, rows), "files": []})
        facts = {"file": file.place.name, "bytes": file.size, "max_difference": file.difference}
        network["files"].append({**facts, "tolerance": file.tolerance} | ({"fault": file.fault} if file.fault else {}))
    told = {**run, "data": _data(files[0].exported.spec), "versions": versions(_PACKAGES), "stablehlo_rows": rows}
    (folder / "export.json").write_text(json.dumps({**told, "networks": networks}, indent=2) + "\n")
    (folder / "README.txt").write_text(_readme(files, networks, told, rows))


def _network(exported: Exported, rows: int) -> dict[str, Any]:
    """Return what a network takes and gives."""
    inputs = [_array(one.name, one) for one in exported.inputs.values()]
    outputs = [
        _array(name, tf.TensorSpec((None, *one.shape[1:]), one.dtype, name))
        for name, one in exported.answers(exported.examples(1)).items()
    ]
    return {"weights": exported.weights, "inputs": inputs, "outputs": outputs}


def _array(name: str, spec: tf.TensorSpec) -> dict[str, Any]:
    values = {"range": RANGES[name]} if name in RANGES else {}
    return {"name": name, "dtype": spec.dtype.name, "shape": spec.shape.as_list(), **values}


def _data(spec: DataSpec) -> dict[str, Any]:
    return {"name": spec.name, "image_shape": list(spec.image_shape), "num_classes": spec.num_classes}


def _readme(files: Sequence[Written], networks: Mapping[str, Any], told: Mapping[str, Any], rows: int) -> str:
    lines = [f"Networks of a run at step {told['step']}, trained on {told['data']['name']}.", ""]
    for name, network in networks.items():
        lines += [f"{name}, {network['weights']}"]
        lines += [f"  takes {_line(one)}" for one in network["inputs"]]
        lines += [f"  gives {_line(one)}" for one in network["outputs"]]
        lines += [f"  {one['file']}" for one in network["files"]] + [""]
    lines += [
        "Each file was loaded in a process without the project that trained it; export.json tells by how much its",
        "outputs differ from those of the run's own network at most, as a share of the largest number. Inputs and",
        f"outputs stand in the order above. N is any number of rows, but a .stablehlo takes {rows}.",
        "A .weights.h5 holds the weights of the .keras beside it. The signature of a .saved_model gives images as",
        '"uint8" too, as a picture file holds them. Python that draws images:',
        "",
        *_uses(files, networks, rows),
    ]
    return "\n".join(lines) + "\n"


def _line(one: Mapping[str, Any]) -> str:
    shape = ", ".join("N" if size is None else str(size) for size in one["shape"])
    return f"{one['name']}: {one['dtype']}[{shape}]" + (f", {one['range']}" if "range" in one else "")


def _uses(files: Sequence[Written], networks: Mapping[str, Any], rows: int) -> list[str]:
    """Return code that draws `rows` images from each file of the first network that makes some of latents."""
    for name, network in networks.items():
        drawing = [one for one in files if one.exported.name == name and one.suffix in _USES]
        inputs, outputs = ([one["name"] for one in network[key]] for key in ("inputs", "outputs"))
        if drawing and set(inputs) <= {"latents", "labels"} and outputs == ["images"]:
            exported = drawing[0].exported
            made = {
                "latents": f"np.random.default_rng(0).normal(size=({rows}, {network['inputs'][0]['shape'][-1]}))",
                "labels": f"np.arange({rows}) % {max(1, exported.spec.num_classes)}",
            }
            return [
                "import numpy as np, tensorflow as tf, keras",
                *(f'{one["name"]} = ({made[one["name"]]}).astype("{one["dtype"]}")' for one in network["inputs"]),
                *(_use(file, inputs, [rows, *exported.spec.image_shape]) for file in drawing),
                "pixels = np.round(np.clip(images * 127.5 + 127.5, 0, 255)).astype(np.uint8)  # as in a picture file",
            ]
    return []


def _use(file: Written, names: list[str], shape: list[int]) -> str:
    return f"# {file.place.name}\n" + _USES[file.suffix].format(
        file=file.place.name,
        values=", ".join(names),
        tensors=", ".join(f"{name}=tf.constant({name})" for name in names),
        feed=", ".join(f'"{name}": {name}' for name in names),
        shape=shape,
    )
