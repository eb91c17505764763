"""The table of a sweep: a TOML file of variants, checked whole before anything is trained."""

import hashlib
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pydantic
from annotated_types import Ge, MinLen

from components.errors import UserError
from pipeline import configs

_STRICT = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True)
_FOLDER = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"  # a variant's name is a folder's
# What pydantic says of a key, in our words: {type of its error: (rule, remedy)}.
_RULES = {
    "missing": ("must be set", "Set it"),
    "extra_forbidden": ("is no key of it", "Remove it, or mend its spelling"),
    "string_pattern_mismatch": ("must be letters, digits, `_`, `.` and `-`", "Rename it: it is a folder's name, too"),
}

Text = Annotated[str, MinLen(1)]


class Sweep(pydantic.BaseModel):
    """[sweep]: what all variants share.

    Attributes:
      title: heads the written document.
      doc: what the table is to show; a paragraph below the title.
      steps: TRAIN_STEPS of every cell.
      seeds: SEED of the cells of each variant.
      num_images: that are scored of each cell.
      params: lines of gin for every variant.
    """

    model_config = _STRICT
    title: Text
    doc: str = ""
    steps: Annotated[int, Ge(1)]
    seeds: Annotated[list[Annotated[int, Ge(0)]], MinLen(1)]
    num_images: Annotated[int, Ge(20)] = 5000
    params: list[Text] = []


class Variant(pydantic.BaseModel):
    """[[variant]]: one row.

    Attributes:
      name: of the row, and of its folder.
      doc: says in a line what it is.
      gin_file: a path, or the name of a shipped file.
      params: lines of gin that override the file.
      conditional: whether it draws the class it is asked for; if not, only the Fréchet distance is told.
    """

    model_config = _STRICT
    name: Annotated[str, pydantic.Field(pattern=_FOLDER)]
    doc: Text
    gin_file: Text
    params: list[Text] = []
    conditional: bool = True


class Table(pydantic.BaseModel):
    """The whole file."""

    model_config = _STRICT
    sweep: Sweep
    variant: Annotated[list[Variant], MinLen(1)]


@dataclass(frozen=True)
class Cell:
    """One training: a variant and a seed."""

    variant: Variant
    seed: int
    steps: int
    params: tuple[str, ...]  # all lines of gin that go with the file
    fingerprint: str  # of the configuration, every default included

    @property
    def name(self) -> str:
        """As messages show it."""
        return f"{self.variant.name}, seed {self.seed}"

    @property
    def folder(self) -> Path:
        """Where it lies, below the sweep's folder."""
        return Path(self.variant.name, f"seed-{self.seed}")


def read(path: str | Path) -> Table:
    """Return the table in a file.

    Raises:
      UserError: it cannot be read, or breaks a rule; the message tells every fault.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(
            f"TABLE must be a file of TOML. Received {path}: {getattr(error, 'strerror', None) or error}. "
            "docs/zoo/digits.toml is one."
        ) from error
    try:
        table = Table.model_validate(content)
    except pydantic.ValidationError as error:
        faults = [_told(fault, content) for fault in error.errors(include_url=False)]
        raise UserError(f"{path} breaks the rules of a table:\n  " + "\n  ".join(faults)) from error
    faults = list(_contradictions(table))
    if faults:
        raise UserError(f"{path} breaks the rules of a table:\n  " + "\n  ".join(faults))
    return table


def cells(table: Table) -> list[Cell]:
    """Return the cells in the table's order, after every one's configuration was found good.

    Raises:
      UserError: a configuration is not; the message tells the faults of every such variant.
    """
    found, faults = [], []
    for variant in table.variant:
        try:
            found += [_cell(table.sweep, variant, seed) for seed in table.sweep.seeds]
        except UserError as error:
            faults.append(f"Variant `{variant.name}`: {error}")
    if faults:
        raise UserError("\n".join([*faults, "Nothing was trained."]))
    return found


def own_params(sweep: Sweep, variant: Variant) -> list[str]:
    """Return the lines of gin of a variant, those of the table first and SEED left open."""
    return [*sweep.params, *variant.params, f"TRAIN_STEPS = {sweep.steps}"]


def _cell(sweep: Sweep, variant: Variant, seed: int) -> Cell:
    params = (*own_params(sweep, variant), f"SEED = {seed}")
    config = configs.parse([variant.gin_file], params)
    config.experiment()  # for its checks between parts; it opens no data and builds no network
    return Cell(variant, seed, sweep.steps, params, hashlib.sha256(config.operative_text().encode()).hexdigest()[:16])


def _contradictions(table: Table) -> list[str]:
    """Return what no single key is to blame for."""
    faults = []
    names, seeds = Counter(one.name for one in table.variant), Counter(table.sweep.seeds)
    for name in (name for name, count in names.items() if count > 1):
        faults.append(f"Each variant has a name of its own. Received `{name}` {names[name]} times. Rename all but one.")
    for seed in (seed for seed, count in seeds.items() if count > 1):
        faults.append(f"Each of `sweep.seeds` stands once. Received {seed} {seeds[seed]} times. Remove all but one.")
    return faults


def _told(fault: Any, content: dict[str, Any]) -> str:
    """Return rule, received value and remedy of one fault that pydantic found."""
    where, kind, received = list(fault["loc"]), fault["type"], fault["input"]
    rule, remedy = _RULES.get(kind, (fault["msg"][0].lower() + fault["msg"][1:], "Mend it"))
    key = ".".join(str(part) for part in where if isinstance(part, str))
    owner = _variant_at(where, content)
    if kind == "missing":
        shown = "nothing"
    else:
        shown = repr(received) if len(repr(received)) <= 60 else repr(received)[:57] + "..."
    if kind == "extra_forbidden":
        remedy += f"; known are {', '.join(_keys(where))}"
    return f"{owner}`{key}` {rule}. Received {shown}. {remedy}."


def _keys(where: Sequence[Any]) -> list[str]:
    models: dict[str, type[pydantic.BaseModel]] = {"sweep": Sweep, "variant": Variant}
    return list((models[where[0]] if len(where) > 1 else Table).model_fields)


def _variant_at(where: Sequence[Any], content: dict[str, Any]) -> str:
    """Return which variant a fault is in, by its name if it has one, else by its place."""
    if len(where) < 2 or where[0] != "variant" or not isinstance(where[1], int):
        return ""
    row = content["variant"][where[1]]
    name = row.get("name") if isinstance(row, dict) else None
    return f"Variant {f'`{name}`' if isinstance(name, str) else f'number {where[1] + 1}'}: "
