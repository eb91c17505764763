"""Compares two texts of one configuration each."""

from collections.abc import Callable, Container
from typing import Any

from pipeline.configs import statements
from pipeline.configs.operative import DEFAULT
from pipeline.configs.statements import Macro, Reference, written

Ignore = Container[str] | Callable[[str], bool]


def differences(old_text: str, new_text: str, *, ignore: Ignore = ()) -> list[str]:
    """Compare two operative texts by what they bind, defaults included.

    Args:
      old_text, new_text: as `write` gives them.
      ignore: names of bindings or macros to leave out, or a function that tells whether to.

    Returns:
      One line for each difference: `NAME: old -> new`. A value that comes from a macro is compared as the macro, so
      that a changed macro shows once. A default that only one text knows is no difference.
    """
    old, new = values(old_text), values(new_text)
    is_ignored = ignore if callable(ignore) else ignore.__contains__
    lines = []
    for name in sorted(old.keys() | new.keys()):
        (before, was_bound), (after, is_bound) = old.get(name, ("", False)), new.get(name, ("", False))
        both = name in old and name in new
        if is_ignored(name) or (before == after and both) or not (both or was_bound or is_bound):
            continue
        if both and _followed(before, old) == _followed(after, new):
            continue
        lines.append(f"{name}: {before if name in old else 'unset'} -> {after if name in new else 'unset'}")
    return lines


def _followed(value: str, values: dict[str, tuple[str, bool]]) -> str:
    """Return the value behind a macro, for a text that writes the macro and one that writes the value."""
    seen = set()
    while value.startswith("%") and value[1:] in values and value not in seen:
        seen.add(value)
        value = values[value[1:]][0]
    return value


def values(text: str) -> dict[str, tuple[str, bool]]:
    """Return {name: (value as text, whether it is bound)}; a default is not."""
    bare = "\n".join(line.removeprefix(DEFAULT) for line in text.splitlines())
    bound = {one.name: one for one in statements.read(text, "").bindings}
    everything = {one.name: one for one in statements.read(bare, "").bindings}
    return {name: (_shown(one.value), name in bound) for name, one in (everything | bound).items()}


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, (Macro, Reference)) else written(value)
