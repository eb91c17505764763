"""What --help prints."""

import textwrap
from collections.abc import Mapping

from absl import flags

_WIDTH = 100
_COLUMN = 30

# {group: {flag: what follows its name}}; a flag that is missing here is shown under "Other".
_GROUPS: Mapping[str, Mapping[str, str]] = {
    "What to run": {"gin_file": "=NAME", "workdir": "=DIR", "mode": "", "strategy": "=NAME", "dry_run": ""},
    "Overriding": {"gin_param": "='NAME = value'"},
    "Using a run": {
        **{"checkpoint": "=STEP", "seed": "=N", "num_images": "=N", "labels": "=CLASSES", "truncation": "=X"},
        "output": "=PLACE",
        "formats": "=NAMES",
    },
    "Interpolate, traverse, neighbours, film": {
        **{"rows": "=N", "columns": "=N", "path": "", "class_change": "", "around": "", "frame_milliseconds": "=N"},
    },
    "Evaluating a run": {"watch": "", "best_by": "=METRIC"},
    "Safety": {"require_accelerator": "", "overwrite": "", "force_resume": ""},
    "Help": {"help": ""},
}

_HEAD = """\
Train what a gin file names, or use a run that was trained.

  python -m pipeline.main --gin_file=quickstart.gin --gin_param='TRAIN_STEPS = 500' --workdir=runs/short
  python -m pipeline.main --mode=sample --workdir=runs/short --labels=7 --output=sevens.png
  python -m pipeline.main --mode=reconstruct --workdir=runs/vae_conv --output=pairs.png
  python -m pipeline.main --mode=evaluate --workdir=runs/short
  python -m pipeline.main --mode=report --workdir=runs/short --workdir=runs/quickstart
"""

_NOTES = {
    "Overriding": """\
Put the whole line in single quotes, or the shell takes its blanks, parentheses, * and $ for its
own; text inside it stands in double quotes. @ refers to a part, under the imports of the files
given. Each of these is one argument:
  --gin_param='GLOBAL_BATCH_SIZE = 128'      --gin_param='gan.alternating.first = "generator"'
  --gin_param='gan.alternating.loss = @adversarial.hinge'
`python -m tools.list_components` shows what can be bound where."""
}

_TAIL = """\
Exit status: 0 done; 2 a mistake in what was asked; 1 a failure of this program; 130 and 143 stopped
by SIGINT or SIGTERM, after saving. Completion in bash and zsh: eval "$(python -m tools.completion)"
"""


def help_text(values: flags.FlagValues, names: list[str], shipped: list[str]) -> str:
    """Return the help, flags by group.

    Args:
      values: where the flags are defined.
      names: of the flags to show.
      shipped: names of the shipped gin files that can be run.
    """
    grouped = [name for group in _GROUPS.values() for name in group]
    rest = {name: "" for name in names if name not in grouped}
    blocks = [_HEAD]
    for title, group in {**_GROUPS, **({"Other": rest} if rest else {})}.items():
        lines = [_line(values[name], group[name]) for name in group if name in names]
        blocks.append("\n".join([f"{title}:", *lines, *_note(title, shipped)]) + "\n")
    return "\n".join([*blocks, _TAIL.strip()])


def _line(flag: flags.Flag, value: str) -> str:
    choices = getattr(flag.parser, "enum_values", None)
    shown = f"  --{flag.name}{'=' + '|'.join(choices) if choices else value}"
    default = "" if flag.default in (None, [], False) else f" [{flag.default}]"
    # absl adds the choices before a text, and after it that a flag can be repeated.
    text = (flag.help or "").partition(";\n")[0].removeprefix(f"<{'|'.join(choices or ())}>: ")
    wrapped = textwrap.wrap(text + default, _WIDTH - _COLUMN)
    first = f"{shown:<{_COLUMN}}{wrapped[0]}" if len(shown) < _COLUMN else f"{shown}\n{' ' * _COLUMN}{wrapped[0]}"
    return "\n".join([first, *(" " * _COLUMN + line for line in wrapped[1:])])


def _note(title: str, shipped: list[str]) -> list[str]:
    if title == "What to run":
        text = f"Shipped files: {', '.join(shipped)}"
        return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    return textwrap.indent(_NOTES[title], "  ").splitlines() if title in _NOTES else []
