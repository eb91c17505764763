"""Loads exported files where this project cannot be imported, and compares what they compute with what is expected.

Run as a script by `check`, by an interpreter of its own: python -I clean_process.py JOB RESULT. JOB is a JSON file of
{"blocked": [top-level modules], "files": [{"place", "suffix", "examples": FILE.npz, "inputs", "outputs"}]}; RESULT gets
a list of {"difference": float} or {"fault": text}, one a file.
"""

import importlib.abc
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


class Blocked(importlib.abc.MetaPathFinder):
    """Makes an import of some top-level modules fail, wherever they are installed."""

    def __init__(self, names: list[str]) -> None:
        """Hold the names."""
        self._names = names

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError for a blocked module."""
        if fullname.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}: it is not to be used here", name=fullname)


def run_keras(place: str, inputs: Arrays, outputs: Arrays) -> list[Any]:
    """Return the outputs of a .keras file, in the order of Keras."""
    return _called(_loaded(place), inputs)


def run_weights(place: str, inputs: Arrays, outputs: Arrays) -> list[Any]:
    """Return the outputs with the weights of a .weights.h5 file in the model of the .keras file beside it."""
    model = _loaded(place.removesuffix(".weights.h5") + ".keras")
    model.set_weights([np.zeros_like(one) for one in model.get_weights()])
    model.load_weights(place)
    return _called(model, inputs)


def run_saved_model(place: str, inputs: Arrays, outputs: Arrays) -> list[Any]:
    """Return the outputs of a SavedModel's serving signature, by name in the order of `outputs`."""
    import tensorflow as tf

    loaded = tf.saved_model.load(place)
    found = loaded.signatures["serving_default"](**{name: tf.constant(one) for name, one in inputs.items()})
    if found.keys() - {"uint8"} != set(outputs):
        raise ValueError(f"the signature has the outputs {', '.join(sorted(found))}")
    if "uint8" in found:
        levels = np.clip(np.asarray(found["images"]) * 127.5 + 127.5, 0, 255)
        if np.abs(levels - np.asarray(found["uint8"], "float32")).max() > 0.5001:  # rounded to the nearest
            raise ValueError("the output uint8 is not the images in 256 levels")
    return [found[name] for name in outputs]


def run_stablehlo(place: str, inputs: Arrays, outputs: Arrays) -> list[Any]:
    """Return the outputs of a StableHLO module, run by TensorFlow's XLA."""
    import tensorflow as tf
    from tensorflow.compiler.tf2xla.python import xla

    return xla.call_module(
        list(map(tf.constant, inputs.values())),
        version=xla.call_module_maximum_supported_version(),
        module=Path(place).read_bytes(),
        Sout=[one.shape for one in outputs.values()],
        Tout=[one.dtype for one in outputs.values()],
        platforms=["CPU"],
    )


def run_onnx(place: str, inputs: Arrays, outputs: Arrays) -> list[Any]:
    """Return the outputs of an ONNX file, by name in the order of `outputs`."""
    import onnxruntime

    session = onnxruntime.InferenceSession(place, providers=["CPUExecutionProvider"])
    asked = {one.name: inputs[one.name] for one in session.get_inputs()}
    return session.run(list(outputs), asked)


RUNS: Mapping[str, Callable[[str, Arrays, Arrays], list[Any]]] = {
    ".keras": run_keras,
    ".weights.h5": run_weights,
    ".saved_model": run_saved_model,
    ".stablehlo": run_stablehlo,
    ".onnx": run_onnx,
}


def difference(file: Mapping[str, Any]) -> float:
    """Return by how much the outputs of a file differ at most from those expected, as a share of the largest number.

    Numbers of at most 1, as those of an image, are taken as they are.
    """
    with np.load(file["examples"]) as arrays:
        inputs = {name: arrays[f"input {name}"] for name in file["inputs"]}
        outputs = {name: arrays[f"output {name}"] for name in file["outputs"]}
    found = [np.asarray(one) for one in RUNS[file["suffix"]](file["place"], inputs, outputs)]
    largest = 0.0
    for name, one in zip(outputs, found, strict=True):
        if one.shape != outputs[name].shape or one.dtype != outputs[name].dtype:
            raise ValueError(f"the output {name!r} is {one.dtype}{list(one.shape)}")
        if not np.isfinite(one).all():
            raise ValueError(f"the output {name!r} is not finite")
        wrong = np.abs(one.astype("float64") - outputs[name]) / max(1.0, float(np.abs(outputs[name]).max()))
        largest = max(largest, float(wrong.max()))
    return largest


def main(job: str, result: str) -> None:
    """Do a job."""
    asked = json.loads(Path(job).read_text())
    sys.meta_path.insert(0, Blocked(asked["blocked"]))
    answers: list[dict[str, Any]] = []
    for file in asked["files"]:
        try:
            answers.append({"difference": difference(file)})
        except Exception as error:
            answers.append({"fault": f"{type(error).__name__}: {error}"})
    Path(result).write_text(json.dumps(answers))


def _loaded(place: str) -> Any:
    import keras

    return keras.models.load_model(place)


def _called(model: Any, inputs: Arrays) -> list[Any]:
    import keras

    asked = list(inputs.values())
    outputs = model(asked if len(asked) > 1 else asked[0], training=False)
    return keras.tree.flatten(outputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
