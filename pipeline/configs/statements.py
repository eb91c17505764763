"""Reads gin text into statements with their places, by gin's own parser, importing nothing."""

import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gin import config_parser

from pipeline.configs import syntax
from pipeline.configs.faults import Fault, Place


@dataclass(frozen=True)
class Reference:
    """@scope/selector, or its result where `evaluate`."""

    scope: str
    selector: str
    evaluate: bool

    def __str__(self) -> str:
        """Return it as gin text."""
        return f"@{self.scope + '/' if self.scope else ''}{self.selector}{'()' if self.evaluate else ''}"


@dataclass(frozen=True)
class Macro:
    """%name."""

    name: str

    def __str__(self) -> str:
        """Return it as gin text."""
        return f"%{self.name}"


@dataclass(frozen=True)
class Binding:
    """scope/selector.parameter = value; a macro's definition has no parameter and its name as the selector."""

    scope: str
    selector: str
    parameter: str
    value: Any
    place: Place

    @property
    def is_macro(self) -> bool:
        """Whether this defines a macro."""
        return not self.parameter

    @property
    def name(self) -> str:
        """What stands left of the equals sign."""
        scoped = f"{self.scope}/{self.selector}" if self.scope else self.selector
        return f"{scoped}.{self.parameter}" if self.parameter else scoped


@dataclass(frozen=True)
class Import:
    """One import statement."""

    statement: config_parser.ImportStatement
    place: Place

    @property
    def module(self) -> str:
        """The module that is imported."""
        return self.statement.module

    @property
    def bound_name(self) -> str:
        """The name that it gives to the file."""
        return self.statement.bound_name()

    def canonical(self, selector: str) -> str:
        """Return the dotted path, from the top module, of a selector that begins with the bound name."""
        if self.statement.is_from or self.statement.alias:
            return ".".join([self.module, *selector.split(".")[1:]])
        return selector


@dataclass(frozen=True)
class Include:
    """include 'filename'."""

    filename: str
    place: Place


Statement = Binding | Import | Include


@dataclass
class Source:
    """One gin file, or the text of one --gin_param."""

    file: str  # as shown to the user
    path: Path | None = None  # None: the command line
    statements: list[Statement] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def imports(self) -> list[Import]:
        """Its import statements, but for those that switch on a feature of gin."""
        found = [statement for statement in self.statements if isinstance(statement, Import)]
        return [statement for statement in found if not statement.module.startswith("__gin__.")]

    @property
    def bindings(self) -> list[Binding]:
        """Its bindings and macros."""
        return [statement for statement in self.statements if isinstance(statement, Binding)]


def leaves(value: Any) -> Iterator[Any]:
    """Yield every value inside a nest of lists, tuples and dicts, keys included."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(key)
            yield from leaves(item)
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def written(value: Any) -> str:
    """Return a value as gin text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(written, value)) + ("," if isinstance(value, tuple) and len(value) == 1 else "")
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, (Macro, Reference)):
        return str(value)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "1e999" if value > 0 else "-1e999"  # gin reads literals only, and Python reads this as infinity
    return repr(value)


class _Recorder(config_parser.ParserDelegate):
    """Keeps references and macros as they are written, where gin's own delegate would look them up."""

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> Reference:
        scope, _, selector = scoped_configurable_name.rpartition("/")
        return Reference(scope, selector, evaluate)

    def macro(self, macro_name: str) -> Macro:
        return Macro(macro_name)


class _Parser(config_parser.ConfigParser):
    """gin's parser, less two of its silences: a repeated key of a dict, and a minus before % or @."""

    def __init__(self, text: str) -> None:
        self._keys: list[list[Any]] = []
        super().__init__(text, _Recorder())

    def _maybe_parse_container(self) -> tuple[bool, Any]:
        self._keys.append([])
        try:
            return super()._maybe_parse_container()
        finally:
            self._keys.pop()

    def _parse_dict_item(self) -> tuple[Any, Any]:
        start = self._current_location()
        key, value = super()._parse_dict_item()
        if key in self._keys[-1]:
            self._raise_syntax_error(f"{syntax.REPEATED_KEY} {key!r}", start)
        self._keys[-1].append(key)
        return key, value

    def _maybe_parse_basic_type(self) -> tuple[bool, Any]:
        is_minus = self.current_token.string == "-"
        found, value = super()._maybe_parse_basic_type()
        if is_minus and not found:
            self._raise_syntax_error(syntax.ARITHMETIC)
        return found, value


