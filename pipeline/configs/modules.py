"""Finds modules and what they define without importing them, for the checks that come before anything heavy."""

import ast
import functools
import importlib.machinery
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path

_OURS = ("components", "pipeline")
_COMMON_ALIASES = {"tf": "tensorflow", "np": "numpy"}


def missing_part(module: str) -> str | None:
    """Return the shortest part of a dotted module name that does not exist; None where all of it seems to.

    Only folders are looked at. A package that makes submodules as it is imported is given the benefit of the doubt
    by nobody here: Keras, TensorFlow and ours have a file for each module.
    """
    folders: Iterable[str] | None = None
    parts = module.split(".")
    for depth, part in enumerate(parts, start=1):
        name = ".".join(parts[:depth])
        spec = _spec(name, part, folders)
        if spec is None:
            return name
        folders = spec.submodule_search_locations
        if folders is None and depth < len(parts):
            return ".".join(parts[: depth + 1])
    return None


def _spec(name: str, part: str, folders: Iterable[str] | None) -> importlib.machinery.ModuleSpec | None:
    if name in sys.modules:
        return sys.modules[name].__spec__ or importlib.machinery.ModuleSpec(name, None)
    if folders is None:
        try:
            return importlib.util.find_spec(part)
        except (ImportError, ValueError):
            return None
    return importlib.machinery.PathFinder.find_spec(name, list(folders))


def siblings(module: str) -> list[str]:
    """Return the modules beside `module`, as dotted names: what may have been meant."""
    parent, _, _ = module.rpartition(".")
    if not parent:
        return [*_OURS, "keras", "tensorflow"]
    spec = importlib.util.find_spec(parent.partition(".")[0]) if missing_part(parent) is None else None
    folders = list(spec.submodule_search_locations or []) if spec else []
    for part in parent.split(".")[1:]:
        folders = [str(Path(folder) / part) for folder in folders]
    return [f"{parent}.{found.name}" for found in pkgutil.iter_modules(folders)]


@functools.cache
def _own_modules() -> dict[str, Path]:
    """Return {dotted name: file} of every module of this project."""
    found = {}
    for package in _OURS:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(folder).rglob("*.py")):
                if path.stem != "__init__":
                    inner = path.relative_to(folder).with_suffix("").parts
                    found[".".join([package, *inner])] = path
    return found


@functools.cache
def _definitions(path: Path) -> frozenset[str]:
    """Return the functions and classes that a file defines at its top."""
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    kinds = (ast.FunctionDef, ast.ClassDef)
    return frozenset(node.name for node in body if isinstance(node, kinds) and not node.name.startswith("_"))


def own_module_names() -> list[str]:
    """Return the last names of this project's modules, which files usually import."""
    return [name.rpartition(".")[2] for name in _own_modules()]


def import_line_for(selector: str) -> str:
    """Return the remedy for a selector whose first name no import provides; empty where nothing fits.

    Args:
      selector: as written, such as `gan.alternating` or `alternating`.
    """
    root, *rest = selector.split(".")
    for name in _own_modules():
        package, _, last = name.rpartition(".")
        if last == root:
            return f"Add the line: from {package} import {last}"
    for name, path in _own_modules().items():
        if root in _definitions(path):
            package, _, last = name.rpartition(".")
            return f"Add the line: from {package} import {last}, and write {last}.{selector}"
    if root in _COMMON_ALIASES:
        return f"Add the line: import {_COMMON_ALIASES[root]} as {root}"
    if rest and missing_part(root) is None:
        return f"Add the line: import {root}"
    return ""
