"""Every kind of broken configuration is refused with file, line and a hint that names the right thing."""

import runpy
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.interfaces import UserError
from pipeline import configs

TOYS = Path(__file__).parent / "toys"
GOOD = (TOYS / "good.gin").read_text()


class Broken(NamedTuple):
    """One mistake made in the good text."""

    name: str
    old: str  # empty: `new` is added at the end
    new: str
    line: str  # the message points at a line that holds this
    says: tuple[str, ...]
    faults: int = 1


def _table() -> list[Broken]:
    files = sorted(Path(__file__).parent.glob("broken_*.py"))
    return [Broken(*row) for file in files for row in runpy.run_path(str(file))["BROKEN"]]  # no package: read as text


def _refusal(text: str, folder: Path, *params: str) -> str:
    path = folder / "broken.gin"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        configs.parse([str(path)], params)
    return str(caught.value)


@pytest.mark.parametrize("case", _table(), ids=lambda case: case.name)
def test_parse_broken_text_is_refused_with_line_and_hint(case, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not case.old or case.old in GOOD
    text = GOOD.replace(case.old, case.new, 1) if case.old else f"{GOOD}{case.new}\n"
    message = _refusal(text, tmp_path)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if case.line and case.line in line]
    places = [f"broken.gin:{number}: " for number in lines] or ["broken.gin: "]
    assert any(place in message for place in places), message
    for words in case.says:
        assert words in message
    assert sum(line.startswith("broken.gin") for line in message.splitlines()) == case.faults, message


def test_parse_several_faults_are_told_at_once(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = GOOD.replace("= 3000", "= '3000'").replace("= 0.5", "= 1.5").replace("100", "-1") + "UNUSED = 1\n"
    message = _refusal(text, tmp_path)
    assert "has 4 faults" in message
    for line in (11, 14, 38, 39):
        assert f"broken.gin:{line}: " in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x00\x01\x02PNG", "plain text"),
        (b"\xff\xfe\xfa", "UTF-8"),
        (b"model:\n  layers: 3\n  rate: 0.1\ndata: mnist\n", "no line is gin"),
        (b"import os\n\ndef f(x):\n    return os.path.join(x)\n\nif True:\n    f(1)\n", "no line is gin"),
        (b'{"a": 1,\n "b": 2}\n', "Received"),
        (b"lorem ipsum dolor\nsit amet\n", "no line is gin"),
        (b"", "binds nothing"),
    ],
)
def test_parse_file_that_is_no_gin_is_refused_in_one_sentence(content, words, tmp_path) -> None:
    path = tmp_path / "other.gin"
    path.write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        configs.parse([str(path)]).experiment()
    assert "other.gin" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 4


def test_parse_windows_line_ends_and_byte_order_mark_are_read(tmp_path) -> None:
    path = tmp_path / "windows.gin"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    configs.parse([str(path)])


def test_parse_import_error_inside_a_module_names_what_is_missing(tmp_path, monkeypatch) -> None:
    (tmp_path / "toy_needy.py").write_text("import package_that_nobody_has\n\ndef f(): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    text = GOOD.replace("import toy_run", "import toy_needy\nimport toy_run") + "toy_needy.f.x = 1\n"
    message = _refusal(text, tmp_path)
    assert "Install what it needs: package_that_nobody_has" in message


TOKENS = [
    *("=", ".", "/", "@", "%", "()", "(", ")", "[", "]", "{", "}", ",", ":", "'", '"', "'''", "\\\n", "\n", "\t", " "),
    *("#", "-", "*", ";", "$", "?", "\0", "é", "0x", "1e999", "1_0", "007", "...", "nan", "None", "true", "b''"),
    *("import ", "from ", "include ", "as ", "gin.macro", "gin.singleton", "gin.constant", "%gin.REQUIRED"),
    *("generator/", "toy_run", "keras.optimizers", "experiment.Experiment", "__gin__", "SEED", "[" * 40, "9" * 5000),
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Return the good text after a few cuts, insertions, swaps and repetitions."""
    text = GOOD
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 25)))
        kind = draw(st.sampled_from(["cut", "insert", "repeat", "line", "swap"]))
        if kind == "cut":
            text = text[:start] + text[end:]
        elif kind == "insert":
            text = text[:start] + draw(st.sampled_from(TOKENS)) + text[start:]
        elif kind == "repeat":
            text = text[:end] + text[start:end] + text[end:]
        else:
            lines = text.splitlines(keepends=True) or [""]
            first, second = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
            if kind == "line":
                del lines[first]
            else:
                lines[first], lines[second] = lines[second], lines[first]
            text = "".join(lines)
    return text


@settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(text=mutated())
def test_parse_mutated_text_succeeds_or_raises_a_user_error(text, tmp_path_factory) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.gin"
    path.write_text(text)
    try:
        configs.parse([str(path)]).operative_text()
    except UserError as error:
        assert "mutated.gin" in str(error)


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(param=st.lists(st.sampled_from([*TOKENS, "toy_gan.alternating.loss", " = ", "@toy_losses.hinge"])).map("".join))
def test_parse_any_gin_param_succeeds_or_raises_a_user_error(param) -> None:
    try:
        configs.parse([str(TOYS / "good.gin")], [param])
    except UserError as error:
        assert str(error)
