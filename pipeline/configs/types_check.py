"""Compares a bound value with the annotation of the parameter that it is bound to."""

import inspect
import math
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import pydantic

from pipeline.configs.compatible import is_a, may_be_called, may_overlap
from pipeline.configs.signatures import (
    NOTHING,
    AnythingMade,
    Call,
    Signature,
    call_of,
    is_protocol,
    members,
    plain,
    readable,
    signature_of,
)
from pipeline.configs.statements import Macro, Reference, leaves, written
from pipeline.configs.third_party import WrittenWithAPoint


@dataclass(frozen=True)
class Mismatch:
    """Why a value does not fit, and what to do."""

    message: str  # continues "`NAME` ..."
    remedy: str = ""


@dataclass(frozen=True)
class Checker:
    """Compares values with annotations.

    Attributes:
      target_of: gives the function or class that a reference names; None where it is unknown.
      macros: {name: value}.
      bound: gives the names of the parameters that are bound for a reference, in any scope that may apply.
    """

    target_of: Callable[[Reference], Any]
    macros: Mapping[str, Any]
    bound: Callable[[Reference], set[str]]

    def mismatch(self, value: Any, annotation: Any) -> Mismatch | None:
        """Return why `value` does not fit `annotation`; None where it does, or where that cannot be known."""
        annotation = plain(annotation)
        if isinstance(value, Macro):
            return self.mismatch(self.macros[value.name], annotation) if value.name in self.macros else None
        if annotation in (NOTHING, Any, object) or isinstance(annotation, typing.TypeVar):
            return None
        if annotation is AnythingMade:
            return None if isinstance(value, (Reference, list, tuple, dict)) else _takes(annotation, value, "")
        origin = typing.get_origin(annotation)
        if origin is Annotated:
            inner = self.mismatch(value, typing.get_args(annotation)[0])
            if WrittenWithAPoint in typing.get_args(annotation) and type(value) is int:
                inner = Mismatch(f"must be a float. Received {value} (int).", f"Write {value}.0")
            return inner or (_out_of_range(value, annotation) if _is_literal(value) else None) or _beyond_64_bits(value)
        if origin in (typing.Union, types.UnionType):
            return self._none_fits(value, annotation)
        if isinstance(value, Reference):
            return self._reference_mismatch(value, annotation)
        if call_of(annotation) is not None:
            return _takes(annotation, value, "Name one with @, without quotes.")
        if isinstance(origin, type) and issubclass(origin, (Mapping, Iterable)):
            return self._container_mismatch(value, annotation, origin)
        return _literal_mismatch(value, annotation) or _not_a_number_to_compute_with(value)

    def _none_fits(self, value: Any, annotation: Any) -> Mismatch | None:
        found = [self.mismatch(value, choice) for choice in typing.get_args(annotation)]
        if None in found:
            return None
        closer = [one for one in found if one and ("must be" in one.message or "parentheses" in one.remedy)]
        return closer[0] if closer else _takes(annotation, value, _hint_for(value, annotation))

    def _container_mismatch(self, value: Any, annotation: Any, origin: type) -> Mismatch | None:
        arguments = typing.get_args(annotation)
        if issubclass(origin, Mapping):
            if not isinstance(value, dict):
                return _takes(annotation, value, "Write a dict: {'name': value}")
            pairs = [pair for key, item in value.items() for pair in ((key, arguments[0]), (item, arguments[1]))]
        elif issubclass(origin, (list, tuple, Sequence, Iterable)):
            fits = origin if origin in (list, tuple) else (list, tuple)
            if not isinstance(value, fits):
                hint = "Write (a, b), or (a,) for a single one." if origin is tuple else "Write a list: [a, b]"
                return _takes(annotation, value, hint)
            is_fixed = origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis)
            if is_fixed and arguments != ((),) and len(value) != len(arguments):
                return _takes(annotation, value, f"It has {len(arguments)} items.")
            pairs = list(zip(value, arguments, strict=True)) if is_fixed else [(item, arguments[0]) for item in value]
        else:
            return None
        found = next(filter(None, (self.mismatch(item, inner) for item, inner in pairs)), None)
        if found and isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], Reference):
            if self.mismatch(value[0], annotation) is None:
                return replace(found, remedy=f"Leave off the brackets: {value[0]}")
        return found

    def _reference_mismatch(self, reference: Reference, annotation: Any) -> Mismatch | None:
        target = self.target_of(reference)
        signature = signature_of(target) if target is not None else None
        if signature is None:
            return None
        call = call_of(annotation)
        if call is not None:
            if not reference.evaluate:
                return self._call_mismatch(reference, signature, call, annotation)
            is_made_too_early = call.result is not NOTHING and is_a(signature.result, call.result, unknown=False)
            if is_made_too_early or not may_be_called(signature.result):
                gives = f"`{reference}`, which gives {readable(signature.result)}"
                unscoped = str(reference).removesuffix("()")
                return _takes(annotation, gives, f"Leave off the parentheses: {unscoped}", quote=False)
            return None
        if typing.get_origin(annotation) is type or annotation is type:
            hint = "Leave off the parentheses."
            return _takes(annotation, f"`{reference}`", hint, quote=False) if reference.evaluate else None
        if not reference.evaluate:
            hint = f"Add the parentheses: {reference}()" if is_a(signature.result, annotation) else ""
            items = typing.get_args(annotation)[:1] if typing.get_origin(annotation) in (Sequence, list, tuple) else ()
            if items and self.mismatch(reference, items[0]) is None:
                hint = f"Write a list: [{reference}]"
            return _takes(annotation, f"`{reference}`, which is not called", hint, quote=False)
        if not is_a(signature.result, annotation):
            gives = f"`{reference}`, which gives {_given(signature.result, annotation)}"
            return _takes(annotation, gives, "Name a part that gives one.", quote=False)
        return None

    def _call_mismatch(self, reference: Reference, found: Signature, call: Call, annotation: Any) -> Mismatch | None:
        """Compare a function with the call that will be made of it."""
        received = f"`{reference}`"
        if call.positional is not None:
            given = len(call.positional)
            if given > len(found.positional) and not found.takes_any_position:
                text = f"{received}, which takes {_plural(len(found.positional))} by position"
                return _takes(annotation, text, "Name a part of that kind.", quote=False)
            unknown = sorted(call.keywords - set(found.parameters)) if not found.takes_any_keyword else []
            if unknown:
                text = f"{received}, which has no parameter `{unknown[0]}`"
                return _takes(annotation, text, "Name a part of that kind.", quote=False)
            supplied = {*found.positional[:given], *call.keywords, *self.bound(reference)}
            missing = [name for name in found.required if name not in supplied]
            if missing:
                text = f"{received}, which also needs `{'`, `'.join(missing)}`"
                can_be_bound = not any(found.parameters[name].annotation in call.positional for name in missing)
                line = f"Add the line: {str(reference)[1:]}.{missing[0]} = VALUE; or n" if can_be_bound else "N"
                return _takes(annotation, text, f"{line}ame a part of that kind.", quote=False)
            for name, wanted in zip(found.positional, call.positional, strict=False):
                if not may_overlap(found.parameters[name].annotation, wanted):
                    text = f"{received}, whose `{name}` is {readable(found.parameters[name].annotation)}"
                    return _takes(annotation, text, "Name a part of that kind.", quote=False)
        if not is_a(found.result, call.result):
            text = f"{received}, which gives {_given(found.result, call.result)}"
            return _takes(annotation, text, "Name a part of that kind.", quote=False)
        return None


