"""Compares the steps that a configuration takes on many replicas with those that it takes on one.

    python -m tools.invariance --gin_file=cgan.gin [--gin_param="NAME = value"]... [--replicas=2,4,8]

At one global batch they are the same but for rounding, unless a loss, a layer or an objective looks across the rows of
its own replica. Two things are measured on logical CPUs:

  steps    weights, statistics, averages and counters after a few steps, with plain gradient descent in the place of
           every optimizer: the largest difference of any number, relative to it or to 1 where it is smaller
  losses   with the optimizers of the file, for the first number of replicas, as means over tenths of more steps: the
           largest difference of any of them, relative likewise, and beside it that of one replica after a rounding
           error in its first weights. Adam divides by the size of a gradient, so that rounding alone moves a weight
           whose gradient is near 0, and players answer each other: what rounding makes, replicas may make twice

Make the work small: --gin_param="GLOBAL_BATCH_SIZE = 8" suits eight replicas, and costs what eight traces do.

Exit status: 0 alike; 1 not; 2 a mistake in what was asked.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from components.errors import UserError
from pipeline import quiet
from tools import command_line, markdown_table

# Nothing here imports TensorFlow: --help and a mistyped flag answer at once.

_NOT_ALIKE = "NOT ALIKE: does a loss, a layer or an objective look across the rows of its own replica?"
_TABLE = markdown_table.Table(
    title="""# The same steps on many replicas

What `python -m tools.invariance --gin_file=NAME --markdown=FILE` measured on logical CPUs, at the global batch that the
replicas and their rows make: the largest difference from one replica of any number after a few steps of gradient
descent; of the mean losses over tenths of more steps with the file's own optimizers; and what a rounding error in the
first weights makes of these losses on one replica. Files are made small where they would take hours: the last column
holds every `--gin_param`. The tool's help tells more, [invariance.md](invariance.md) what is invariant and why.
""",
    columns=(
        "file",
        "replicas",
        "rows each",
        "steps",
        "numbers differ by",
        "steps",
        "losses differ by",
        "by rounding",
        "with",
    ),
    keys=2,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Do what `argv` asks; return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        _check(arguments)
        quiet.start()
        return _compare(arguments)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser("invariance", __doc__, allow_abbrev=False)
    add = parser.add_argument
    command_line.add_configuration(parser)
    add("--replicas", type=_numbers, default=[2, 4, 8], help="Numbers of replicas. Default: 2,4,8.")
    add("--steps", type=int, default=3, help="Of gradient descent. Default: 3.")
    add("--loss_steps", type=int, default=100, help="With the file's optimizers, a multiple of 10; 0: none.")
    add("--tolerance", type=float, default=1e-5, help="Of the steps. Default: 1e-5.")
    add("--loss_tolerance", type=float, default=0.05, help="Of the losses, or twice a rounding error's. Default: 0.05.")
    add("--markdown", type=Path, help="A document whose table gets a row for each number; made where there is none.")
    return parser


def _numbers(text: str) -> list[int]:
    numbers = [int(one) for one in text.split(",")]
    if min(numbers) < 2:
        raise argparse.ArgumentTypeError(f"are at least 2, as each is compared with one replica; received {text!r}")
    return numbers


def _check(arguments: argparse.Namespace) -> None:
    if arguments.steps < 1 or arguments.loss_steps < 0 or arguments.loss_steps % 10:
        raise UserError(
            "`--steps` is at least 1 and `--loss_steps` a multiple of 10. Received "
            f"{arguments.steps} and {arguments.loss_steps}."
        )
    if arguments.markdown is not None:
        _TABLE.require_writable(arguments.markdown)


def _compare(arguments: argparse.Namespace) -> int:
    from pipeline import configs
    from tools import replicas

    replicas.make_room(max(arguments.replicas))
    experiment = configs.parse(arguments.gin_file, arguments.gin_param).experiment()
    rows, step_of, are_alike = experiment.global_batch_size, replicas.steps(experiment, arguments.steps), True
    for index, count in enumerate(arguments.replicas):
        step, losses = step_of(count), None
        are_alike &= step.value <= arguments.tolerance
        print(f"{count} replicas of {rows // count} rows. After {arguments.steps} steps: {step}.", flush=True)
        if index == 0 and arguments.loss_steps:
            losses, control = replicas.curves(experiment, arguments.loss_steps, count)
            are_alike &= losses.value <= max(arguments.loss_tolerance, 2 * control.value)
            print(f"  Losses over {arguments.loss_steps} steps: {losses}; of a rounding error: {control}.", flush=True)
        if arguments.markdown is not None:
            name = Path(arguments.gin_file[-1]).stem
            cells = [f"{arguments.loss_steps}", f"{losses.value:.1e}", f"{control.value:.1e}"] if losses else [""] * 3
            row = [name, f"{count}", f"{rows // count}", f"{arguments.steps}", f"{step.value:.1e}", *cells]
            _TABLE.put(arguments.markdown, [*row, _code(arguments.gin_param)])
    print("Alike." if are_alike else _NOT_ALIKE)
    return 0 if are_alike else 1


def _code(lines: Sequence[str]) -> str:
    return "; ".join(f"`{line}`" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
