"""What a TPU forbids, found in the traced step and in the data before anything is trained.

XLA compiles the whole step for shapes that it knows beforehand, and nothing of it runs on the host. The rules find what
breaks that most often; `python -m tools.tpu_check` compiles the step and finds the rest.
"""

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import keras
import tensorflow as tf

from components.interfaces import DataSource, HostShard, UserError
from pipeline.build import Run

_LIBRARIES = tuple(str(Path(module.__file__).parent) for module in (tf, keras))

# Operations that run Python, or read and write for the host, and whose tensors are numbers all the same.
_ON_HOST = {"PyFunc": "tf.numpy_function", "EagerPyFunc": "tf.py_function", "PyFuncStateless": "tf.numpy_function"}
_ON_HOST_TOLD = {"AsString": "tf.as_string", "PrintV2": "tf.print", "StringFormat": "tf.print", **_ON_HOST}
# The messages of assertions are strings too; XLA leaves assertions out.
_SILENT = {"Const", "Assert", "NoOp", "Placeholder"}
# The size of what they return depends on the numbers that they are given, or on a size that is itself computed.
_SIZED_BY_VALUES = {
    **dict.fromkeys(("Where", "ListDiff", "DynamicPartition"), "boolean_mask, tf.where of one argument and the like"),
    **dict.fromkeys(("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"), "tf.unique"),
    **dict.fromkeys(("Range", "Slice", "StridedSlice", "Fill", "RaggedRange"), "a size that is itself a tensor"),
}


@runtime_checkable
class Traced(Protocol):
    """What a stepper may offer: the graphs of its rehearsal, one an update."""

    rehearsals: Sequence[tf.Graph]


@runtime_checkable
class Streaming(Protocol):
    """What a data source may offer: which files it goes on reading while a run trains."""

    @property
    def streamed_files(self) -> Sequence[str]:
        """The files, or none where the examples are held in memory; opens the data if need be."""
        ...


@dataclass(frozen=True)
class Breach:
    """An operation of a graph that a TPU cannot run.

    Attributes:
      rule: what is forbidden.
      operation: its type and name, with the line of Python that made it, where that is known.
      remedy: what to do instead.
    """

    rule: str
    operation: str
    remedy: str

    def __str__(self) -> str:
        """Return it as a person reads it."""
        return f"{self.rule} Received {self.operation}. {self.remedy}"


def require_fit(run: Run, data: DataSource | None) -> None:
    """Refuse what could not be trained on a TPU.

    Args:
      run: rehearsed.
      data: of the run; None: not ready to be looked at, as in a dry run.

    Raises:
      UserError: tells every fault found.
    """
    graphs = run.stepper.rehearsals if isinstance(run.stepper, Traced) else []
    faults = list(dict.fromkeys(str(breach) for graph in graphs for breach in breaches(graph)))
    if data is not None:
        faults += _of_batches(data, run.experiment.global_batch_size)
        faults += _of_files(data) if run.hardware.is_remote else []
    if faults:
        raise UserError("This configuration is meant for a TPU, which could not train it.\n" + "\n".join(faults))


def breaches(graph: tf.Graph) -> list[Breach]:
    """Return what a TPU could not run of a graph and of the functions in it, each place once."""
    found = [breach for operation in _operations(graph, set()) if (breach := _breach(operation)) is not None]
    return list(dict.fromkeys(found))


def source_line(operation: tf.Operation) -> str:
    """Return `FILE:LINE: text` of the innermost line outside of TensorFlow and Keras that made an operation, or ""."""
    for frame in reversed(list(operation.traceback or ())):
        if not frame.filename.startswith((*_LIBRARIES, "<")):
            text = linecache.getline(frame.filename, frame.lineno).strip()
            return f"{frame.filename}:{frame.lineno}: {text}".rstrip(": ")
    return ""


def operation_named(graph: tf.Graph, name: str) -> tf.Operation | None:
    """Return the operation of that name in a graph or in the functions in it."""
    return next((operation for operation in _operations(graph, set()) if operation.name == name), None)


def _operations(graph: tf.Graph, seen: set[str]) -> Iterator[tf.Operation]:
    """Yield the operations of a graph and of every function that it holds, however deep."""
    yield from graph.get_operations()
    for name, function in getattr(graph, "_functions", {}).items():
        inner = getattr(function, "graph", None)
        if name not in seen and inner is not None:
            seen.add(name)
            yield from _operations(inner, seen)


def _breach(operation: tf.Operation) -> Breach | None:
    kind = operation.type
    is_string = any(tensor.dtype == tf.string for tensor in (*operation.inputs, *operation.outputs))
    if kind in _ON_HOST or (is_string and kind not in _SILENT):
        rule = "Nothing in a step runs on the host: no Python, no text, no files."
        return Breach(
            rule, _told(operation, _ON_HOST_TOLD.get(kind)), "Compute it with TensorFlow's numeric functions."
        )
    if kind in _SIZED_BY_VALUES and not all(tensor.shape.is_fully_defined() for tensor in operation.outputs):
        return Breach(
            "The shape of every tensor is known before the step runs.",
            _told(operation, _SIZED_BY_VALUES[kind]),
            "Keep the size and mask what does not count, such as tf.where(condition, x, 0.0), or take the size from "
            "`x.shape`.",
        )
    return None


def _told(operation: tf.Operation, meaning: str | None) -> str:
    line = source_line(operation)
    return f"{operation.type} ({meaning or operation.name})" + (f", made at {line}" if line else "")


def _of_batches(data: DataSource, global_batch_size: int) -> Iterator[str]:
    """Yield what is wrong with the batches of a data source."""
    batches = data.batches(global_batch_size=global_batch_size, seed=0, start_batch=0, host=HostShard())
    kind = type(data).__name__
    for name, spec in batches.element_spec.items():
        if spec.dtype == tf.string or not spec.shape.is_fully_defined():
            yield (
                "A batch holds numbers, and every shape is known before it is read. Received "
                f"{name!r}: {spec.dtype.name}{spec.shape} from {kind}. Use batch(..., drop_remainder=True) and "
                "tf.ensure_shape in its `batches`."
            )


def _of_files(data: DataSource) -> Sequence[str]:
    """Return what is wrong with the files of a data source for a machine that cannot see them."""
    files = data.streamed_files if isinstance(data, Streaming) else []
    local = [str(file) for file in files if "://" not in str(file)]
    if not local:
        return []
    return [
        f"The host of a remote TPU reads no file of this machine. Received {type(data).__name__}, which reads "
        f"{local[0]} and more while it trains. Raise `memory_budget_mb` so that the examples are held in memory and "
        "travel from here, put the data in a bucket (data_dir = 'gs://...'), or start the program on the TPU's own "
        "machine."
    ]
