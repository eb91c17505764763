"""Finds the lines of a configuration behind an error that a part raised when it was called."""

import re

from pipeline.configs.parts import Parts
from pipeline.configs.statements import Macro

# gin appends this to the message of whatever is raised below a configured call, the innermost call first.
_CALL = re.compile(r"\n  In call to configurable '([^']+)' \((.*)\)(?: in scope '([^']*)')?")


def is_third_party(parts: Parts, error: BaseException) -> bool:
    """Return whether the innermost configured call is of code that is not of this project."""
    found = _CALL.search(str(error))
    called = [target for name, target in parts.targets.items() if found and name.rpartition(".")[2] == found.group(1)]
    return bool(called) and all(
        target.__module__.partition(".")[0] not in ("components", "pipeline") for target in called
    )


def explain(parts: Parts, error: BaseException) -> str:
    """Return the message without addresses of Python objects, with the lines that bind the innermost part.

    Args:
      parts: the configuration.
      error: raised below a configured call.
    """
    text = str(error)
    found = _CALL.search(text)
    if found is None:
        return text
    name, scope = found.group(1), found.group(3) or ""
    message = text[: found.start()]
    bound = [
        binding
        for target in parts.targets
        if target.rpartition(".")[2] == name
        for binding in parts.in_scope(target, scope).values()
    ]
    bound = [binding for binding in bound if re.search(rf"\b{binding.parameter}\b", message)] or bound
    bound += [parts.macros[one.value.name] for one in bound if isinstance(one.value, Macro)]
    shown = f"{scope}/{name}" if scope else name
    head = f"  In the call of `{shown}`" + (", which these lines configure:" if bound else ".")
    return "\n".join([message, head, *(f"  {binding.place}: {binding.place.text.strip()}" for binding in bound)])
