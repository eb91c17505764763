"""What was found, as lines for a person and as rows of a document."""

from collections.abc import Iterator
from pathlib import Path

from tools import markdown_table
from tools.tpu.chips import bound
from tools.tpu.compilation import Answer
from tools.tpu.lowering import Lowered, refusal

_ROWS = 8  # of a register: XLA fills up a batch that is no multiple of it
TABLE = markdown_table.Table(
    title="""\
# Compiled for TPUs

What `python -m tools.tpu_check --gin_file=NAME --markdown=FILE` wrote, one row for each file and kind of chip. It is
**proof that the step compiles and fits, not that it runs**: no TPU was there. Each row is one core's share of a whole
training step, at the global batch of the file divided by the cores of the named topology, lowered by TensorFlow and
compiled ahead of time by the TPU's own compiler. The sums over cores, the reading of data and TensorFlow's runtime on
the chip are not in it.

- Memory: arguments (weights, optimizers, averages, a batch), temporaries and the program itself, of one core's memory
  less 1 GiB a chip for the runtime. The compiler lays v3 and v4 out as two cores a chip.
- At most: what a chip would do if only arithmetic or only memory traffic took time, whichever is longer, from the
  operations and bytes that the compiler counts and the chip's published peaks. float32 products are counted at the
  bfloat16 peak, since XLA's default precision computes them in one pass of bfloat16 products. Small steps fall far
  short of it.
""",
    columns=(
        "file",
        "chips",
        "compiled",
        "rows a core",
        "memory a core",
        "of",
        "GFLOP a step",
        "MB moved a step",
        "at most, images/s a chip",
    ),
    keys=2,
)


def lines(answer: Answer, lowered: Lowered) -> Iterator[str]:
    """Yield what a person is told of one kind of chip."""
    name = answer.topology.name
    if not answer.fits:
        yield f"{name:<10} NOT {'FITTING' if answer.is_too_large else 'COMPILED'}. {_reason(answer, lowered)}"
        return
    parts = ", ".join(f"{label} {_mib(answer.memory.get(key, 0))}" for label, key in _PARTS.items())
    limit = _bound(answer, lowered)
    yield f"{name:<10} compiled in {answer.seconds:.0f} s for one core, of {answer.topology.cores}: {lowered.rows} rows"
    yield f"{'':<10}   memory  {_mib(answer.bytes_needed)} of {_mib(answer.topology.chip.core_bytes)} ({parts})"
    counted = f"{answer.cost['flops'] / 1e9:,.2f} GFLOP, {answer.cost['bytes'] / 1e6:,.0f} MB moved"
    reached = f"{limit.images_per_second:,.0f} images/s a chip, which {limit.limit} bounds"
    yield f"{'':<10}   a step  {counted}: at most {reached}"
    if lowered.rows % _ROWS:
        near = -(-lowered.rows // _ROWS) * _ROWS * answer.topology.cores
        wasted = f"{lowered.rows} rows are filled up to a multiple of {_ROWS}"
        yield f"{'':<10}   batch   {wasted}: GLOBAL_BATCH_SIZE = {near} wastes none"


_PARTS = {"arguments": "argument", "temporaries": "temp", "code": "generated_code"}


def write_row(file: Path, name: str, answer: Answer, lowered: Lowered) -> None:
    """Put the row of a configuration and a topology into the table of a document, which is made where there is none."""
    chips = answer.topology.name
    limit = _bound(answer, lowered) if answer.fits else None
    cells = [name, chips, "yes" if answer.fits else _reason(answer, lowered)[:120], f"{lowered.rows}"]
    if limit is None:
        cells += [""] * 5
    else:
        cells += [
            _mib(answer.bytes_needed),
            _mib(answer.topology.chip.core_bytes),
            f"{answer.cost['flops'] / 1e9:,.2f}",
            f"{answer.cost['bytes'] / 1e6:,.0f}",
            f"{limit.images_per_second:,.0f} ({limit.limit})",
        ]
    TABLE.put(file, cells)


def _reason(answer: Answer, lowered: Lowered) -> str:
    if answer.needs_more_than_there_is:
        return f"The step needs {answer.compilers_own_count} of a core's memory. {_smaller(lowered)}"
    if answer.error:
        return refusal("The TPU's compiler", answer.error, lowered.graph)
    needed, there = _mib(answer.bytes_needed), _mib(answer.topology.chip.core_bytes)
    return f"The step needs {needed} of a core's memory, where there are {there}. {_smaller(lowered)}"


def _smaller(lowered: Lowered) -> str:
    return (
        f"Received {lowered.rows} rows a core. Halve GLOBAL_BATCH_SIZE and let the update accumulate 2 batches "
        "(`Update.accumulate`), take more chips, or compute in 'mixed_bfloat16'."
    )


def _bound(answer: Answer, lowered: Lowered):
    cost = answer.cost
    return bound(answer.topology.chip, flops=cost["flops"], bytes_accessed=cost["bytes"], images=lowered.images)


def _mib(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"
