"""Finds the lines of a configuration behind an error that a part raised when it was called."""

import re
import traceback

from components.errors import UserError
from pipeline.configs.parts import Parts
from pipeline.configs.statements import Binding, Macro

# gin appends this to the message of whatever is raised below a configured call, the innermost call first.
_CALL = re.compile(r"\n  In call to configurable '([^']+)' \((.*)\)(?: in scope '([^']*)')?")

# `Part.parameter`, `parameter`, or either with an index or a value after it.
_NAME = re.compile(r"`([A-Za-z_][\w.]*)(?:\[[^`]*\])?(?: = [^`]*)?`")


def is_third_party(parts: Parts, error: BaseException) -> bool:
    """Return whether the innermost configured call is of code that is not of this project."""
    found = _CALL.search(str(error))
    called = [target for name, target in parts.targets.items() if found and name.rpartition(".")[2] == found.group(1)]
    return bool(called) and all(
        target.__module__.partition(".")[0] not in ("components", "pipeline") for target in called
    )


def explain(parts: Parts, error: BaseException, made: object = None) -> str:
    """Return the message without addresses of Python objects, with the lines behind it.

    Args:
      parts: the configuration.
      error: raised below a configured call, or by `made`.
      made: the part that raised the error after it had been made.
    """
    text = str(error)
    found = _CALL.search(text)
    message = text[: found.start()] if found else text
    if not isinstance(error, UserError):
        message += _origin(error)
    if found is None and made is None:
        return _told(message, _named(parts, message))
    name, scope = (found.group(1), found.group(3) or "") if found else (type(made).__name__, "")
    bound = [
        binding
        for target in parts.targets
        if target.rpartition(".")[2] == name
        for binding in parts.in_scope(target, scope).values()
    ]
    bound = [binding for binding in bound if re.search(rf"\b{binding.parameter}\b", message)] or bound
    bound = bound or [one for one in parts.effective.values() if _names(parts, one, name)]
    bound = list({id(one): one for one in [*bound, *_named(parts, message)]}.values())
    bound += [parts.macros[one.value.name] for one in bound if isinstance(one.value, Macro)]
    shown = f"{scope}/{name}" if scope else name
    return _told(
        message + f"\n  In the call of `{shown}`" + ("." if not bound else ", which these lines configure:"), bound
    )


def _names(parts: Parts, binding: Binding, name: str) -> bool:
    return any(target.rpartition(".")[2] == name for _, target in parts.references(binding))


def _told(message: str, bound: list[Binding]) -> str:
    return "\n".join([message, *(f"  {binding.place}: {binding.place.text.strip()}" for binding in bound)])


def _named(parts: Parts, message: str) -> list[Binding]:
    """Return the bindings of the parameters that a message names in backquotes: `Part.parameter`, or `parameter`."""
    found = []
    for token in _NAME.findall(message):
        owner, _, parameter = token.rpartition(".")
        of = {
            name
            for _, name, bound in parts.effective
            if bound == parameter and owner.rpartition(".")[2] in ("", name.rpartition(".")[2])
        }
        if len(of) == 1:  # else it is not known which is meant
            found += [binding for key, binding in parts.effective.items() if key[1:] == (*of, parameter)]
    return found


def _origin(error: BaseException) -> str:
    """Return where an error that is no message of ours arose, for who wrote the part."""
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    kind = type(error).__name__
    return "".join(f"\n  {kind}, raised in {one.name} ({one.filename}:{one.lineno})." for one in frames)
