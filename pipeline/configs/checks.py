"""What can be told from the text alone: nothing that the user configures is imported here."""

import re
from collections.abc import Iterator
from typing import Any

from pipeline.configs import modules
from pipeline.configs.faults import Fault, did_you_mean, listed, nearest
from pipeline.configs.sources import COMMAND_LINE, Text
from pipeline.configs.statements import Binding, Import, Macro, Reference, Source, leaves

REQUIRED = ("gin.REQUIRED", "REQUIRED")
REGISTRATION = "from __gin__ import dynamic_registration"
CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*$")


def check(text: Text) -> list[Fault]:
    """Return the faults, those of reading included, while which stand nothing that the text names can be looked up."""
    blocking = list(text.faults)
    for source in text.sources:
        blocking += _check_registration(source)
        blocking += _check_imports(source)
    for binding in text.bindings:
        blocking += _check_names(binding, text)
    blocking += _check_macros(text)
    blocking += _check_macro_circles(text)
    blocking += _check_duplicates(text)
    blocking += _check_unset(text)
    return blocking


def uses(binding: Binding) -> Iterator[str]:
    """Yield every selector that a binding names: what it binds and what its value refers to."""
    if not binding.is_macro:
        yield binding.selector
    for leaf in leaves(binding.value):
        if isinstance(leaf, Reference):
            yield leaf.selector


def key_of(binding: Binding, text: Text) -> tuple[str, str, str]:
    """Return what makes two bindings the same: scope, dotted path of what is bound, parameter."""
    if binding.is_macro:
        return binding.scope, binding.selector, ""
    selector = text.canonical(binding.selector, binding.place.file) or binding.selector
    return binding.scope, selector, binding.parameter


def macros_in(text: Text) -> tuple[set[str], set[str]]:
    """Return the macros defined and those referred to."""
    defined = {binding.selector for binding in text.bindings if binding.is_macro}
    used = {leaf.name for binding in text.bindings for leaf in leaves(binding.value) if isinstance(leaf, Macro)}
    return defined, used - set(REQUIRED)


def is_required(value: Any) -> bool:
    """Return whether a value is %gin.REQUIRED: a later binding must set it."""
    return isinstance(value, Macro) and value.name in REQUIRED


def _check_registration(source: Source) -> list[Fault]:
    features = [
        statement
        for statement in source.statements
        if isinstance(statement, Import) and statement.module.startswith("__gin__")
    ]
    faults = []
    for feature in features:
        if feature.statement.format() != REGISTRATION:
            faults.append(
                Fault(feature.place, f"The only feature of gin in use is: {REGISTRATION}.", "Write that line instead.")
            )
    needs: list[Import | Binding] = [*source.imports]
    needs += [binding for binding in source.bindings if any(uses(binding))]
    if source.path and needs and not features and not source.faults:
        message = f"A gin file that names parts begins with `{REGISTRATION}`. Received {source.file} without it."
        faults.append(Fault(needs[0].place, message, f"Add as the first line: {REGISTRATION}"))
    elif source.path and features and source.imports and source.imports[0].place.line < features[0].place.line:
        message = f"`{REGISTRATION}` stands before every other import. Received it below one."
        faults.append(Fault(features[0].place, message, "Move it to the top."))
    return faults


def _check_imports(source: Source) -> list[Fault]:
    faults = []
    seen: dict[str, Import] = {}
    for found in source.imports:
        part = modules.missing_part(found.module)
        if part is not None:
            hint = did_you_mean(part, modules.siblings(part)) if "." in part else ""
            hint = hint or modules.import_line_for(found.module.rpartition(".")[2])
            message = f"An import names a module that exists. Received `{found.module}`; there is no `{part}`."
            faults.append(Fault(found.place, message, hint))
        if found.bound_name == "gin":
            faults.append(Fault(found.place, "`gin` is reserved. Received an import of that name.", "Remove it."))
        earlier = seen.setdefault(found.bound_name, found)
        if earlier is not found and (found.module == earlier.module or found.canonical("") != earlier.canonical("")):
            message = f"A name is imported once. Received `{found.bound_name}` twice, first at {earlier.place}."
            faults.append(Fault(found.place, message, f"Remove one, or rename it: {found.statement.format()} as NAME"))
    return faults


def _check_names(binding: Binding, text: Text) -> list[Fault]:
    """Check that each name begins with an imported one."""
    faults = []
    imports = text.imports_of(binding.place.file)
    names = {found.bound_name for found in imports}
    scopes = {scope for other in text.bindings for scope in other.scope.split("/")} - {""}
    for selector in dict.fromkeys(uses(binding)):
        root = selector.partition(".")[0]
        if root == "gin":
            message = (
                f"gin's own `{selector}` is not used: a part is never shared between two others. Received it here."
            )
            faults.append(
                Fault(binding.place, message, "Let each part have its own: @module.name without gin.singleton.")
            )
        elif root not in names:
            faults.append(Fault(binding.place, *_explain_unknown_root(binding, selector, names, scopes)))
        elif (
            binding.place.file == COMMAND_LINE
            and len({found.canonical(root) for found in imports if found.bound_name == root}) > 1
        ):
            choice = listed(found.module for found in imports if found.bound_name == root)
            message = f"A name means one module. Received `{root}`, which the files import as {choice}."
            faults.append(Fault(binding.place, message, "Import the one that you mean in a --gin_param."))
    return faults


