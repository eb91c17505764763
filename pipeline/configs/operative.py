"""Writes a configuration as one runnable gin file."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.configs import statements
from pipeline.configs.checks import REGISTRATION, uses, within
from pipeline.configs.parts import Parts
from pipeline.configs.signatures import NOTHING, signature_of
from pipeline.configs.statements import Binding, Reference, written
from pipeline.configs.usage import Key
from pipeline.configs.wiring import reachable, root_of

DEFAULT = "# "  # a default is a comment: the line without it binds the same value
_WIDTH = 110


@dataclass(frozen=True)
class Row:
    """One value of a configuration, written under one set of imports."""

    part: str  # scope/module.function; empty: a macro
    name: str  # the parameter or macro
    value: Any
    binding: Binding | None  # where it comes from; None: it is a default

    @property
    def line(self) -> str:
        """What binds it, over several lines where one would be too long."""
        return _line(f"{self.part}.{self.name}" if self.part else self.name, self.value)


def write(parts: Parts, idle: set[Key]) -> str:
    """Return a runnable text without includes: imports, macros, bindings, and defaults as comments.

    Args:
      parts: the configuration.
      idle: keys of bindings to leave out.

    Returns:
      Text that reads back to the same experiment and the same text.
    """
    imports, found = rows(parts, idle)
    lines = [REGISTRATION, *imports]
    for _, group in itertools.groupby(found, key=lambda row: row.part):
        lines += ["", *(row.line if row.binding else DEFAULT + row.line for row in group)]
    return "\n".join(lines) + "\n"


def rows(parts: Parts, idle: set[Key]) -> tuple[list[str], list[Row]]:
    """Return the import lines and every value: macros first, then the experiment, then part by part."""
    found, macros = reachable(parts)
    kept = {key: one for key, one in parts.effective.items() if key not in idle and _is_kept(key, found, macros)}
    spelling = _Spelling(parts, list(kept.values()))
    table = [Row("", one.selector, spelling.respell(one), one) for _, one in sorted(kept.items()) if one.is_macro]
    root = root_of(parts)
    called = {(scope, name) for scope, name in found if name in parts.targets}
    called |= {(scope, name) for scope, name, parameter in kept if parameter}
    for scope, name in sorted(called, key=lambda pair: (pair[1] != root, pair[1], pair[0])):
        table += _rows_of(parts, scope, name, kept, spelling)
    return spelling.import_lines(), table


def _is_kept(key: Key, found: set[tuple[str, str]], macros: set[str]) -> bool:
    scope, name, parameter = key
    if not parameter:
        return name in macros
    return any(other == name and (within(inner, scope) or within(scope, inner)) for inner, other in found)


def _rows_of(parts: Parts, scope: str, name: str, kept: dict[Key, Binding], spelling: "_Spelling") -> Iterator[Row]:
    """Yield the values of one part in one scope, in the order of its parameters."""
    signature = signature_of(parts.targets[name])
    parameters = dict(signature.parameters) if signature else {}
    shown = spelling.part(name)
    if shown is None:
        return
    part = f"{scope}/{shown}" if scope else shown
    others = sorted(parameter for one, bound, parameter in kept if (one, bound) == (scope, name))
    for parameter in [*parameters, *(other for other in others if other not in parameters)]:
        binding = kept.get((scope, name, parameter))
        if binding:
            yield Row(part, parameter, spelling.respell(binding), binding)
            continue
        default = parameters[parameter].default
        is_bound = any(bound == name and one == parameter and within(scope, outer) for outer, bound, one in kept)
        if not is_bound and default is not NOTHING and _is_plain(default):
            yield Row(part, parameter, default, None)


def _is_plain(value: Any) -> bool:
    """Return whether gin text can say a value; not-a-number, which no literal says, is unequal to itself."""
    kinds = (bool, int, float, str, bytes, type(None))
    is_nest = type(value) in (*kinds, list, tuple, dict)
    return is_nest and all(type(leaf) in kinds and leaf == leaf for leaf in statements.leaves(value))


def _line(name: str, value: Any) -> str:
    line = f"{name} = {written(value)}"
    if len(line) <= _WIDTH or not isinstance(value, (list, tuple, dict)) or not value:
        return line
    empty = written(type(value)())
    pairs = value.items() if isinstance(value, dict) else ()
    items = [f"{written(key)}: {written(item)}" for key, item in pairs] or [written(item) for item in value]
    return "\n".join([f"{name} = {empty[0]}", *(f"    {item}," for item in items), empty[1]])


class _Spelling:
    """Names every part under one set of imports, where each file had its own."""

    def __init__(self, parts: Parts, kept: list[Binding]) -> None:
        self._parts = parts
        self._shown: dict[str, str] = {}
        self._imports: dict[str, str] = {}  # {bound name: module, or root of plain imports}
        self._lines: set[str] = set()
        for binding in sorted(kept, key=lambda one: one.name):
            for selector in uses(binding):
                self._learn(selector, binding.place.file)

    def _learn(self, selector: str, file: str) -> None:
        name = self._parts.name_of(selector, file)
        if name in self._shown:
            return
        found = next(one for one in self._parts.text.imports_of(file) if one.bound_name == selector.partition(".")[0])
        bound = found.bound_name
        count = 1
        while self._imports.setdefault(bound, found.canonical(found.bound_name)) != found.canonical(found.bound_name):
            count += 1
            bound = f"{found.bound_name}{count}"
        if bound == found.bound_name:
            same = [one for one in self._parts.text.imports_of(file) if one.bound_name == bound]
            self._lines.update(one.statement.format() for one in same)
        else:
            is_plain = not found.statement.is_from and not found.statement.alias
            module = found.bound_name if is_plain else found.module
            self._lines.add(found.statement._replace(module=module, alias=bound).format())
        self._shown[name] = ".".join([bound, *selector.split(".")[1:]])

    def part(self, name: str) -> str | None:
        """Return how a part is written; None where nothing that is kept names it."""
        return self._shown.get(name)

    def import_lines(self) -> list[str]:
        """Return the import statements needed, sorted."""
        return sorted(self._lines)

    def respell(self, binding: Binding) -> Any:
        """Return a value with its references under these imports."""
        return self._respell(binding.value, binding.place.file)

    def _respell(self, value: Any, file: str) -> Any:
        if isinstance(value, Reference):
            shown = self._shown[self._parts.name_of(value.selector, file)]
            return Reference(value.scope, shown, value.evaluate)
        if isinstance(value, dict):
            return {self._respell(key, file): self._respell(item, file) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._respell(item, file) for item in value)
        return value
