"""Whether what a call gives fits what is wanted, as far as annotations tell."""

import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any

from pipeline.configs.signatures import NOTHING, call_of, is_protocol, members, plain


def is_a(result: Any, wanted: Any, unknown: bool = True) -> bool:
    """Return whether what a call gives fits; `unknown` where that cannot be told."""
    result, wanted = plain(result), plain(wanted)
    if wanted in (NOTHING, Any) or result in (NOTHING, Any) or isinstance(wanted, (str, typing.TypeVar)):
        return unknown
    if result == wanted:
        return True
    if typing.get_origin(wanted) is typing.Literal:
        return any(is_a(result, type(choice), unknown) for choice in typing.get_args(wanted))
    if typing.get_origin(wanted) is Annotated:
        return is_a(result, typing.get_args(wanted)[0], unknown)
    if typing.get_origin(result) is Annotated:
        return is_a(typing.get_args(result)[0], wanted, unknown)
    if typing.get_origin(wanted) in (typing.Union, types.UnionType):
        return any(is_a(result, one, unknown) for one in typing.get_args(wanted))
    if typing.get_origin(result) in (typing.Union, types.UnionType):
        return any(is_a(one, wanted, unknown) for one in typing.get_args(result))
    if call_of(result) is not None and call_of(wanted) is not None and not is_protocol(wanted):
        return unknown
    return _class_fits(result, wanted, unknown)


def _class_fits(result: Any, wanted: Any, unknown: bool) -> bool:
    result = type(None) if result is None else typing.get_origin(result) or result
    wanted = type(None) if wanted is None else typing.get_origin(wanted) or wanted
    if not inspect.isclass(result) or not inspect.isclass(wanted) or wanted is object:
        return unknown
    if is_protocol(wanted):
        needed = members(wanted)
        if result is Callable or call_of(result) is not None and not inspect.isclass(result):
            return needed == {"__call__"}
        return all(hasattr(result, name) for name in needed)
    try:
        return issubclass(result, wanted) or (wanted is float and issubclass(result, int))
    except TypeError:
        return unknown


def may_overlap(one: Any, other: Any) -> bool:
    """Return whether a value could be of both annotations."""
    return is_a(one, other) or is_a(other, one)


def may_be_called(result: Any) -> bool:
    """Return whether a value so annotated could be called."""
    result = plain(result)
    if result in (NOTHING, Any) or typing.get_origin(result) in (typing.Union, types.UnionType):
        return True
    found = typing.get_origin(result) or result
    return not inspect.isclass(found) or found is Callable or "__call__" in dir(found)
