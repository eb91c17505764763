"""What a function or class takes and gives, read from its annotations."""

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pipeline.configs import third_party
from pipeline.configs.third_party import NOTHING, AnythingMade

_KINDS = inspect.Parameter


@dataclass(frozen=True)
class Signature:
    """Parameters that can be bound, and what a call gives."""

    parameters: dict[str, inspect.Parameter]  # with resolved annotations; no self, *args, **kwargs
    takes_any_keyword: bool  # there is a **kwargs of which nothing is known
    takes_any_position: bool  # there is a *args
    result: Any  # annotation; NOTHING: unknown

    @property
    def required(self) -> list[str]:
        """Names of the parameters that have no default."""
        return [name for name, parameter in self.parameters.items() if parameter.default is NOTHING]

    @property
    def positional(self) -> list[str]:
        """Names of the parameters that a caller may give by position, in order."""
        kinds = (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)
        return [name for name, parameter in self.parameters.items() if parameter.kind in kinds]


@functools.lru_cache(maxsize=1024)
def signature_of(target: Callable[..., Any]) -> Signature | None:
    """Return the signature of a function or class; None where Python cannot tell it, as for some built-in ones."""
    called = _constructor(target) if inspect.isclass(target) else target
    try:
        found = inspect.signature(called)
    except (TypeError, ValueError):
        return None
    hints = _hints(called)
    parameters = list(found.parameters.values())
    if inspect.isclass(target) and called is not target:
        parameters = parameters[1:]  # self
    known = {parameter.name: parameter for parameter in parameters if parameter.kind not in _STARRED}
    is_open = any(parameter.kind is _KINDS.VAR_KEYWORD for parameter in parameters)
    if is_open and inspect.isclass(target):
        known |= {name: found for name, found in _inherited(target).items() if name not in known}
        is_open = not third_party.names_every_keyword(target)
    known = {
        name: parameter.replace(annotation=_annotation(target, name, hints, parameter))
        for name, parameter in known.items()
    }
    result = target if inspect.isclass(target) else hints.get("return", NOTHING)
    return Signature(known, is_open, any(p.kind is _KINDS.VAR_POSITIONAL for p in parameters), result)


_STARRED = (_KINDS.VAR_KEYWORD, _KINDS.VAR_POSITIONAL)


def _constructor(cls: type) -> Any:
    """Return what a call of the class runs, chosen as gin chooses it."""
    for base in inspect.getmro(cls):
        for name in ("__init__", "__new__"):
            if name in base.__dict__ and base is not object:
                return getattr(base, name)
    return cls


def _hints(called: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(called, include_extras=True)
    except Exception:  # an annotation may name what exists only for a type checker: then only plain ones count
        raw = getattr(inspect.unwrap(called), "__annotations__", {})
        return {name: hint for name, hint in raw.items() if not isinstance(hint, str)}


def _inherited(cls: type) -> dict[str, inspect.Parameter]:
    """Return the keyword parameters of the base classes, to which **kwargs go."""
    found: dict[str, inspect.Parameter] = {}
    for base in inspect.getmro(cls)[1:]:
        constructor = base.__dict__.get("__init__")
        if inspect.isfunction(constructor):
            for parameter in list(inspect.signature(constructor).parameters.values())[1:]:
                if parameter.kind not in _STARRED:
                    # Which of them the class itself passes on is unknown, so none is called required here.
                    default = None if parameter.default is NOTHING else parameter.default
                    keyword = parameter.replace(kind=_KINDS.KEYWORD_ONLY, default=default)
                    found.setdefault(parameter.name, keyword)
    return found


def _annotation(target: Any, name: str, hints: dict[str, Any], parameter: inspect.Parameter) -> Any:
    if name in hints:
        return hints[name]
    known = third_party.annotations(target).get(name)
    return known if known is not None else third_party.by_default(parameter.default)


def plain(annotation: Any) -> Any:
    """Return the annotation behind `type X = ...` and NewType."""
    while True:
        inner = getattr(annotation, "__value__", None) or getattr(annotation, "__supertype__", None)
        if inner is None or inspect.isclass(annotation):
            return annotation
        annotation = inner


@dataclass(frozen=True)
class Call:
    """How a parameter that takes a callable will call it."""

    positional: tuple[Any, ...] | None  # annotations; None: unknown
    keywords: frozenset[str]
    result: Any


def call_of(annotation: Any) -> Call | None:
    """Return how a value so annotated is called; None where the annotation is of no callable."""
    annotation = plain(annotation)
    if annotation is Callable or annotation is typing.Callable:
        return Call(None, frozenset(), NOTHING)
    if typing.get_origin(annotation) is Callable or typing.get_origin(annotation) is type(Callable):
        arguments, result = typing.get_args(annotation)
        return Call(tuple(arguments) if isinstance(arguments, list) else None, frozenset(), result)
    if not is_protocol(annotation) or "__call__" not in members(annotation):
        return None
    found = inspect.signature(annotation.__call__)
    hints = _hints(annotation.__call__)
    inner = list(found.parameters.values())[1:]
    kinds = (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)
    positional = tuple(hints.get(one.name, NOTHING) for one in inner if one.kind in kinds and one.default is NOTHING)
    keywords = frozenset(one.name for one in inner if one.kind is _KINDS.KEYWORD_ONLY)
    return Call(positional, keywords, hints.get("return", NOTHING))


def is_protocol(annotation: Any) -> bool:
    """Return whether the annotation is a Protocol."""
    return inspect.isclass(annotation) and bool(getattr(annotation, "_is_protocol", False))


def members(protocol: type) -> set[str]:
    """Return the names of the methods that a Protocol demands; attributes may be made in __init__, so none is told."""
    found: set[str] = set()
    for base in inspect.getmro(protocol):
        if getattr(base, "_is_protocol", False) and base is not typing.Protocol:
            for name, value in vars(base).items():
                if inspect.isfunction(value) and (not name.startswith("_") or name == "__call__"):
                    found.add(name)
    return found


def readable(annotation: Any) -> str:
    """Return an annotation as a person writes it, without module names."""
    annotation = plain(annotation)
    if typing.get_origin(annotation) is Annotated:
        base, *rules = typing.get_args(annotation)
        return f"{readable(base)} ({', '.join(filter(None, map(_readable_rule, rules)))})"
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        inner = [one for one in typing.get_args(annotation) if one is not AnythingMade]
        return " | ".join(dict.fromkeys(readable(one) for one in inner))
    if annotation is type(None):
        return "None"
    call = call_of(annotation) if not is_protocol(annotation) else None
    if call is not None:
        arguments = "..." if call.positional is None else ", ".join(map(readable, call.positional))
        return f"a function ({arguments}) -> {readable(call.result)}"
    if annotation is NOTHING or annotation is Any:
        return "anything"
    if isinstance(typing.get_origin(annotation), type) and typing.get_origin(annotation) is not type:
        inside = ["..." if one is Ellipsis else readable(one) for one in typing.get_args(annotation)]
        return f"{typing.get_origin(annotation).__name__}[{', '.join(inside)}]"
    text = inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)


def _readable_rule(rule: Any) -> str:
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    parts = [f"{sign} {getattr(rule, name)}" for name, sign in signs.items() if getattr(rule, name, None) is not None]
    if getattr(rule, "multiple_of", None) is not None:
        parts.append(f"a multiple of {rule.multiple_of}")
    if getattr(rule, "min_length", None):
        parts.append(f"at least {rule.min_length} long")
    return " and ".join(parts)
