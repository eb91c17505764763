"""Slips of the pen in every line of every shipped configuration are refused before anything is built."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components.interfaces import UserError
from pipeline import configs

FILES = [str(Path(__file__).parent / "toys" / "good.gin"), *configs.shipped()]
FAST = ("good", "quickstart", "vae_tpu")
MARKED = [
    pytest.param(name, id=Path(name).stem, marks=[] if Path(name).stem in FAST else pytest.mark.slow) for name in FILES
]
BINDING = re.compile(r"(?P<name>[\w./]+) = (?P<value>.+)$")


def drop_a_letter_on_the_left(line: str) -> Iterator[str]:
    if found := BINDING.match(line):
        word = max(re.findall(r"\w+", found["name"]), key=len)
        yield line.replace(word, word[:2] + word[3:], 1)


def drop_a_letter_on_the_right(line: str) -> Iterator[str]:
    for mark, name in re.findall(r"([@%])([\w./]+)", line):
        last = name.split(".")[-1]
        yield line.replace(mark + name, mark + name.removesuffix(last) + last[:1] + last[2:], 1)


def swap_the_type(line: str) -> Iterator[str]:
    if (found := BINDING.match(line)) and re.match(r"-?[\d.]", found["value"]):
        yield f"{found['name']} = '{found['value']}'"


def unquote(line: str) -> Iterator[str]:
    if (found := BINDING.match(line)) and re.fullmatch(r"'[a-z]\w*'", found["value"]):
        yield line.replace("'", "")


def repeat(line: str) -> Iterator[str]:
    if BINDING.match(line) and line[-1] not in "[{(":
        yield f"{line}\n{line}"


def move_to_a_dead_scope(line: str) -> Iterator[str]:
    if "." in line.partition(" = ")[0] and BINDING.match(line):
        yield f"nowhere/{line.rpartition('/')[2] if '@' not in line else line}"


def remove_an_import(line: str) -> Iterator[str]:
    if re.match(r"(from|import) ", line):
        yield ""


def misspell_an_import(line: str) -> Iterator[str]:
    if re.match(r"(from|import) ", line) and "__gin__" not in line:
        yield line[:-2] + line[-1]


MUTATIONS = [
    value for value in list(globals().values()) if isinstance(value, Callable) and value.__module__ == __name__
]
MUTATIONS = [value for value in MUTATIONS if not isinstance(value, type)]


@pytest.fixture(scope="module")
def flat_lines() -> dict[str, list[str]]:
    return {}


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
@pytest.mark.parametrize("name", MARKED)
def test_parse_slip_in_any_line_is_refused_with_its_line(name, mutate, flat_lines, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    if name not in flat_lines:
        text = configs.parse([name]).operative_text()
        flat_lines[name] = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    lines = flat_lines[name]
    accepted = []
    for number, line in enumerate(lines):
        for changed in mutate(line):
            Path("slip.gin").write_text("\n".join([*lines[:number], changed, *lines[number + 1 :]]) + "\n")
            try:
                configs.parse(["slip"])
                accepted.append(changed)
            except UserError as error:
                assert re.search(r"slip\.gin:\d+: ", str(error)) or "slip.gin: " in str(error)
    assert accepted == []
