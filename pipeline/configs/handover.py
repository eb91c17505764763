"""Gives a checked configuration to gin, and reads from gin what was used. All of gin's private names are used here."""

from collections.abc import Iterable, Mapping
from typing import Any

import gin
from gin import config as gin_config
from gin import config_parser

from pipeline.configs.checks import REGISTRATION
from pipeline.configs.parts import Parts
from pipeline.configs.statements import Binding, Macro, Reference

_REGISTRATION_STATEMENT = config_parser.ImportStatement(
    module=".".join(REGISTRATION.split()[1::2]),
    is_from=True,
    alias=None,
    location=config_parser.Location(None, 0, None, REGISTRATION),
)


def forget() -> None:
    """Clear all that gin remembers of earlier configurations, so that one process can read many."""
    gin.clear_config()
    for selector, configurable in list(gin_config._REGISTRY.items()):
        if configurable.module != "gin":
            gin_config._REGISTRY.pop(selector)
            gin_config._INVERSE_REGISTRY.pop(configurable.wrapped, None)


def bind(parts: Parts) -> None:
    """Bind in gin every binding that takes effect, each under the imports of its own file."""
    by_file: dict[str, list[Binding]] = {}
    for binding in parts.effective.values():
        by_file.setdefault(binding.place.file, []).append(binding)
    for file, bindings in by_file.items():
        with gin_config._parse_scope() as context:
            context.process_import(_REGISTRATION_STATEMENT)
            for found in parts.text.imports_of(file):
                context.process_import(found.statement)
            for binding in bindings:
                _bind(binding)
    gin.finalize()


def _bind(binding: Binding) -> None:
    value = _to_gin(binding.value)
    if binding.is_macro:
        gin.bind_parameter((binding.name, "gin.macro", "value"), value)
    else:
        gin.bind_parameter((binding.scope, binding.selector, binding.parameter), value)


def _to_gin(value: Any) -> Any:
    """Return a value with gin's own references in place of ours."""
    if isinstance(value, Macro):
        return gin_config.ParserDelegate().macro(value.name)
    if isinstance(value, Reference):
        scoped = f"{value.scope}/{value.selector}" if value.scope else value.selector
        return gin_config.ConfigurableReference(scoped, value.evaluate)
    if isinstance(value, dict):
        return {_to_gin(key): _to_gin(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_to_gin, value))
    return value


def configurable(target: Any) -> Any:
    """Return the form of a function or class that receives what is bound to it."""
    return gin.get_configurable(target)


def calls(parts: Parts) -> dict[tuple[str, str], set[str]]:
    """Return {(scope of a call, part): parameters that its callers left to gin}, over every call until now."""
    names = {
        gin_config._INVERSE_REGISTRY[target].selector: name
        for target, name in parts.names.items()
        if target in gin_config._INVERSE_REGISTRY
    }
    found: dict[tuple[str, str], set[str]] = {}
    with gin_config._OPERATIVE_CONFIG_LOCK:
        for (scope, selector), values in gin_config._OPERATIVE_CONFIG.items():
            if selector == "gin.macro":
                found[scope, ""] = set(values)
            elif selector in names:
                found[scope, names[selector]] = set(values)
    return found


def macros_used(found: Mapping[tuple[str, str], Iterable[str]]) -> set[str]:
    """Return the names of the macros among `calls`."""
    return {scope for scope, name in found if not name}
