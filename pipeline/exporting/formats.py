"""The file formats: how a network is written in each."""

import contextlib
import importlib
import importlib.util
import logging
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import keras
import tensorflow as tf

from components.errors import storage_fault
from components.interfaces import UserError
from pipeline.exporting.networks import Exported, as_uint8

# The network, its plain form (or itself where only the graph counts), the place, the rows of a static batch.
Write = Callable[[Exported, keras.Model, Path, int], None]


class Format(NamedTuple):
    """One kind of file.

    Attributes:
      suffix: of the file after the network's name.
      write: writes it.
      plain: whether the file refers to the classes of layers, so that all must be Keras's own.
      needs: packages that must be installed beside the project.
      precisions: of the runs whose networks it can hold; empty: any.
    """

    suffix: str
    write: Write
    plain: bool = False
    needs: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()


def _keras(exported: Exported, model: keras.Model, place: Path, rows: int) -> None:
    model.save(place)


def _weights(exported: Exported, model: keras.Model, place: Path, rows: int) -> None:
    model.save_weights(place)


def _saved_model(exported: Exported, model: keras.Model, place: Path, rows: int) -> None:
    """Write a SavedModel whose signature has the network's inputs and outputs by name, and "uint8" beside "images"."""
    function = exported.function(model)

    def serve(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = function(*inputs)
        return {**outputs, "uint8": as_uint8(outputs["images"])} if "images" in outputs else outputs

    shutil.rmtree(place, ignore_errors=True)
    module = tf.Module()
    module.held = [variable.value for variable in model.variables]
    module.serve = tf.function(serve, input_signature=list(exported.inputs.values()), autograph=False)
    with _quiet():
        tf.saved_model.save(module, str(place), signatures=module.serve)


def _stablehlo(exported: Exported, model: keras.Model, place: Path, rows: int) -> None:
    """Write a portable artifact of StableHLO: weights are constants, the batch is `rows`, outputs stand in order."""
    from tensorflow.compiler.mlir.stablehlo import stablehlo

    weights = [variable.numpy() for variable in model.trainable_variables]
    state = [variable.numpy() for variable in model.non_trainable_variables]

    @tf.function(jit_compile=True, autograph=False)
    def frozen(*inputs: tf.Tensor) -> list[tf.Tensor]:
        constants = ([tf.constant(one) for one in values] for values in (weights, state))
        asked = list(inputs) if len(inputs) > 1 else inputs[0]
        outputs, _ = model.stateless_call(*constants, asked, training=False)
        return list(exported.named(outputs).values())

    specs = [tf.TensorSpec((rows, *one.shape[1:]), one.dtype, one.name) for one in exported.inputs.values()]
    lowered = frozen.experimental_get_compiler_ir(*specs)(stage="stablehlo_serialized", platform_name="CPU")
    try:  # the older its version, the more runtimes read it
        artifact = stablehlo.serialize_portable_artifact_str(lowered, stablehlo.get_minimum_version())
    except ValueError:
        artifact = stablehlo.serialize_portable_artifact_str(lowered, stablehlo.get_current_version())
    place.write_bytes(artifact)


def _onnx(exported: Exported, model: keras.Model, place: Path, rows: int) -> None:
    """Write ONNX by tf2onnx, with the network's inputs and outputs by name and an open batch.

    Raises:
      UserError: something in the network that the converter does not know.
    """
    inputs = [keras.Input(one.shape[1:], dtype=one.dtype.name, name=one.name) for one in exported.inputs.values()]
    named = keras.Model(inputs, exported.function(model)(*inputs))
    named(list(exported.examples(1).values()))  # Keras exports no model that has not been called
    try:
        with _quiet():
            named.export(str(place), format="onnx", verbose=False)
    except Exception as error:
        if storage_fault(error):
            raise
        raise UserError(
            f"An ONNX file must be made of operations that tf2onnx knows. It cannot convert {exported.name!r}: "
            f"{error}. Leave onnx out of --formats."
        ) from error


_FORMATS: Mapping[str, tuple[Format, ...]] = {
    "keras": (Format(".keras", _keras, plain=True), Format(".weights.h5", _weights, plain=True)),
    "saved_model": (Format(".saved_model", _saved_model),),
    "stablehlo": (Format(".stablehlo", _stablehlo),),
    "onnx": (Format(".onnx", _onnx, needs=("tf2onnx", "onnx", "onnxruntime"), precisions=("float32",)),),
}


def chosen(text: str) -> list[Format]:
    """Return the formats named on the command line, with commas between.

    Raises:
      UserError: another name, or a package that is not installed.
    """
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in _FORMATS]:
        raise UserError(f"`--formats` names some of {', '.join(_FORMATS)}. Received {unknown[0]!r}.")
    found = [one for name in dict.fromkeys(names) for one in _FORMATS[name]]
    missing = [package for one in found for package in one.needs if importlib.util.find_spec(package) is None]
    if missing:
        raise UserError(
            f"The format onnx needs the packages of the extra of that name. {missing[0]} is not installed. "
            "Use pip install -e '.[onnx]', or leave onnx out of --formats."
        )
    return found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep converters from telling what they do; what they raise passes."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
