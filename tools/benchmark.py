"""Measures training against hand-written loops of the same networks, losses, optimizers and batch.

    python -m tools.benchmark --gin_file=dcgan_distributed.gin --global_batch_size=64 --output=benchmark.md

Contenders, each in a new process in every round:

  lean       one tf.function of the whole step, written by hand; data in memory, latents drawn in the graph
  gantry     this project, as the program builds and runs it
  fit        the same step as the train_step of a Keras model
  host-fed   three calls a step, fed from the host: fakes, discriminator, generator (GANs only)
  bfloat16   gantry with Experiment.precision = 'mixed_bfloat16'
  variant    gantry with the lines of --variant, where there are any

In a round the contenders start and make their first step one after the other; then they take turns of a few steps,
forth and back, so that a slow spell of the machine meets all of them. Numbers are medians over the rounds, ratios
are taken within a round to `lean`. The first step holds its tracing. From start to first step counts from the start
of the process; peak memory is the process's resident set. Of the hand-written loops, reading our configuration is
taken off both. Run it on a machine that does nothing else.

Exit status: 0 measured; 1 a contender failed; 2 a mistake in what was asked.
"""

import argparse
import contextlib
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.errors import UserError
from tools import command_line
from tools.benchmark_process import Contender, ContenderError

CONTENDERS = ("lean", "gantry", "fit", "host-fed", "bfloat16")
_TURNS = 10  # of each contender in a round
_PRECISIONS = ("float32", "mixed_bfloat16")
Round = dict[str, dict[str, float]]  # {contender: {what: number}}