def read(text: str, file: str, path: Path | None = None) -> Source:
    """Read gin text.

    Args:
      text: the whole text.
      file: the name to show in messages.
      path: where the text was found.

    Returns:
      Its statements, and a fault for each statement that cannot be read; the others are read nonetheless.
    """
    source = Source(file, path)
    try:
        source.statements = list(_parse(text, 0, text.split("\n"), file))
    except _UNREADABLE:
        _read_by_chunks(text, source)
    return source


# Whatever gin's parser and Python's tokenizer raise on text that is no gin; they know no common class.
_UNREADABLE = (
    *(SyntaxError, tokenize.TokenError, ValueError, TypeError, AttributeError, LookupError),
    *(RecursionError, StopIteration, AssertionError, MemoryError),
)


def _parse(text: str, offset: int, lines: list[str], file: str) -> Iterator[Statement]:
    for statement in _Parser(text):
        line = statement.location.line_num + offset
        place = Place(file, line, lines[line - 1] if line <= len(lines) else "")
        if isinstance(statement, config_parser.BindingStatement):
            scope, selector, parameter, value, _ = statement
            yield Binding(scope, selector, parameter, value, place)
        elif isinstance(statement, config_parser.ImportStatement):
            yield Import(statement, place)
        elif isinstance(statement, config_parser.IncludeStatement):
            yield Include(statement.filename, place)


def _read_by_chunks(text: str, source: Source) -> None:
    """Read one statement at a time, so that one that cannot be read does not hide the faults of the others."""
    lines = text.split("\n")  # as gin counts them: str.splitlines knows other ends of lines
    for first, last in _chunks(lines):
        chunk = "\n".join(lines[first:last]) + "\n"
        try:
            source.statements += _parse(chunk, first, lines, source.file)
        except _UNREADABLE as error:
            line = first + syntax.line_of(error, last - first)
            is_in_block = line > first + 1 and _BLOCK.match(lines[first])
            message, remedy = syntax.explain(error, lines[line - 1] if is_in_block else chunk)
            source.faults.append(Fault(Place(source.file, line, lines[line - 1]), message, remedy))
    if source.faults and not any(isinstance(statement, (Binding, Include)) for statement in source.statements):
        first_fault = source.faults[0]
        if len(source.faults) > 1 or source.path is not None and source.path.suffix != ".gin":
            source.faults = [syntax.no_gin_file(first_fault, source.file)]


_BLOCK = re.compile(r"[\w./]+\s*:\s*(#.*)?$")
_CERTAIN_START = re.compile(r"(import|from|include)\s|[A-Za-z_][\w./]*\s*(=|:\s*(#.*)?$)")
_QUOTED = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|#.*")


def _chunks(lines: list[str]) -> list[tuple[int, int]]:
    """Return (first, last + 1) of each statement: it begins at the margin, unless a bracket is open."""
    starts: list[int] = []
    depth = 0
    continued = False
    for number, line in enumerate(lines):
        at_margin = bool(line.strip()) and line[0] not in " \t#\f"
        if at_margin and not continued and (depth <= 0 or _CERTAIN_START.match(line)):
            starts.append(number)
            depth = 0
        bare = _QUOTED.sub("", line)
        depth += sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))
        continued = bare.endswith("\\")
    if not starts:
        starts = [number for number, line in enumerate(lines) if line.strip() and not line.strip().startswith("#")][:1]
    return list(zip(starts, [*starts[1:], len(lines)], strict=True))
