"""What can be bound where: every component, and every parameter that takes one, found by inspection.

A parameter of the experiment, or of a component that may stand there, is a slot if a component fits its annotation. A
new component enters by lying in a module below `components`.
"""

import ast
import functools
import importlib
import inspect
import pkgutil
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import keras
import tensorflow as tf

import components
from pipeline import experiment
from pipeline.configs.compatible import is_a
from pipeline.configs.signatures import NOTHING, Call, Signature, call_of, is_protocol, plain, readable, signature_of
from pipeline.configs.statements import Reference
from pipeline.configs.types_check import Checker

# What so many functions give that it does not tell a part from a helper.
_COMMON = (tf.Tensor, type(None), None)


@dataclass(frozen=True)
class Part:
    """A function or class that gin can name."""

    name: str  # as gin names it under `import_line`
    area: str
    import_line: str
    target: Any

    @property
    def signature(self) -> Signature:
        """Its parameters, and what a call gives; only what has them is a part."""
        found = signature_of(self.target)
        if found is None:
            raise TypeError(f"{self.name} has no signature.")
        return found


@dataclass(frozen=True)
class Fit:
    """A part in a slot."""

    part: Part
    value: str  # gin text, such as @adversarial.hinge


@dataclass
class Slot:
    """A parameter that takes a part."""

    name: str  # part.parameter
    takes: str
    fits: list[Fit] = field(default_factory=list)


def parts() -> dict[str, Part]:
    """Return {gin name: part} of all components, the experiment and Keras's optimizers."""
    found = [Part("experiment.Experiment", "experiment", "from pipeline import experiment", experiment.Experiment)]
    for info in pkgutil.walk_packages(components.__path__, "components."):
        try:
            module = importlib.import_module(info.name)
        except ImportError as error:
            print(f"{info.name} is left out: {error}.", file=sys.stderr)
            continue
        package, _, name = info.name.rpartition(".")
        area = info.name.split(".")[1]
        line = f"from {package} import {name}"
        own = (value for value in vars(module).values() if getattr(value, "__module__", "") == info.name)
        found += [Part(f"{name}.{one.__name__}", area, line, one) for one in own if _is_public(one)]
    optimizers = {value: name for name, value in vars(keras.optimizers).items() if inspect.isclass(value)}
    found += [Part(f"keras.optimizers.{name}", "keras", "import keras", value) for value, name in optimizers.items()]
    return {part.name: part for part in found}


def _is_public(value: Any) -> bool:
    is_part = inspect.isfunction(value) or inspect.isclass(value)
    if not is_part or value.__name__.startswith("_") or is_protocol(value):
        return False
    is_record = inspect.isclass(value) and (issubclass(value, (tuple, dict, BaseException)))
    return not is_record and signature_of(value) is not None


def slots(known: Mapping[str, Part]) -> list[Slot]:
    """Return the slots of the experiment and of every part that may stand in one of them, in that order."""
    checker = Checker(
        target_of=lambda reference: known[reference.selector].target,
        macros={},
        # A configuration may bind what the caller does not give, but no tensor.
        bound=lambda reference: {
            name
            for name, parameter in known[reference.selector].signature.parameters.items()
            if parameter.annotation is not tf.Tensor
        },
    )
    found: list[Slot] = []
    given: dict[str, set[str]] = {}  # what the program gives to each part, so that it is no slot
    waiting, seen = ["experiment.Experiment"], {"experiment.Experiment"}
    while waiting:
        part = known[waiting.pop(0)]
        for name, parameter in part.signature.parameters.items():
            if part.area == "keras" or name in given.get(part.name, ()):
                continue
            slot = Slot(f"{part.name}.{name}", readable(parameter.annotation))
            for annotation, form in _wanted(parameter.annotation):
                for fit in _fits(known, checker, annotation, form):
                    slot.fits.append(fit)
                    call = call_of(annotation)
                    given.setdefault(fit.part.name, set()).update(_given(fit.part, call) if call else ())
            found += [slot] if slot.fits else []
            new = [fit.part.name for fit in slot.fits if fit.part.name not in seen]
            seen.update(new)
            waiting += new
    return found


