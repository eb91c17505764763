"""--help: complete, grouped, and at once."""

import subprocess
import sys

import pytest
from absl import flags

from pipeline import configs, main
from pipeline.help_text import help_text


@pytest.fixture
def text() -> str:
    return help_text(flags.FLAGS, main.defined_flags(), configs.shipped())


def test_help_shows_every_flag_in_a_group(text) -> None:
    assert len(main.defined_flags()) > 10
    for name in main.defined_flags():
        assert f"  --{name}" in text
    assert "Other:" not in text and "repeat this option" not in text
    for title in ("What to run:", "Overriding:", "Using a run:", "Safety:"):
        assert title in text


def test_help_has_examples_shipped_files_quoting_and_fits_a_terminal(text) -> None:
    assert text.count("python -m pipeline.main --") == 5
    assert all(name in text for name in configs.shipped())
    assert "--gin_param='gan.alternating.loss = @adversarial.hinge'" in text and "single quotes" in text
    assert all(len(line) <= 106 for line in text.splitlines())


def test_help_of_a_flag_without_a_group_is_shown_all_the_same() -> None:
    values = flags.FlagValues()
    flags.DEFINE_integer("unheard_of", 7, "New.", flag_values=values)
    text = help_text(values, ["unheard_of"], [])
    assert "Other:" in text and "--unheard_of" in text and "New. [7]" in text


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--gin_fil=x"]])
def test_answer_waits_for_no_heavy_library(arguments, repository) -> None:
    heavy = ("tensorflow", "keras", "numpy", "plotly", "PIL", "scipy", "tensorflow_datasets")
    code = (
        f"import sys; from pipeline import main; main.main(sys.argv); sys.exit(any(m in sys.modules for m in {heavy}))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=repository, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_reader_that_goes_away_is_no_fault(repository) -> None:
    command = f"{sys.executable} -m pipeline.main --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=repository, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0" and not done.stderr