def _given(result: Any, wanted: Any) -> str:
    """Return what a call gives, and what a Protocol asks of it in vain."""
    lacking = sorted(name for name in members(wanted) if not hasattr(result, name)) if is_protocol(wanted) else []
    return readable(result) + (f", without `{'`, `'.join(lacking)}`" if lacking else "")


def _plural(count: int) -> str:
    return "1 argument" if count == 1 else f"{count or 'no'} arguments"


def _is_literal(value: Any) -> bool:
    return not any(isinstance(leaf, (Macro, Reference)) for leaf in leaves(value))


def _takes(annotation: Any, value: Any, remedy: str, quote: bool = True) -> Mismatch:
    received = f"{written(value)} ({type(value).__name__})" if quote else value
    return Mismatch(f"takes {readable(annotation)}. Received {received}.", remedy)


def _out_of_range(value: Any, annotation: Any) -> Mismatch | None:
    try:
        adapter = pydantic.TypeAdapter(annotation, config={"arbitrary_types_allowed": True})
    except pydantic.PydanticUserError:  # class given its own configuration
        adapter = pydantic.TypeAdapter(annotation)
    try:
        adapter.validate_python(value, strict=True)
    except pydantic.ValidationError as error:
        why = error.errors()[0]["msg"]
        why = f"must be {why.removeprefix('Input should be ')}" if why.startswith("Input") else why[0].lower() + why[1:]
        why = why.replace("value should", "must").replace("tuple should", "must").replace("list should", "must")
        return Mismatch(f"{why}. Received {written(value)}.", f"It takes {readable(annotation)}.")
    return None


