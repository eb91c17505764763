"""What the text says to no effect: macros, imports and scopes that nothing uses. Nothing is imported here either."""

from dataclasses import replace

from pipeline.configs import modules
from pipeline.configs.checks import CAPITALS, macros_in, uses, within
from pipeline.configs.faults import Fault, did_you_mean, nearest
from pipeline.configs.sources import Text
from pipeline.configs.statements import Binding, Reference, leaves


def check(text: Text) -> list[Fault]:
    """Return the faults; none where part of the text could not be read, since that may be what uses the rest."""
    if text.faults:
        return []
    return [
        *_check_macros(text),
        *_check_imports(text),
        *_check_scopes_of_bindings(text),
        *_check_scopes_of_references(text),
    ]


def _check_macros(text: Text) -> list[Fault]:
    faults = []
    defined, used = macros_in(text)
    for binding in text.bindings:
        if binding.is_macro and binding.selector not in used and CAPITALS.match(binding.selector):
            message = f"Every macro is used. Received `{binding.selector}`, which nothing refers to."
            hint = did_you_mean(binding.selector, used - defined, is_short_listed=False)
            hint = hint or did_you_mean(binding.selector, defined & used, is_short_listed=False)
            hint = hint or f"Refer to it as %{binding.selector}, or remove the line."
            faults.append(Fault(binding.place, message, hint))
    return faults


def _check_imports(text: Text) -> list[Fault]:
    faults = []
    for source in text.sources:
        file_text = [binding for binding in text.bindings if binding.place.file == source.file]
        roots = {selector.partition(".")[0] for binding in file_text for selector in uses(binding)}
        for found in source.imports:
            if found.bound_name not in roots and modules.missing_part(found.module) is None:
                message = f"Every import is used in its own file. Received `{found.statement.format()}`, which is not."
                unknown = roots - {other.bound_name for other in source.imports}
                hint = did_you_mean(found.bound_name, unknown, is_short_listed=False)
                faults.append(Fault(found.place, message, hint or "Remove the line, or use what it provides."))
    return faults


def _references(binding: Binding) -> list[Reference]:
    return [leaf for leaf in leaves(binding.value) if isinstance(leaf, Reference)]


def _check_scopes_of_bindings(text: Text) -> list[Fault]:
    """Refuse a scope that no reference enters: only @scope/name enters one."""
    named = {reference.scope for binding in text.bindings for reference in _references(binding)} - {""}
    entered = named | {binding.selector for binding in text.bindings if binding.is_macro}  # gin enters it for a macro
    faults = []
    for binding in text.bindings:
        if binding.scope and not binding.is_macro and not any(within(scope, binding.scope) for scope in entered):
            message = f"Every scope is entered by a reference. Received `{binding.scope}/`, which none enters."
            hint = did_you_mean(binding.scope, named, is_short_listed=False)
            hint = hint or f"Refer to it: @{binding.scope}/{binding.selector}"
            faults.append(Fault(binding.place, message, hint))
    return faults


def _check_scopes_of_references(text: Text) -> list[Fault]:
    """Refuse a scope in a reference that is a slip of the pen: it has no bindings and is like one that has.

    Another scope without bindings is allowed: a base file opens it so that a file that includes it may bind there.
    """
    bound = {binding.scope for binding in text.bindings if binding.scope}
    faults = []
    for binding in text.bindings:
        for reference in _references(binding):
            scope = reference.scope
            if not scope or any(within(other, scope) for other in bound):
                continue
            close = nearest(scope, bound, count=1, likeness=0.75)
            if close or "." in scope or "/" in scope:
                message = f"A scope is one that bindings stand in. Received `{scope}/` in {reference}, with none."
                hint = f"Did you mean {replace(reference, scope=close[0])}?" if close else ""
                faults.append(Fault(binding.place, message, hint or did_you_mean(scope, bound, "@")))
    return faults
