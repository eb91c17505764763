"""Collects the text of a configuration: the given files, what they include, and the command line."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline.configs import locate, statements, syntax
from pipeline.configs.faults import Fault, Place
from pipeline.configs.statements import Binding, Import, Include, Reference, Source, Statement, leaves

COMMAND_LINE = "--gin_param"


@dataclass
class Text:
    """Everything that the user wrote, in the order in which it takes effect."""

    sources: list[Source] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _included_by: dict[str, str] = field(default_factory=dict)  # {file: the file that includes it}
    _imports: dict[str, list[Import]] = field(default_factory=dict)

    def imports_of(self, file: str) -> list[Import]:
        """Return the imports that statements of a file see: its own, and on the command line those of all files."""
        if file not in self._imports:
            own = [found for source in self.sources if source.file == file for found in source.imports]
            if file == COMMAND_LINE:
                named = {found.bound_name for found in own}
                others = [found for source in self.sources if source.path for found in source.imports]
                own += [found for found in others if found.bound_name not in named]
            self._imports[file] = own
        return self._imports[file]

    def includes(self, outer: str, inner: str) -> bool:
        """Return whether a file includes another, directly or not."""
        above = self._included_by.get(inner)
        return above is not None and (above == outer or self.includes(outer, above))

    def without(self, faults: Iterable[Fault]) -> "Text":
        """Return what is left without the statements that have a fault, and those whose names it does not import."""
        faulty = {(fault.place.file, fault.place.line) for fault in faults}

        def is_sound(statement: Statement) -> bool:
            return (statement.place.file, statement.place.line) not in faulty

        rest = Text(_included_by=self._included_by)
        rest.sources = [replace(one, statements=[*filter(is_sound, one.statements)], faults=[]) for one in self.sources]
        rest.bindings = [one for one in self.bindings if is_sound(one) and rest._knows(one)]
        return rest

    def _knows(self, binding: Binding) -> bool:
        named = [leaf.selector for leaf in leaves(binding.value) if isinstance(leaf, Reference)]
        named += [] if binding.is_macro else [binding.selector]
        return all(self.canonical(selector, binding.place.file) for selector in named)

    def canonical(self, selector: str, file: str) -> str | None:
        """Return the dotted path of a selector from the top module; None where no import of the file provides it."""
        root = selector.partition(".")[0]
        for found in self.imports_of(file):
            if found.bound_name == root:
                return found.canonical(selector)
        return None


def collect(gin_files: Iterable[str], gin_params: Sequence[str]) -> Text:
    """Read the given files with their includes, then the parameters of the command line.

    Args:
      gin_files: names, as `locate.find` takes them.
      gin_params: gin text, as the command line gives it; lasts over every file.

    Returns:
      What was read; faults are in it, not raised.
    """
    text = Text()
    for name in gin_files:
        tried = locate.candidates(name, [Path()])
        _read_first(text, tried, locate.miss("--gin_file", name, tried), Place(name, 0), None)
    line = 0
    for param in gin_params:
        source = statements.read("\n" * line + param, COMMAND_LINE)  # no two parameters have one place
        line += param.count("\n") + 1
        if not source.statements and not source.faults:
            message = f"`--gin_param` is `NAME = value`. Received {param!r}."
            source.faults.append(Fault(Place(COMMAND_LINE, 0), message, "Write a binding."))
        _take(text, source)
    text.faults += [fault for source in text.sources for fault in source.faults]
    return text


def _read_first(text: Text, tried: Sequence[Path], miss: str, named_at: Place, including: str | None) -> None:
    """Read the first of the tried paths that is a file; a file that was read already is not read again."""
    path = next((path for path in tried if path.is_file()), None)
    if path is None:
        text.faults.append(Fault(named_at if named_at.line else Place("command line", 0), miss))
        return
    shown = _shown(path)
    if including is not None:
        if shown == including or text.includes(shown, including):
            text.faults.append(Fault(named_at, f"A file does not include itself. Received a circle: {shown}."))
            return
        text._included_by.setdefault(shown, including)
    if any(source.file == shown for source in text.sources):
        return
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        text.faults.append(syntax.not_text(shown, getattr(error, "reason", None) or str(error)))
        return
    if "\0" in content:
        text.faults.append(syntax.not_text(shown, "it holds null bytes"))
        return
    _take(text, statements.read(content, shown, path))


def _take(text: Text, source: Source) -> None:
    """Add a source and, where its include statements stand, the files that it includes."""
    text.sources.append(source)
    for statement in source.statements:
        if isinstance(statement, Binding):
            text.bindings.append(statement)
        elif isinstance(statement, Include):
            folders = [source.path.parent if source.path else Path(), Path()]
            tried = locate.candidates(statement.filename, folders)
            miss = locate.miss("include", statement.filename, tried)
            _read_first(text, tried, miss, statement.place, source.file)


def _shown(path: Path) -> str:
    """Return the path as messages show it: short where it is below the working directory."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
