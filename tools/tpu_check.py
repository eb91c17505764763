"""Compiles the training step of a configuration for TPUs, on a machine that has none.

    python -m tools.tpu_check --gin_file=cgan_tpu.gin [--gin_param="NAME = value"]... [--topology=v5e:2x2]...

One replica's whole step, at the batch of one core, is lowered by TensorFlow's own XLA, its shapes are checked, and the
TPU's compiler compiles it ahead of time for one core of each topology. Told are what does not compile and the line of
Python that it comes from, memory a core, and the most that the chip's peaks allow. It shows that a step compiles and
fits, not that it runs. The second part needs jax and libtpu: pip install -e '.[tpu-check]'.

Exit status: 0 all compiled and fits; 1 something does not; 2 a mistake in what was asked; 3 the step was lowered and
its shapes are fixed, and no more could be checked, since the extra is not installed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import UserError
from pipeline import quiet
from tools import command_line
from tools.tpu import chips, compilation

if TYPE_CHECKING:
    from tools.tpu.lowering import Lowered

# Nothing here imports TensorFlow: --help and a mistyped flag answer at once.

_LACKING = (
    "Lowered, and no further: the TPU's compiler is not installed, so that neither its verdict nor memory nor speed is "
    "known. Install it: pip install -e '.[tpu-check]'."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Do what `argv` asks; return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        _check_output(arguments.output)
        topologies = [chips.topology(name) for name in arguments.topology or chips.DEFAULT_TOPOLOGIES]
        quiet.start()
        return _check(arguments, topologies)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser("tpu_check", __doc__, allow_abbrev=False)
    add = parser.add_argument
    command_line.add_configuration(parser)
    add(
        "--topology",
        action="append",
        help=f"CHIP:AxB or CHIP:AxBxC. Repeatable. Without it: {', '.join(chips.DEFAULT_TOPOLOGIES)}.",
    )
    add("--output", type=Path, help="FILE.mlir or FILE.bin: the step of the first topology's core as StableHLO.")
    add("--markdown", type=Path, help="A document whose table gets a row for each topology; made where there is none.")
    add("--keep", type=Path, help="A folder of results: a step that did not change is not compiled again.")
    return parser


def _check_output(output: Path | None) -> None:
    if output is not None and output.suffix not in (".mlir", ".bin"):
        raise UserError(f"`--output` is FILE.mlir (text) or FILE.bin (bytecode). Received {str(output)!r}.")


def _check(arguments: argparse.Namespace, topologies: Sequence[chips.Topology]) -> int:
    """Build, lower once for each number of cores, and compile for each topology."""
    from tools.tpu import lowering, report

    if arguments.markdown is not None:
        report.TABLE.require_writable(arguments.markdown)
    run = lowering.built(arguments.gin_file, arguments.gin_param)
    steps: dict[int, Lowered] = {}
    for one in topologies:
        if one.cores not in steps:
            steps[one.cores] = lowering.lower(run, one.cores)
            if not _told(steps[one.cores], one.cores, run.experiment.global_batch_size):
                return 1
    if arguments.output is not None:
        _write(arguments.output, steps[topologies[0].cores])
    if not compilation.is_installed():
        print(_LACKING)
        return 3
    does_fit = True
    for one in topologies:
        answer = compilation.compile_for(steps[one.cores].module, one, arguments.keep)
        print("\n".join(report.lines(answer, steps[one.cores])), flush=True)
        if arguments.markdown is not None:
            report.write_row(arguments.markdown, Path(arguments.gin_file[-1]).stem, answer, steps[one.cores])
        does_fit = does_fit and answer.fits
    return 0 if does_fit else 1


def _told(step: "Lowered", cores: int, global_batch_size: int) -> bool:
    """Print what became of the lowering; return whether it can be compiled."""
    rows = f"a global batch of {global_batch_size} over {cores} cores, {step.rows} rows each"
    if step.faults:
        print("\n".join([f"NOT LOWERED for {rows}:", *(f"  {fault}" for fault in step.faults)]), flush=True)
        return False
    print(f"Lowered for {rows}: {len(step.text) / 1000:,.0f} kB of StableHLO, every shape fixed.", flush=True)
    return True


def _write(output: Path, step: "Lowered") -> None:
    try:
        output.write_bytes(step.text.encode() if output.suffix == ".mlir" else step.module)
    except OSError as error:
        raise UserError(f"`--output` must be a file that can be written. {output}: {error.strerror}.") from error
    print(f"Written: {output}, the step of a core of {step.rows} rows.")


if __name__ == "__main__":
    sys.exit(main())
