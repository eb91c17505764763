"""Imports what a configuration names, and checks every binding against the part that it binds."""

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pipeline.configs.checks import is_required, key_of, uses, within
from pipeline.configs.faults import Fault, Place, did_you_mean, nearest
from pipeline.configs.signatures import Signature, readable, signature_of
from pipeline.configs.sources import Text
from pipeline.configs.statements import Binding, Import, Macro, Reference, leaves, written
from pipeline.configs.types_check import Checker


@dataclass
class Parts:
    """What the text names, as Python objects, and the bindings that take effect.

    Attributes:
      text: what the user wrote.
      targets: {dotted path: function or class}.
      names: {function or class: the dotted path first used}; one part may be reached by several paths.
      effective: {(scope, dotted path first used, parameter): the binding that comes last}.
      overridden: the bindings that another one replaces, with the one that does.
      macros: {name: its definition}.
    """

    text: Text
    targets: dict[str, Callable[..., Any]] = field(default_factory=dict)
    names: dict[Any, str] = field(default_factory=dict)
    effective: dict[tuple[str, str, str], Binding] = field(default_factory=dict)
    overridden: list[tuple[Binding, Binding]] = field(default_factory=list)
    macros: dict[str, Binding] = field(default_factory=dict)

    def name_of(self, selector: str, file: str) -> str:
        """Return the dotted path by which a part is known, from how a file writes it."""
        canonical = self.text.canonical(selector, file) or selector
        target = self.targets.get(canonical)
        return self.names.get(target, canonical) if target is not None else canonical

    def references(self, binding: Binding) -> Iterator[tuple[Reference, str]]:
        """Yield each reference in a value, macros in it not followed, with the name of the part."""
        for leaf in leaves(binding.value):
            if isinstance(leaf, Reference):
                yield leaf, self.name_of(leaf.selector, binding.place.file)

    def bindings_of(self, name: str) -> list[Binding]:
        """Return the bindings in effect of one part, in any scope."""
        return [binding for (_, bound, parameter), binding in self.effective.items() if bound == name and parameter]

    def in_scope(self, name: str, scope: str) -> dict[str, Binding]:
        """Return {parameter: binding} that gin gives to a call of a part in a scope; inner scopes win."""
        found = [binding for binding in self.bindings_of(name) if within(scope, binding.scope)]
        return {one.parameter: one for one in sorted(found, key=lambda one: len(one.scope))}


@dataclass
class Findings:
    """Faults of names and of values."""

    names: list[Fault]
    values: list[Fault]


def resolve(text: Text) -> tuple[Parts, Findings]:
    """Import every module and find every part that the text names.

    Args:
      text: passed the checks that need no import.

    Returns:
      The parts, and the faults of what is named and of the values that are bound.
    """
    parts = Parts(text)
    names = _import_modules(text)
    for binding in text.bindings:
        for selector in dict.fromkeys(uses(binding)):
            if not names or _is_imported(text, selector, binding):
                names += _find(parts, selector, binding)
    names += _settle(parts)
    values = []
    for binding in text.bindings:
        names += _check_parameter(parts, binding)
        values += _check_value(parts, binding)
    return parts, Findings(names, values)


def _is_imported(text: Text, selector: str, binding: Binding) -> bool:
    canonical = text.canonical(selector, binding.place.file)
    return canonical is not None and canonical.partition(".")[0] in sys.modules


def _import_modules(text: Text) -> list[Fault]:
    faults = []
    for source in text.sources:
        for found in source.imports:
            try:
                importlib.import_module(found.module)
            except ImportError as error:
                faults.append(_explain_import_error(found, error))
            except (Exception, SystemExit) as error:  # whatever a module of the user's does when it is run
                faults.append(_explain_failure(found, error))
    return faults


def _explain_import_error(found: Import, error: ImportError) -> Fault:
    if error.name and (found.module == error.name or found.module.startswith(error.name + ".")):
        message = f"An import names a module that exists. Received `{found.module}`; there is no `{error.name}`."
        return Fault(found.place, message, "Check the name; a class or function is named by module.name, not imported.")
    message = f"An import names a module that can be imported. Received `{found.module}`, which fails: {error}."
    hint = f"Install what it needs: {error.name}" if isinstance(error, ModuleNotFoundError) else ""
    return Fault(found.place, message, hint)


