"""The list of components: found by inspection, and each gin line is one that a configuration takes."""

import subprocess
import sys
from pathlib import Path

import pytest

import components
from pipeline import configs
from tools import catalogue, list_components

PARTS = catalogue.parts()
SLOTS = {slot.name: slot for slot in catalogue.slots(PARTS)}


@pytest.fixture
def listed(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs the tool in this process and returns (exit status, output, errors)."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")  # no filter process for a test

    def run(*arguments: str) -> tuple[int, str, str]:
        status = list_components.main(["list_components", *arguments])
        return (status, *capsys.readouterr())

    return run


def values(slot: str) -> set[str]:
    return {fit.value for fit in SLOTS[slot].fits}


def test_slot_of_a_loss_takes_every_adversarial_loss_and_nothing_else() -> None:
    from components.loss_library import adversarial

    own = {
        name for name, value in vars(adversarial).items() if getattr(value, "__module__", "") == adversarial.__name__
    }
    public = {name for name in own if not name.startswith("_")}
    assert values("gan.alternating.loss") == {f"@adversarial.{name}" for name in public} != set()


@pytest.mark.parametrize(
    ("slot", "value"),
    [
        ("experiment.Experiment.data", "@tfds_source.TFDSSource()"),
        ("experiment.Experiment.networks", "{'generator': @dcgan.generator}"),
        ("experiment.Experiment.updates", "@gan.alternating()"),
        ("experiment.Experiment.strategy", "@strategy.select"),
        ("experiment.Experiment.writers", "[@metrics_file.MetricsFile]"),
        ("gan.alternating.penalties", "[@penalties.wgan_gp]"),
        ("gan.alternating.generator", "@interfaces.Player()"),
        ("interfaces.Player.optimizer", "@keras.optimizers.Adam"),
    ],
)
def test_slot_takes_what_is_meant_for_it(slot, value) -> None:
    assert value in values(slot)


@pytest.mark.parametrize(
    ("slot", "value"),
    [
        ("gan.alternating.penalties", "adversarial"),
        ("gan.alternating.loss", "penalties"),
        ("gan.alternating.augmentations", "consistency"),
        ("experiment.Experiment.networks", "@gan."),
        ("experiment.Experiment.strategy", "Hardware"),
        ("interfaces.Player.optimizer", "optimizers.Optimizer"),
    ],
)
def test_slot_takes_nothing_of_another_kind(slot, value) -> None:
    assert not [one for one in values(slot) if value in one]


def test_parameter_that_the_program_fills_is_no_slot() -> None:
    assert "image_sampler.ImageSampler.networks" not in SLOTS and "penalties.wgan_gp.critic" not in SLOTS


def test_every_gin_line_for_a_loss_or_penalty_is_taken_by_a_configuration() -> None:
    for name in ("gan.alternating.loss", "gan.alternating.penalties", "interfaces.Player.optimizer"):
        for fit in SLOTS[name].fits:
            scope = "generator/" if "Player" in name else ""
            lines = f"{fit.part.import_line}\n{scope}{name} = {fit.value}"
            configs.parse(["quickstart.gin"], [lines])


def test_new_component_enters_by_itself(tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "new_area"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""New."""\n')
    (folder / "mine.py").write_text(
        "import tensorflow as tf\nfrom components.interfaces import PlayerLosses\n\n\n"
        "def exponential(real_logits: tf.Tensor, fake_logits: tf.Tensor, *, sharpness: float = 1.0) -> PlayerLosses:\n"
        '    """Exponential loss."""\n    return PlayerLosses(fake_logits, real_logits)\n'
    )
    monkeypatch.setattr(components, "__path__", [*components.__path__, str(tmp_path)])
    try:
        slots = {slot.name: slot for slot in catalogue.slots(catalogue.parts())}
        assert "@mine.exponential" in {fit.value for fit in slots["gan.alternating.loss"].fits}
    finally:
        for name in [name for name in sys.modules if name.startswith("components.new_area")]:
            del sys.modules[name]


def test_list_has_one_line_each_with_gin_line_signature_paper_and_meaning(listed) -> None:
    status, text, _ = listed()
    (line,) = [one for one in text.splitlines() if "gan.alternating.loss = @adversarial.hinge" in one]
    assert status == 0
    for words in ("(real_logits, fake_logits)", "Lim and Ye, 2017, arXiv:1705.02894", "Hinge loss"):
        assert words in line
    assert "label_smoothing=0.0" in text and len({one for one in text.splitlines() if one[:1] not in (" ", "")}) > 5


@pytest.mark.parametrize("name", ["hinge", "adversarial.hinge", "@adversarial.hinge"])
def test_name_of_a_component_tells_all_about_it(name, listed) -> None:
    status, text, _ = listed(name)
    assert status == 0
    for line in ("from components.loss_library import adversarial", "gan.alternating.loss = @adversarial.hinge"):
        assert f"  {line}" in text.splitlines()
    assert "real_logits: float32[B], of real images." in text and "-> PlayerLosses" in text


def test_name_of_a_parameter_lists_what_it_takes(listed) -> None:
    status, text, _ = listed("gan.alternating.loss")
    assert status == 0 and len(text.splitlines()) == 1 + len(SLOTS["gan.alternating.loss"].fits)


@pytest.mark.parametrize(
    ("arguments", "words"), [(["adversarial.hing"], "adversarial.hinge"), (["wasserstien"], "adversarial.wasserstein")]
)
def test_unknown_name_is_answered_with_the_nearest(arguments, words, listed) -> None:
    status, text, errors = listed(*arguments)
    assert status == 2 and not text and words in errors


def test_two_names_are_refused(listed) -> None:
    assert listed("hinge", "minimax")[0] == 2


@pytest.mark.slow
def test_tool_runs_as_a_module_from_any_folder(repository, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.list_components", "hinge"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(repository), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and "@adversarial.hinge" in done.stdout, done.stderr
