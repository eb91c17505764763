"""Finds the bindings, macros and scopes that had no effect on what was built."""

from collections.abc import Mapping

from pipeline.configs import handover
from pipeline.configs.checks import within
from pipeline.configs.faults import Fault, did_you_mean, listed
from pipeline.configs.parts import Parts
from pipeline.configs.statements import Binding, Macro, leaves
from pipeline.configs.wiring import inner

Calls = Mapping[tuple[str, str], set[str]]
Key = tuple[str, str, str]


def unused(parts: Parts, calls: Calls) -> tuple[list[Fault], set[Key]]:
    """Compare what is bound with what was called.

    Args:
      parts: the configuration.
      calls: what `handover.calls` gives after everything has been built and traced.

    Returns:
      The faults, and the keys of bindings that are idle for a good reason: an override took away what they were for.
    """
    used = _used(parts, calls)
    swapped_parts, swapped_macros = _swapped_out(parts)
    faults: list[Fault] = []
    excused: set[Key] = set()
    macros = handover.macros_used(calls)
    for key, binding in parts.effective.items():
        if key in used or (binding.is_macro and binding.selector in macros):
            continue
        if binding.is_macro:
            is_excused = _came_before(parts, binding, swapped_macros.get(binding.selector))
        else:
            is_excused = _came_before(parts, binding, swapped_parts.get(key[1])) or _is_overridden(
                parts, binding, _shadows(parts, key, used)
            )
        if is_excused:
            excused.add(key)
        elif not binding.is_macro or not _only_in(parts, binding.selector, excused):
            faults.append(_explain(parts, key, binding, calls, used))
        else:
            excused.add(key)
    return faults, excused


def _used(parts: Parts, calls: Calls) -> set[Key]:
    """Return the keys of the bindings that gave a value to some call: of those that apply, the innermost scope's."""
    used = set()
    for (scope, name), left_to_gin in calls.items():
        for parameter, binding in parts.in_scope(name, scope).items() if name else ():
            if parameter in left_to_gin:
                used.add((binding.scope, name, parameter))
    return used


def _shadows(parts: Parts, key: Key, used: set[Key]) -> list[Binding]:
    """Return the bindings of inner scopes that took the place of one."""
    scope, name, parameter = key
    return [
        parts.effective[other]
        for other in used
        if other[1:] == (name, parameter) and other[0] != scope and within(other[0], scope)
    ]


def _is_overridden(parts: Parts, binding: Binding, shadows: list[Binding]) -> bool:
    """Return whether another file, or the command line, that comes later took the place of a binding on purpose."""
    return any(_came_before(parts, binding, one) for one in shadows)


def _swapped_out(parts: Parts) -> tuple[dict[str, Binding], dict[str, Binding]]:
    """Return the parts and macros that overridden bindings led to, each with what overrode the binding."""
    names: dict[str, Binding] = {}
    macros: dict[str, Binding] = {}
    waiting = list(parts.overridden)
    while waiting:
        binding, override = waiting.pop()
        macros |= {leaf.name: override for leaf in leaves(binding.value) if isinstance(leaf, Macro)}
        for _, name, _, _ in inner(parts, binding):
            if name not in names:
                names[name] = override
                waiting += [(one, override) for one in parts.bindings_of(name)]
    return names, macros


def _came_before(parts: Parts, binding: Binding, override: Binding | None) -> bool:
    """Return whether a binding stood in an earlier file than an override that took away what it was for."""
    if override is None or binding.place.file == override.place.file:
        return False
    order = {id(one): number for number, one in enumerate(parts.text.bindings)}
    return order.get(id(binding), 0) < order.get(id(override), 0)


def _only_in(parts: Parts, macro: str, excused: set[Key]) -> bool:
    """Return whether a macro serves only bindings that are idle for a good reason."""
    users = [
        key
        for key, binding in parts.effective.items()
        if any(isinstance(leaf, Macro) and leaf.name == macro for leaf in leaves(binding.value))
    ]
    return bool(users) and all(key in excused for key in users)


def _explain(parts: Parts, key: Key, binding: Binding, calls: Calls, used: set[Key]) -> Fault:
    scope, name, parameter = key
    head = f"Every binding has an effect. Received `{binding.name}`, "
    scopes = {called for called, part in calls if part == name}
    if binding.is_macro:
        message, hint = "which nothing that was built refers to.", "Remove it, or mend what should use it."
    elif not scopes:
        message = f"but `{binding.selector}` was never called."
        is_named = any(name == other for one in parts.effective.values() for _, other in parts.references(one))
        hint = "Remove it, or what refers to it without calling it." if is_named else f"Refer to @{binding.selector}."
    elif not any(within(called, scope) for called in scopes):
        known = {called for called in scopes if called}
        message = f"but `{binding.selector}` was never called in the scope `{scope}/`."
        hint = did_you_mean(scope, known, "") if known else f"It was called without a scope: remove `{scope}/`."
    elif shadows := _shadows(parts, key, used):
        message = f"which {listed((one.name for one in shadows), last='and')} override wherever it applies."
        hint = "Remove it, or one of those."
    else:
        message = f"but every call of `{binding.selector}` in the program gives its own `{parameter}`."
        hint = "Remove the line."
    return Fault(binding.place, head + message, hint)