def _explain_failure(found: Import, error: BaseException) -> Fault:
    """Tell where a module fails that is there; the last frame of Python's own import machinery tells nothing."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "importlib" not in one.filename]
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if len(frames) > 1 else ""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}"
    message = f"An import names a module that can be imported. Received `{found.module}`, which fails: "
    return Fault(found.place, f"{message}{type(error).__name__}: {error}.", f"Mend {place or found.module}.")


def _find(parts: Parts, selector: str, binding: Binding) -> list[Fault]:
    """Find one function or class, attribute by attribute."""
    canonical = parts.text.canonical(selector, binding.place.file) or selector
    if canonical in parts.targets:
        return []
    found: Any = None
    depth = 0
    names = canonical.split(".")
    while depth < len(names) and ".".join(names[: depth + 1]) in sys.modules:
        depth += 1
        found = sys.modules[".".join(names[:depth])]
    for position in range(depth, len(names)):
        inner = getattr(found, names[position], None)
        if inner is None:
            return [_explain_unknown(selector, names, position, found, binding)]
        found = inner
    if not (inspect.isfunction(found) or inspect.isclass(found)) or not _has_signature(found):
        kind = "a module" if inspect.ismodule(found) else f"a {type(found).__name__}"
        message = f"What is bound or referred to is a function or class. Received `{selector}`, which is {kind}."
        inside = _public(found) if inspect.ismodule(found) else []
        hint = did_you_mean(binding.parameter, inside, f"{selector}.")
        return [Fault(binding.place, message, hint or "Write module.function.parameter = value")]
    parts.targets[canonical] = found
    parts.names.setdefault(found, canonical)
    return []


def _has_signature(found: Any) -> bool:
    return signature_of(found) is not None


def _public(module: Any) -> list[str]:
    """Return the functions and classes that a module offers; its own come alone where it has any."""
    found = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    callables = {name: value for name, value in found.items() if inspect.isfunction(value) or inspect.isclass(value)}
    own = [name for name, value in callables.items() if value.__module__ == module.__name__]
    return own or list(callables)


def _explain_unknown(selector: str, names: list[str], position: int, holder: Any, binding: Binding) -> Fault:
    inside = _public(holder) if inspect.ismodule(holder) else []
    if inspect.ismodule(holder) and not nearest(names[position], inside):
        inside += [name for name, value in vars(holder).items() if inspect.ismodule(value) and name[0] != "_"]
    where = ".".join(names[:position])
    message = f"A name leads to a function or class. Received `{selector}`; `{where}` has no `{names[position]}`."
    shown = selector.split(".")
    prefix = ".".join(shown[: len(shown) - (len(names) - position)])
    return Fault(binding.place, message, did_you_mean(names[position], inside, f"{prefix}." if prefix else ""))


def _settle(parts: Parts) -> list[Fault]:
    """Decide which binding of each parameter takes effect: the last. Refuse two in one file, by two paths to a part."""
    faults = []
    for binding in parts.text.bindings:
        scope, canonical, parameter = key_of(binding, parts.text)
        key = scope, parts.name_of(canonical, ""), parameter
        if binding.is_macro:
            parts.macros[binding.selector] = binding
        earlier = parts.effective.get(key)
        if earlier is not None:
            parts.overridden.append((earlier, binding))
            if earlier.place.file == binding.place.file:
                message = f"A parameter is bound once in a file. Received `{binding.name}`, which is `{earlier.name}`"
                faults.append(Fault(binding.place, f"{message}, bound at {earlier.place}.", "Remove one of the two."))
        parts.effective[key] = binding
    return faults


def _signature_at(parts: Parts, binding: Binding) -> Signature | None:
    target = parts.targets.get(parts.text.canonical(binding.selector, binding.place.file) or "")
    return signature_of(target) if target is not None and not binding.is_macro else None


def _check_parameter(parts: Parts, binding: Binding) -> list[Fault]:
    """Check that what is bound has the parameter."""
    signature = _signature_at(parts, binding)
    if signature is None or signature.takes_any_keyword or binding.parameter in signature.parameters:
        return []
    return [_explain_unknown_parameter(binding, signature)]


def _check_value(parts: Parts, binding: Binding) -> list[Fault]:
    """Check that a value fits the annotation of its parameter."""
    signature = _signature_at(parts, binding)
    parameter = signature.parameters.get(binding.parameter) if signature else None
    if parameter is None or is_required(binding.value):
        return []
    # A reference means what the imports of its own file say, also where a macro brings it here.
    brought = {id(leaf): macro.place.file for macro in parts.macros.values() for leaf in leaves(macro.value)}

    def file_of(reference: Reference) -> str:
        return brought.get(id(reference), binding.place.file)

    checker = Checker(
        lambda reference: parts.targets.get(parts.text.canonical(reference.selector, file_of(reference)) or ""),
        {name: macro.value for name, macro in parts.macros.items()},
        lambda reference: _bound_anywhere(parts, reference, file_of(reference)),
    )
    found = checker.mismatch(binding.value, parameter.annotation)
    if found is None:
        return []
    place, via = binding.place, ""
    if isinstance(binding.value, Macro):
        macro = parts.macros[binding.value.name]
        place, via = macro.place, f" It comes from %{macro.selector}, bound to it at {binding.place}."
    return [Fault(place, f"`{binding.name}` {found.message}{via}", found.remedy)]


def _bound_anywhere(parts: Parts, reference: Reference, file: str) -> set[str]:
    bound = parts.bindings_of(parts.name_of(reference.selector, file))
    return {one.parameter for one in bound if not reference.scope or within(reference.scope, one.scope)}


def _explain_unknown_parameter(binding: Binding, signature: Signature) -> Fault:
    message = f"`{binding.selector}` has no parameter `{binding.parameter}`. Received {written(binding.value)} for it."
    close = nearest(binding.parameter, signature.parameters)
    if close:
        takes = [f"`{name}` ({readable(signature.parameters[name].annotation)})" for name in close]
        return Fault(binding.place, message, f"Did you mean {' or '.join(takes)}?")
    names = ", ".join(signature.parameters) or "nothing"
    return Fault(binding.place, message, f"It takes: {names}.")


def whole_file(text: Text) -> Place:
    """Return the place of what is missing: the first file given, or the command line."""
    return Place(text.sources[0].file if text.sources else "command line", 0)
