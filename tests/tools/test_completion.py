"""Completion, asked of a real bash."""

import shutil
import subprocess

import pytest

from pipeline import configs
from tools import completion

BASH = shutil.which("bash")


def complete(*words: str) -> list[str]:
    """Return what bash offers for the last of `words`, which are cut at "=" as bash cuts them."""
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _gantry; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        [BASH, "--norc", "-c", f"{completion.script()}\n{asked}"], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash")


@pytest.mark.parametrize(
    "lead", [["gantry"], ["python", "-m", "pipeline.main"], ["/usr/bin/python3", "-m", "pipeline.main"]]
)
@pytest.mark.parametrize("rest", [["--gin_file", "=", "qui"], ["--gin_file=qui"], ["--gin_file", "qui"]])
def test_shipped_file_is_completed(lead, rest) -> None:
    (found,) = complete(*lead, *rest)
    assert found.removeprefix("--gin_file=") == "quickstart.gin"


def test_all_shipped_files_are_offered_after_the_equals_sign() -> None:
    assert complete("gantry", "--gin_file", "=") == [f"{name}.gin" for name in configs.shipped()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--dry"], ["--dry_run"]),
        (["--gin"], ["--gin_file=", "--gin_param="]),
        (["--dry_run", "--overw"], ["--overwrite"]),
        (["--mode", "=", "sa"], ["sample"]),
        (["--mode=sa"], ["--mode=sample"]),
        (["--output", "=", "x"], []),
    ],
)
def test_flag_and_its_values_are_completed(words, found) -> None:
    assert complete("gantry", *words) == found


def test_other_python_programs_are_left_alone() -> None:
    assert complete("python", "other.py", "--gin") == []
