"""The import rule, and the shape of the code, read off the source."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = {
    f"components.{name}"
    for name in ("interfaces", "errors", "moment", "draws", "class_mixture", "outside", "dependence", "per_example")
}
SOURCES = sorted(p for folder in ("components", "pipeline", "tools") for p in (ROOT / folder).rglob("*.py"))


def imports(source: str) -> set[str]:
    """Return the full names of all modules that a source imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return found


def faults(path: str, source: str) -> list[str]:
    """Return what a file at `path`, relative to the root, imports against the rule."""
    top, _, rest = path.partition("/")
    area = rest.partition("/")[0]
    wrong = []
    for name in sorted(imports(source)):
        within = name.split(".")
        if within[0] == "gin" and not path.startswith("pipeline/configs"):
            wrong.append(f"{path} imports {name}: only pipeline/configs imports gin")
        if top == "components" and within[0] in ("pipeline", "tools"):
            wrong.append(f"{path} imports {name}: components know no pipeline")
        is_component = within[0] == "components" and len(within) > 1 and ".".join(within[:2]) not in SHARED
        if is_component and top == "components" and within[1] != area:
            wrong.append(f"{path} imports {name}: an area knows interfaces and itself")
        if is_component and top == "pipeline":
            wrong.append(f"{path} imports {name}: the pipeline knows components through the experiment only")
    return wrong


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_source_keeps_the_import_rule(path) -> None:
    assert not faults(str(path.relative_to(ROOT)), path.read_text())


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("components/stepper/update.py", "from components.objectives import gan"),
        ("components/stepper/update.py", "import components.objectives.gan"),
        ("components/stepper/update.py", "from pipeline import build"),
        ("components/stepper/update.py", "def f():\n    import gin"),
        ("pipeline/build.py", "from components.stepper import strategy"),
        ("pipeline/build.py", "from gin import config"),
    ],
)
def test_import_rule_broken_is_noticed(path, source) -> None:
    assert faults(path, source)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_source_is_small_and_has_no_assert(path) -> None:
    text = path.read_text()
    # The interfaces are read from top to bottom, as one text.
    longest = 660 if path.name == "interfaces.py" else 300
    assert len(text.splitlines()) <= longest, "a file is one idea"
    assert path.stem not in ("utils", "misc", "helpers"), "a module is named for its content"
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: asserts vanish under python -O"
        if isinstance(node, ast.FunctionDef):
            documented = ast.get_docstring(node, clean=False) or ""
            length = node.end_lineno - node.lineno + 1 - len(documented.splitlines())
            assert length <= 40, f"{node.name} has {length} lines beside its docstring"


def test_module_names_are_unique_across_areas() -> None:
    names = [p.stem for p in (ROOT / "components").rglob("*.py") if p.stem != "__init__" and p.parent.name != "gin"]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, "a gin file names modules by their last word"


def test_gin_files_begin_with_dynamic_registration_and_gin_is_no_package() -> None:
    for path in (ROOT / "gin").rglob("*.gin"):
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        assert lines[0] == "from __gin__ import dynamic_registration", path
    assert not list((ROOT / "gin").rglob("__init__.py")), "it would shadow the library"