def _not_a_number_to_compute_with(value: Any) -> Mismatch | None:
    if isinstance(value, float) and not math.isfinite(value):
        return Mismatch(f"must be finite. Received {value}.", "Write a number.")
    return None


def _beyond_64_bits(value: Any) -> Mismatch | None:
    """Refuse a count that TensorFlow cannot hold; an integer without a range, such as a seed, may be any."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return Mismatch(f"must fit in 64 bits. Received {value}.", "Write a smaller number.")
    return None


def _literal_mismatch(value: Any, annotation: Any) -> Mismatch | None:
    """Compare a literal with what is no container."""
    if annotation is None or annotation is type(None):
        return None if value is None else _takes(type(None), value, "")
    if annotation is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif annotation in (int, str, bool, bytes, list, tuple, dict):
        fits = type(value) is annotation
    elif inspect.isclass(annotation) and issubclass(annotation, os.PathLike):
        fits = isinstance(value, str)
    elif is_protocol(annotation):
        fits = False
    elif inspect.isclass(annotation) and annotation.__module__ not in ("builtins", "typing", "collections.abc"):
        fits = isinstance(value, annotation) or typing.is_typeddict(annotation) and isinstance(value, dict)
    else:
        return _refused_by_pydantic(value, annotation)
    return None if fits else _takes(annotation, value, _hint_for(value, annotation))


def _refused_by_pydantic(value: Any, annotation: Any) -> Mismatch | None:
    """Leave Literal and the rarer annotations to pydantic; what it knows nothing of is accepted."""
    try:
        adapter = pydantic.TypeAdapter(annotation, config={"arbitrary_types_allowed": True})
    except (pydantic.PydanticUserError, pydantic.PydanticSchemaGenerationError, TypeError, NameError):
        return None
    try:
        adapter.validate_python(value, strict=True)
    except pydantic.ValidationError:
        return _takes(annotation, value, "")
    return None


def _hint_for(value: Any, annotation: Any) -> str:
    """Return what to write in place of a literal of the wrong type."""
    choices = typing.get_args(annotation) or (annotation,)
    kinds = {typing.get_args(one)[0] if typing.get_origin(one) is Annotated else one for one in choices}
    if isinstance(value, str) and kinds & {int, float}:
        try:
            float(value)
        except ValueError:
            return "Write a number."
        return f"Remove the quotes: {value}"
    if isinstance(value, str) and any(typing.get_origin(one) in (tuple, list, Sequence) for one in kinds):
        is_list = any(typing.get_origin(one) is list for one in kinds)
        return f"Write [{written(value)}]." if is_list else f"Write ({written(value)},)."
    if isinstance(value, str) and bool in kinds:
        return "Write True or False, without quotes."
    if isinstance(value, float) and int in kinds and value.is_integer():
        return f"Write {int(value)}."
    if isinstance(value, bool) or bool in kinds:
        return "Write True or False." if bool in kinds else "Write a number." if kinds & {int, float} else ""
    if str in kinds:
        return f"Quote it: '{written(value)}'" if not isinstance(value, (dict, list, tuple)) else "Write a string."
    if any(inspect.isclass(one) and one.__module__ != "builtins" for one in kinds):
        return "Name a part that gives one: @module.name()"
    return ""