def _explain_unknown_root(binding: Binding, selector: str, names: set[str], scopes: set[str]) -> tuple[str, str]:
    root, _, rest = selector.partition(".")
    message = (
        f"A name begins with what an import of its file provides. Received `{selector}`; nothing imports `{root}`."
    )
    close = nearest(root, names, count=1)
    if root in scopes and rest:
        return message, f"`{root}` is a scope, which is followed by a slash: {root}/{rest}"
    is_own = selector == binding.selector and not binding.is_macro
    line = modules.import_line_for(f"{selector}.{binding.parameter}" if is_own else selector)
    if close and not line:
        return message, f"Did you mean `{'.'.join(filter(None, [close[0], rest]))}`?"
    if line:
        return message, line + ("" if binding.place.file != COMMAND_LINE else " (in a --gin_param before this one)")
    own = nearest(root, modules.own_module_names(), count=1)
    if own:
        return message, f"Did you mean `{own[0]}`? {modules.import_line_for(own[0])}"
    return message, did_you_mean(root, names)


def _check_macros(text: Text) -> list[Fault]:
    """Check how macros are written, and that each is defined."""
    faults = []
    defined, _ = macros_in(text)
    unread = " ".join(fault.place.text for fault in text.faults)
    parameters = {binding.parameter: binding.name for binding in text.bindings if not binding.is_macro}
    for binding in text.bindings:
        for leaf in leaves(binding.value):
            is_known = isinstance(leaf, Macro) and (leaf.name in defined or leaf.name in REQUIRED)
            if isinstance(leaf, Macro) and not is_known and leaf.name not in unread:
                message = f"A macro is defined before the run: NAME = value. Received %{leaf.name}, which is not."
                hint = did_you_mean(leaf.name, defined, "%") or f"Add the line: {leaf.name} = VALUE"
                faults.append(Fault(binding.place, message, hint))
        if binding.is_macro and (binding.scope or not CAPITALS.match(binding.selector)):
            message = f"A name without a dot is a macro, written in CAPITALS. Received `{binding.name}`."
            meant = nearest(binding.selector, parameters, count=1)
            hint = f"Did you mean the parameter `{parameters[meant[0]]}`?" if meant else ""
            hint = hint or did_you_mean(binding.selector, defined, is_short_listed=False)
            faults.append(Fault(binding.place, message, hint or "Write module.function.parameter, or use capitals."))
    return faults


def _check_macro_circles(text: Text) -> list[Fault]:
    """Refuse macros that refer to themselves: gin would follow them for ever."""
    values = {binding.selector: binding for binding in text.bindings if binding.is_macro}
    faults = []
    for name, binding in values.items():
        reached, waiting = set(), [name]
        while waiting:
            current = values.get(waiting.pop())
            inner = [leaf.name for leaf in leaves(current.value) if isinstance(leaf, Macro)] if current else []
            waiting += [other for other in inner if other not in reached]
            reached.update(inner)
        if name in reached:
            message = f"A macro does not refer to itself. Received `{name}`, which leads back to %{name}."
            faults.append(Fault(binding.place, message, "Give it a value."))
    return faults


def _check_duplicates(text: Text) -> list[Fault]:
    """Refuse the same binding twice in a file, and an override that stands above the include that undoes it."""
    faults = []
    seen: dict[tuple[str, str, str], list[Binding]] = {}
    for binding in text.bindings:
        for earlier in seen.setdefault(key_of(binding, text), []):
            first, second = earlier.place, binding.place
            if first.file == second.file:
                message = f"A parameter is bound once in a file. Received `{binding.name}` again, first at {first}."
                faults.append(Fault(second, message, "Remove one of the two."))
            elif text.includes(first.file, second.file) and not is_required(binding.value):
                message = f"A file overrides what it includes below the include. Received `{earlier.name}` above it."
                faults.append(Fault(first, message, f"Move the include of {second.file} above this line."))
        seen[key_of(binding, text)].append(binding)
    return faults


def _check_unset(text: Text) -> list[Fault]:
    last = {key_of(binding, text): binding for binding in text.bindings}
    return [
        Fault(
            binding.place,
            f"`{binding.name}` must be set. Received %gin.REQUIRED, which stands for a value still to come.",
            f"Add the line: {binding.name} = VALUE, or --gin_param='{binding.name} = VALUE'",
        )
        for binding in last.values()
        if is_required(binding.value)
    ]


def within(scope: str, outer: str) -> bool:
    """Return whether bindings of `outer` apply inside `scope`."""
    return not outer or scope == outer or scope.startswith(outer + "/")
