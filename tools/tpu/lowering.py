"""Builds a configuration as the program does and lowers one replica's step by TensorFlow's own XLA."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from components.interfaces import Hardware, UserError
from pipeline import configs, launch, tpu_rules
from pipeline.build import Run, build

_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
# `?` is a size that is not known, `bounds` one that is known at most; both are of StableHLO's text.
_DYNAMIC = re.compile(r"tensor<(?:\d+x)*\?|bounds = |dynamic_(?:reshape|broadcast_in_dim|iota|pad|conv|gather)\b")


@dataclass(frozen=True, kw_only=True)
class Lowered:
    """One replica's whole step.

    Attributes:
      rows: of every batch that a core is given.
      images: real images of a step on a core.
      graph: the trace, to find where an operation was made.
      module: serialized StableHLO; empty where there are faults.
      text: the same, to read.
      faults: what keeps it from being compiled, in full sentences.
    """

    rows: int
    images: int
    graph: tf.Graph
    module: bytes = b""
    text: str = ""
    faults: tuple[str, ...] = ()


def built(gin_files: Sequence[str], gin_params: Sequence[str]) -> Run:
    """Build and rehearse what gin files name, on this CPU; data that are not ready are foreseen.

    Raises:
      UserError: something to mend.
    """
    config = configs.parse(gin_files, gin_params)
    experiment = config.experiment()
    with config.explaining(experiment.data):
        spec = launch.open_data(experiment, is_rehearsal=True)
    hardware = Hardware(
        strategy=tf.distribute.OneDeviceStrategy("/cpu:0"), accelerator="cpu", description="one core, to be compiled"
    )
    with config.explaining():
        run = build(experiment, hardware=hardware, spec=spec, checkpoints=Path("none"))
        run.stepper.rehearse()
    if not hasattr(run.stepper, "replica_program"):
        raise UserError(
            "`Experiment.stepper` must offer its step for inspection, as DistributedStepper.replica_program does. "
            f"Received {type(run.stepper).__name__}."
        )
    return run


def lower(run: Run, num_cores: int) -> Lowered:
    """Trace the step of one of `num_cores` replicas and lower it to StableHLO.

    Raises:
      UserError: the cores do not divide the global batch.
    """
    program = run.stepper.replica_program(num_cores)
    images, rows = program.input_signature[0].shape[0], program.input_signature[0].shape[1]
    graph = program.get_concrete_function().graph
    traced = {"rows": rows, "images": images * rows, "graph": graph}
    faults = [str(breach) for breach in tpu_rules.breaches(graph)]
    if faults:
        return Lowered(**traced, faults=tuple(faults))
    try:
        export = program.experimental_get_compiler_ir(*program.input_signature)
        module, text = export(stage="stablehlo_serialized"), export(stage="stablehlo")
    except (tf.errors.OpError, ValueError) as error:
        return Lowered(**traced, faults=(refusal("TensorFlow's XLA", str(error), graph),))
    return Lowered(**traced, module=module, text=text, faults=tuple(dynamic_shapes(text)))


def dynamic_shapes(text: str) -> list[str]:
    """Return a sentence for the first line of StableHLO whose shapes are not fixed, or none."""
    for line in text.splitlines():
        if _DYNAMIC.search(line):
            return [
                "Every shape of the compiled step is fixed. Received the operation "
                f"`{line.strip()[:160]}`. Keep sizes, and mask what does not count."
            ]
    return []


def refusal(who: str, message: str, graph: tf.Graph) -> str:
    """Return what a compiler refused, with the line of Python that made the operation, where it can be told.

    Args:
      who: the compiler.
      message: what it said.
      graph: the trace of the step.
    """
    names = [*_NODE.findall(message), *re.findall(r"op_name=\"([^\"]+)\"", message)]
    for name in names:
        operation = tpu_rules.operation_named(graph, name.rpartition("/")[2]) or tpu_rules.operation_named(graph, name)
        if operation is not None and (line := tpu_rules.source_line(operation)):
            return f"{who} refused the operation {operation.type} ({operation.name}), made at {line}: {_short(message)}"
    return f"{who} refused the step: {_short(message)}"


def _short(message: str) -> str:
    flat = " ".join(message.split())
    return flat if len(flat) <= 600 else flat[:600] + " ..."