def _wanted(annotation: Any) -> Iterator[tuple[Any, str]]:
    """Yield the annotations of parts in an annotation, each with the gin text around such a part."""
    annotation = plain(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        yield from _wanted(arguments[0])
    elif origin in (typing.Union, types.UnionType):
        for one in arguments:
            yield from _wanted(one)
    elif call_of(annotation) is not None or is_protocol(annotation):
        yield annotation, "PART"
    elif inspect.isclass(origin) and issubclass(origin, Mapping):
        yield from ((inner, f"{{'KEY': {form}}}") for inner, form in _wanted(arguments[1]))
    elif inspect.isclass(origin) and issubclass(origin, Sequence) and arguments:
        inside = list(_wanted(arguments[0]))
        if inside:
            yield annotation, "PART"
        yield from ((inner, f"[{form}]" if origin is not tuple else f"({form},)") for inner, form in inside)
    elif inspect.isclass(annotation) and annotation.__module__.partition(".")[0] in ("components", "pipeline"):
        yield annotation, "PART"


def _fits(known: Mapping[str, Part], checker: Checker, annotation: Any, form: str) -> Iterator[Fit]:
    call = call_of(annotation)
    is_common = call is not None and not call.keywords and plain(call.result) in _COMMON
    for part in known.values():
        found = part.signature
        is_what_is_made = call is not None and part.target is plain(call.result)
        is_incomplete = part.area == "keras" and bool(found.required)
        is_anything = found.result in (NOTHING, Any) or isinstance(found.result, typing.TypeVar)
        if is_anything or is_what_is_made or is_incomplete or (is_common and _is_helper(part)):
            continue
        named, made = Reference("", part.name, False), Reference("", part.name, True)
        if call is not None and checker.mismatch(named, annotation) is None:
            fitting = named
        elif checker.mismatch(made, annotation) is None and _gives(found.result, annotation, call):
            fitting = made
        else:
            continue
        key = part.target.__name__.lower()
        yield Fit(part, form.replace("PART", str(fitting)).replace("KEY", key))


def _gives(result: Any, annotation: Any, call: Call | None) -> bool:
    """Return whether what a part makes is of an annotation for certain, items of a sequence included."""
    if call is not None:
        return _answers(result, call)
    inside, wanted = typing.get_args(result), typing.get_args(annotation)
    if wanted and call_of(wanted[0]) is not None:
        return inside[:1] == wanted[:1]
    items_fit = not wanted or bool(inside) and is_a(inside[0], wanted[0], unknown=False)
    return items_fit and is_a(result, annotation, unknown=False)


def _is_helper(part: Part) -> bool:
    """Return whether a function is called in its own module or area: it is a piece of a part, not one to bind."""
    if not inspect.isfunction(part.target):
        return False
    module, name = part.target.__module__, part.target.__name__
    return name in _names_used(module) or f"{module.rpartition('.')[2]}.{name}" in _names_used(module)


@functools.cache
def _names_used(module: str) -> set[str]:
    """Return the names that a module loads, and the names and `module.name`s that its siblings import and load."""
    folder = Path(sys.modules[module].__file__ or "").parent
    own = Path(sys.modules[module].__file__ or "")
    used: set[str] = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name) and path == own:
                used.add(node.id)
            elif isinstance(node, ast.ImportFrom) and node.module == module:
                used |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.add(f"{node.value.id}.{node.attr}")
    return used


def _answers(made: Any, call: Call) -> bool:
    """Return whether what a part makes can be called so."""
    if not inspect.isclass(made) or "__call__" not in dir(made) or made.__call__ is type.__call__:
        return False
    found = signature_of(made.__call__)
    if found is None or call.positional is None:
        return False
    is_enough = len(found.positional) - 1 == len(call.positional) and call.keywords <= set(found.parameters)
    return is_enough and is_a(found.result, call.result, unknown=False)


def _given(part: Part, call: Call) -> set[str]:
    """Return the parameters of a part that its caller gives."""
    found = part.signature
    return set(found.positional[: len(call.positional or ())]) | call.keywords
