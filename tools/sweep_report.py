"""The document that a sweep writes: a table of scores, what they mean, and how to repeat each row."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.sweep_cell import Outcome
from tools.sweep_table import Table, Variant, own_params


@dataclass(frozen=True)
class Real:
    """What real digits that the classifier has not seen score: the best that a row can be."""

    count: int
    learnt: int
    accuracy: float
    frechet: float
    block: int  # images that one distance takes, of a row's as of these


def document(table: Table, outcomes: Sequence[Outcome], real: Real, *, command: str, jobs: int) -> str:
    """Return the document in Markdown: nothing in it depends on when or in which folder it was made.

    Args:
      table: as it was read.
      outcomes: of every cell.
      real: what real digits score.
      command: that writes it again.
      jobs: how many cells ran at a time.
    """
    of_variant = {variant.name: [one for one in outcomes if one.cell.variant == variant] for variant in table.variant}
    rows = sorted(table.variant, key=lambda variant: _mean(_scores(of_variant[variant.name], "frechet"), math.inf))
    lines = [
        f"<!-- Written by `{command}`; do not edit. -->",
        "",
        f"# {table.sweep.title}",
        "",
        *([table.sweep.doc, ""] if table.sweep.doc else []),
        "| variant | class accuracy | Fréchet distance | variety | cells scored |",
        "|---|---|---|---|---|",
        _real_row(real),
        *(_row(variant, of_variant[variant.name]) for variant in rows),
        "",
        *_failures(outcomes),
        *_meaning(table, real),
        "",
        *_birth_certificate(table, outcomes, real, jobs),
        *_repeating(table, rows),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _real_row(real: Real) -> str:
    return f"| *real digits, held out* | {real.accuracy:.1%} | {real.frechet:.1f} | 1.00 | - |"


def _row(variant: Variant, outcomes: Sequence[Outcome]) -> str:
    scored = [one for one in outcomes if one.scores]
    named = f"**{variant.name}**: {variant.doc}"
    if not scored:
        return f"| {_cell(named)} | - | - | - | 0 of {len(outcomes)} |"
    accuracy = _spread(_scores(outcomes, "accuracy"), ".1%") if variant.conditional else "-"
    variety = _spread(_scores(outcomes, "variety"), ".2f") if variant.conditional else "-"
    frechet = _spread(_scores(outcomes, "frechet"), ".1f")
    return f"| {_cell(named)} | {accuracy} | {frechet} | {variety} | {len(scored)} of {len(outcomes)} |"


def _failures(outcomes: Sequence[Outcome]) -> Iterator[str]:
    failed = [one for one in outcomes if one.failure]
    if failed:
        yield "Failed:"
        yield ""
        yield from (f"- {one.cell.name}: failed: {_cell(one.failure)}" for one in failed)
        yield ""


def _meaning(table: Table, real: Real) -> Iterator[str]:
    seeds = len(table.sweep.seeds)
    yield f"A number is the mean over {seeds} seed{'s' * (seeds > 1)}, in parentheses the least and the greatest."
    yield "Rows stand in the order of their Fréchet distance; less is better."
    yield ""
    yield (
        "- **Class accuracy**: share of generated digits that an independent classifier reads as the digit asked for; "
        "`-` where a model draws no class on request."
    )
    yield (
        f"- **Fréchet distance**: squared, between Gaussians fitted to the classifier's 128 features of {real.block:,} "
        f"images (the mean over as many such blocks as there are) and of the {real.learnt:,} real digits that the "
        "classifier has learnt. Its unit is this classifier's own. The held-out digits are new to the classifier, "
        "which a model's digits need not be: one that repeats what it has learnt can go below them."
    )
    yield (
        "- **Variety**: mean distance of two digits of a class in features, as a share of the same for real digits, "
        "of the least varied class; well below 1 is a collapse."
    )


def _birth_certificate(table: Table, outcomes: Sequence[Outcome], real: Real, jobs: int) -> Iterator[str]:
    """Yield what the numbers depend on."""
    sweep = table.sweep
    about = [one.about for one in outcomes if one.about]
    yield "## How it was measured"
    yield ""
    yield f"- steps: {sweep.steps}; seeds: {', '.join(map(str, sweep.seeds))}; images scored per cell: {_images(table)}"
    yield f"- classifier: reads {real.accuracy:.2%} of {real.count:,} real digits that it has not seen rightly"
    for name in ("data", "hardware"):
        yield f"- {name}: {'; '.join(dict.fromkeys(one[name] for one in about)) or '-'}"
    yield f"- cells at a time: {jobs}"
    yield f"- versions: {_versions(about)}"
    yield ""


def _images(table: Table) -> str:
    return f"{table.sweep.num_images:,}, classes in turn"


def _versions(about: Sequence[Mapping[str, Any]]) -> str:
    """Return every package with its version, or versions, where cells differ."""
    found: dict[str, dict[str, None]] = {}
    for one in about:
        for package, version in one["versions"].items():
            found.setdefault(package, {})[version] = None
    return ", ".join(f"{package} {' and '.join(versions)}" for package, versions in found.items()) or "-"


def _repeating(table: Table, rows: Sequence[Variant]) -> Iterator[str]:
    """Yield what a reader needs to train each row alone."""
    yield "## To repeat a row"
    yield ""
    yield "Each with the first of the seeds; the lines of gin could as well stand in a file."
    for variant in rows:
        yield ""
        yield f"### {variant.name}"
        yield ""
        yield f"{variant.doc[0].upper()}{variant.doc[1:]}."
        yield ""
        yield "```"
        yield " \\\n    ".join(_command(table, variant))
        yield "```"


def _command(table: Table, variant: Variant) -> Iterator[str]:
    """Yield the words of a command line for the first seed."""
    yield f"python -m pipeline.main --gin_file={variant.gin_file} --workdir=runs/{variant.name}"
    for param in (*own_params(table.sweep, variant), f"SEED = {table.sweep.seeds[0]}"):
        yield f"--gin_param={_quoted(param)}"


def _quoted(param: str) -> str:
    """Return a word of a shell; gin's own quotes are single ones."""
    if not any(special in param for special in '"$`\\!'):
        return f'"{param}"'
    return "'" + param.replace("'", "'\"'\"'") + "'"


def _scores(outcomes: Sequence[Outcome], name: str) -> list[float]:
    found = (one.scores.get(name) for one in outcomes)
    return [value for value in found if value is not None and math.isfinite(value)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _spread(values: Sequence[float], form: str) -> str:
    if not values:
        return "-"
    mean = format(_mean(values, math.nan), form)
    return mean if len(values) == 1 else f"{mean} ({min(values):{form}} to {max(values):{form}})"


def _cell(text: str) -> str:
    """Return text that does not end a cell of a table, or a line."""
    return " ".join(text.replace("|", "\\|").split())