def main(argv: Sequence[str] | None = None) -> int:
    """Do what `argv` asks; return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="gantry-benchmark-") as folder:
            task = read(arguments, folder)
            limits, rounds = _measure(task, arguments.rounds)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except ContenderError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    text = report(task, limits, rounds)
    print(text)
    if arguments.output:
        is_json = arguments.output.endswith(".json")
        facts = {"task": {**task, "folder": ""}, "limits": limits, "rounds": rounds}
        Path(arguments.output).write_text(json.dumps(facts, indent=1) if is_json else text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser("benchmark", __doc__)
    parser.add_argument("--gin_file", default="dcgan_tpu.gin", help="Of plain steps: two players, or a VAE.")
    parser.add_argument("--gin_param", action="append", default=[], help="One line of gin; repeatable.")
    parser.add_argument("--rounds", type=_positive, default=3, help="Of all contenders. Default: 3.")
    parser.add_argument("--steps", type=_positive, default=30, help="Timed, after three others. Default: 30.")
    parser.add_argument("--global_batch_size", type=_positive, help="Default: the file's.")
    parser.add_argument("--precision", choices=_PRECISIONS, default="float32", help="Of all contenders but bfloat16.")
    parser.add_argument("--variant", action="append", default=[], help="A line of gin of one contender; repeatable.")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="Some of them, lean among them.")
    parser.add_argument("--output", help="FILE.md or FILE.json.")
    return parser


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def read(arguments: argparse.Namespace, folder: str) -> dict[str, Any]:
    """Return what the contenders are told; raises UserError for what none of them can do."""
    from pipeline import configs

    contenders = arguments.contenders.split(",")
    if "lean" not in contenders or set(contenders) - set(CONTENDERS):
        raise UserError(
            f"`--contenders` are some of {', '.join(CONTENDERS)}, lean among them. Received {arguments.contenders!r}."
        )
    params = [*arguments.gin_param, "strategy.select.name = 'one_device'"]
    if arguments.global_batch_size:
        params.append(f"GLOBAL_BATCH_SIZE = {arguments.global_batch_size}")
    config = configs.parse([arguments.gin_file], params)
    is_gan = not any(setting.part.startswith("vae.") for setting in config.settings())
    size = next(s.value for s in config.settings() if s.name == "GLOBAL_BATCH_SIZE" and not s.part)
    return {
        "files": [arguments.gin_file],
        "params": params,
        "precision": arguments.precision,
        "batch": int(size),
        "steps": arguments.steps,
        "folder": folder,
        "contenders": [n for n in contenders if is_gan or n != "host-fed"] + ["variant"] * bool(arguments.variant),
        "variant": arguments.variant,
    }


def _measure(task: dict[str, Any], count: int) -> tuple[dict[str, float], list[Round]]:
    """Run all contenders `count` times."""
    with contextlib.closing(Contender("limits", told("limits", task))) as process:
        limits = process.facts
    rounds = []
    for number in range(count):
        print(f"Round {number + 1} of {count}", file=sys.stderr, flush=True)
        rounds.append(_round(task))
    return limits, rounds


def _round(task: dict[str, Any]) -> Round:
    """Start every contender, let them take turns, and return what each measured."""
    with contextlib.ExitStack() as stack:
        contenders = {
            name: stack.enter_context(contextlib.closing(Contender(name, told(name, task))))
            for name in task["contenders"]
        }
        seconds = dict.fromkeys(contenders, 0.0)
        for number, steps in enumerate(turns(task["steps"])):
            for name in list(contenders)[:: -1 if number % 2 else 1]:
                seconds[name] += contenders[name].seconds(steps)
        images = task["steps"] * task["batch"]
        return {
            name: {**one.facts, **one.end(), "images_per_second": images / seconds[name]}
            for name, one in contenders.items()
        }


def turns(steps: int) -> list[int]:
    """Share steps out over turns that differ by at most one step."""
    count = min(steps, _TURNS)
    return [steps // count + (number < steps % count) for number in range(count)]


def told(name: str, task: dict[str, Any]) -> dict[str, Any]:
    """Return what one contender is told."""
    precision = "mixed_bfloat16" if name == "bfloat16" else task["precision"]
    lines = [f"experiment.Experiment.precision = {precision!r}", *(task["variant"] if name == "variant" else ())]
    return {**task, "params": [*task["params"], *lines]}


def report(task: dict[str, Any], limits: dict[str, float], rounds: Sequence[Round]) -> str:
    """Return the table, in Markdown."""
    lines = [
        f"# {task['files'][0]}, batch {task['batch']}, {task['precision']}",
        "",
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {len(rounds)} rounds of "
        f"{task['steps']} steps. A step takes {limits['flops'] / 1e9:.1f} GFLOP (taps on padding counted); a matrix "
        f"product reaches {limits['peak_flops'] / 1e9:.0f} GFLOP/s in {task['precision']}, "
        f"{limits['bfloat16_peak_flops'] / 1e9:.0f} in bfloat16. Medians; ratios to lean (least..most).",
        *(f"\nThe variant: `{line}`" for line in task["variant"]),
        "",
        "| contender | images/s | ratio | first step s | ratio | start to first step s | peak MiB | ratio | of peak |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in task["contenders"]:
        speed, first, start, memory = (
            [one[name][what] for one in rounds]
            for what in ("images_per_second", "first_step", "start_to_first_step", "peak_mib")
        )
        peak = limits["bfloat16_peak_flops" if name == "bfloat16" else "peak_flops"]
        share = limits["flops"] * statistics.median(speed) / task["batch"] / peak
        cells = [
            name,
            f"{statistics.median(speed):,.0f}",
            _ratio(rounds, name, "images_per_second"),
            f"{statistics.median(first):.2f}",
            _ratio(rounds, name, "first_step"),
            f"{statistics.median(start):.2f}",
            f"{statistics.median(memory):.0f}",
            _ratio(rounds, name, "peak_mib"),
            f"{share:.0%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if {"gantry", "host-fed"} <= set(task["contenders"]):
        ratio = _ratio(rounds, "gantry", "images_per_second", to="host-fed")
        lines += ["", f"Images a second of gantry to host-fed: {ratio}."]
    return "\n".join(lines) + "\n"


def _ratio(rounds: Sequence[Round], name: str, what: str, to: str = "lean") -> str:
    ratios = [one[name][what] / one[to][what] for one in rounds]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})"


if __name__ == "__main__":
    sys.exit(main())
