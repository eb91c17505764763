"""Finding, reading, overriding and writing configurations, and what had no effect."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import keras
import pytest

from components.interfaces import UserError
from pipeline import configs
from pipeline.configs import locate
from pipeline.experiment import Experiment

TOYS = Path(__file__).parents[1] / "gin" / "toys"
GOOD = (TOYS / "good.gin").read_text()
RATE = "generator/keras.optimizers.Adam.learning_rate"


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOYS))


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that writes a file below the working directory and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write_file(text: str, name: str = "run.gin") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    return write_file


@pytest.fixture
def shipped_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that stands for the shipped one, with a base file and a file that includes it."""
    root = tmp_path / "shipped"
    (root / "base").mkdir(parents=True)
    (root / "base" / "toy.gin").write_text(GOOD.replace("SEED = 0", "SEED = %gin.REQUIRED"))
    (root / "toy_mnist.gin").write_text("include 'base/toy.gin'\nSEED = 5\n")
    monkeypatch.setattr(locate, "shipped_root", lambda: root)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return root


def build(experiment: Experiment) -> None:
    """Call everything that a run would call."""
    for make in experiment.networks.values():
        make(experiment.data.spec)
    for update in experiment.updates:
        for player in update.players.values():
            player.optimizer()
    experiment.strategy()
    experiment.stepper(networks={}, copy_network=None, updates=[], global_batch_size=1, seed=0)
    experiment.checkpointer("", {})
    experiment.sampler({})


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        act()
    return str(caught.value)


# --- find ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["toy_mnist", "toy_mnist.gin", "base/toy"])
def test_find_shipped_name_from_any_folder_is_found(name, shipped_folder) -> None:
    assert configs.find(name).is_relative_to(shipped_folder)


def test_find_file_as_given_wins_over_a_shipped_one(shipped_folder) -> None:
    Path("toy_mnist.gin").write_text("")
    assert configs.find("toy_mnist").resolve() == Path("toy_mnist.gin").resolve()


def test_find_miss_lists_searched_places_and_nearest_names(shipped_folder) -> None:
    message = refusal(lambda: configs.find("toy_mnits"))
    assert "toy_mnits.gin" in message and str(shipped_folder) in message and "Did you mean `toy_mnist`?" in message


def test_find_folder_is_refused(shipped_folder) -> None:
    assert "is a folder" in refusal(lambda: configs.find(str(shipped_folder)))


def test_shipped_runnable_names_are_listed_without_pieces(shipped_folder) -> None:
    assert configs.shipped() == ["toy_mnist"]


def test_shipped_root_is_not_the_library_gin() -> None:
    assert not (locate.shipped_root() / "__init__.py").exists()


# --- parse -----------------------------------------------------------------------------------------------------------


def test_parse_include_from_any_folder_fills_required(shipped_folder) -> None:
    assert configs.parse(["toy_mnist"]).experiment().seed == 5


def test_parse_include_relative_to_the_including_file_is_found(write) -> None:
    write(GOOD.replace("SEED = 0\n", ""), "deep/pieces/inner.gin")
    assert configs.parse([write("include 'pieces/inner.gin'\nSEED = 3\n", "deep/outer.gin")]).experiment().seed == 3


def test_parse_fault_in_an_included_file_names_that_file(write) -> None:
    write(GOOD.replace("= 3000", "= '3000'"), "inner.gin")
    assert "inner.gin:11: " in refusal(lambda: configs.parse([write("include 'inner.gin'\n")]))


def test_parse_override_above_the_include_is_refused(write) -> None:
    write(GOOD, "inner.gin")
    message = refusal(lambda: configs.parse([write("SEED = 3\ninclude 'inner.gin'\n")]))
    assert "run.gin:1: " in message and "Move the include of inner.gin above this line" in message


def test_parse_file_that_includes_itself_is_refused(write) -> None:
    write("include 'run.gin'\n", "inner.gin")
    assert "does not include itself" in refusal(lambda: configs.parse([write("include 'inner.gin'\n" + GOOD)]))


def test_parse_missing_file_names_the_nearest(write) -> None:
    write(GOOD, "run.gin")
    assert "Did you mean `run`?" in refusal(lambda: configs.parse(["rum"]))


def test_parse_twice_in_one_process_forgets_the_first(write) -> None:
    first = configs.parse([write(GOOD)])
    second = configs.parse([write(GOOD.replace("SEED = 0", "SEED = 1"))])
    assert second.experiment().seed == 1
    with pytest.raises(RuntimeError, match="another was parsed since"):
        first.experiment()


def test_parse_without_tensorflow_refuses_text_before_importing_it(write) -> None:
    name = write(GOOD.replace("= %SEED", "= %SEEED"))
    code = (
        "import sys\nfrom pipeline.configs import checks, sources\n"
        f"assert checks.check(sources.collect([{name!r}], ()))\nassert 'tensorflow' not in sys.modules\n"
    )
    path = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": f"{path}:{TOYS}"}, timeout=60)


@pytest.mark.parametrize("path", ["optimizers.Adam", "keras.src.optimizers.adam.Adam", "keras.Adam"])
def test_parse_two_paths_to_one_part_are_one_binding(path, write, monkeypatch) -> None:
    monkeypatch.setattr("keras.Adam", keras.optimizers.Adam, raising=False)
    text = GOOD.replace(
        "import keras", "from keras import optimizers\nimport keras" if path[0] == "o" else "import keras"
    )
    message = refusal(lambda: configs.parse([write(f"{text}generator/{path}.learning_rate = 1.0\n")]))
    assert "bound once" in message and path in message


def test_experiment_without_bindings_of_it_is_refused(write) -> None:
    assert "binds nothing of it" in refusal(lambda: configs.parse([write("")]).experiment())


def test_experiment_refused_by_its_own_checks_names_lines(write) -> None:
    text = GOOD + "experiment.Experiment.steps_per_loop = 7\n"
    message = refusal(lambda: configs.parse([write(text)]).experiment())
    assert "`steps_per_loop` must divide `log_every`" in message
    assert "run.gin:39: experiment.Experiment.steps_per_loop = 7" in message
    assert "0x" not in message


# --- the command line ------------------------------------------------------------------------------------------------


def test_gin_param_overrides_a_file(write) -> None:
    config = configs.parse([write(GOOD)], ["TRAIN_STEPS = 7", f"{RATE} = 0.5"])
    assert config.experiment().train_steps == 7
    setting = next(one for one in config.settings() if f"{one.part}.{one.name}" == RATE)
    assert (setting.value, setting.source, setting.overrides) == ("0.5", "--gin_param:2", "run.gin:35")
    assert any(one.name == "steps_per_loop" and one.source == "default" for one in config.settings())


def test_gin_param_swaps_a_part_under_the_imports_of_the_files(write) -> None:
    write(GOOD, "inner.gin")
    name = write("include 'inner.gin'\n")
    config = configs.parse([name], ["toy_gan.alternating.loss = @toy_losses.hinge"])
    assert config.experiment().updates[0].objective.loss.__name__ == "hinge"


def test_gin_param_brings_its_own_import(write) -> None:
    text = GOOD.replace("import toy_losses\n", "").replace("@toy_losses.non_saturating", "%gin.REQUIRED")
    params = ["from toy_losses import x", "toy_gan.alternating.loss = @toy_losses.hinge"]
    assert "there is no `toy_losses.x`" in refusal(lambda: configs.parse([write(text)], params))
    params = ["import toy_losses\ntoy_gan.alternating.loss = @toy_losses.hinge"]
    assert configs.parse([write(text)], params).experiment().updates[0].objective.loss.__name__ == "hinge"


def test_gin_param_twice_is_refused(write) -> None:
    assert "bound once" in refusal(lambda: configs.parse([write(GOOD)], ["SEED = 1", "SEED = 2"]))


@pytest.mark.parametrize(
    ("param", "words"),
    [
        ("TRAIN_STEP = 5", "`TRAIN_STEPS`"),
        ("toy_gan.alternating.loss = @toy_losses.hing", "`toy_losses.hinge`"),
        ("toy_gan.alternating.loss = @adversarial.hinge", "nothing imports `adversarial`"),
        ("toy_gan.alternating.los = 3", "`loss`"),
        ("TRAIN_STEPS = many", "Quote it"),
        ("TRAIN_STEPS", "`NAME = value`"),
        ("", "Write a binding"),
        ("TRAIN_STEPS = -1", "greater than 0"),
    ],
)
def test_gin_param_broken_is_refused(param, words, write) -> None:
    message = refusal(lambda: configs.parse([write(GOOD)], [param]).experiment())
    assert words in message and "--gin_param" in message


# --- what had no effect ----------------------------------------------------------------------------------------------


def used(text: str, write: Callable[..., str], *params: str) -> configs.Config:
    config = configs.parse([write(text)], params)
    build(config.experiment())
    config.refuse_unused()
    return config


def test_refuse_unused_after_building_everything_is_silent(write) -> None:
    used(GOOD, write)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "toy_losses.non_saturating.smoothing = 0.1", "was never called"),
        ("= @generator/keras.optimizers.Adam", "= @keras.optimizers.Adam", "in the scope `generator/`"),
        ("", "keras.optimizers.Adam.learning_rate = 1.0", "override wherever it applies"),
        ("", "toy_run.ToyStepper.seed = 1", "gives its own `seed`"),
    ],
)
def test_refuse_unused_idle_binding_is_refused_with_its_line(old, new, words, write) -> None:
    text = GOOD.replace(old, new, 1) if old else f"{GOOD}{new}\n"
    message = refusal(lambda: used(text, write))
    assert words in message and "run.gin:" in message


def test_refuse_unused_before_building_names_everything(write) -> None:
    message = refusal(configs.parse([write(GOOD)]).refuse_unused)
    assert "`TRAIN_STEPS`" in message and RATE in message


@pytest.mark.parametrize(
    ("extra", "params"),
    [
        ("toy_losses.hinge.margin = 2.0\n", ["toy_gan.alternating.loss = @toy_losses.non_saturating"]),
        ("", ["experiment.Experiment.train_steps = 5"]),
        ("", ["toy_networks.generator.latent_dim = 5"]),
        (
            "keras.optimizers.Adam.beta_2 = 0.9\n",
            [f"{s}/keras.optimizers.Adam.beta_2 = 0.5" for s in ("generator", "discriminator")],
        ),
    ],
)
def test_refuse_unused_binding_that_an_override_made_idle_is_left_out(extra, params, write) -> None:
    text = GOOD.replace("@toy_losses.non_saturating", "@toy_losses.hinge") if "hinge" in extra else GOOD
    config = used(text + extra, write, *params)
    operative = config.operative_text()
    again = used(operative, write)
    assert again.operative_text() == operative


def test_refuse_unused_part_made_by_a_macro_counts_as_used(write) -> None:
    text = (
        GOOD.replace("@toy_data.ToySource()", "%DATA") + "DATA = @toy_data.ToySource()\ntoy_data.ToySource.name = 'a'\n"
    )
    config = used(text, write)
    assert config.experiment().data.name == "a"
    assert configs.parse([write(config.operative_text())]).experiment().data.name == "a"


def test_explain_error_of_a_part_names_its_lines_and_no_address(write) -> None:
    config = configs.parse([write(GOOD + "toy_networks.discriminator.width = -3\n")])
    experiment = config.experiment()
    with pytest.raises(UserError) as caught, config.explaining():
        experiment.networks["discriminator"](experiment.data.spec)
    message = str(caught.value)
    assert "In the call of `discriminator`" in message
    assert "run.gin:39: toy_networks.discriminator.width = -3" in message and "0x" not in message


# --- the operative text ----------------------------------------------------------------------------------------------


def test_operative_text_read_again_is_the_same(write) -> None:
    write(GOOD, "inner.gin")
    config = configs.parse([write("include 'inner.gin'\nSEED = 7\n")], ["TRAIN_STEPS = 9"])
    experiment, text = config.experiment(), config.operative_text()
    again = configs.parse([write(text)])
    assert again.operative_text() == text
    assert (again.experiment().seed, again.experiment().train_steps) == (experiment.seed, experiment.train_steps)
    assert "0x" not in text and "include" not in text
    assert configs.parse([write(text)], ["TRAIN_STEPS = 4"]).experiment().train_steps == 4


def test_operative_text_of_files_with_other_names_for_parts_is_the_same(write) -> None:
    inner = GOOD.replace("import toy_losses", "import toy_losses as losses").replace("@toy_losses", "@losses")
    write(inner, "inner.gin")
    outer = (
        "from __gin__ import dynamic_registration\nimport toy_networks as losses\nimport toy_gan\nimport toy_losses\n"
    )
    outer += "include 'inner.gin'\nlosses.discriminator.width = 3\ntoy_gan.alternating.loss = @toy_losses.hinge\n"
    text = configs.parse([write(outer)]).operative_text()
    again = configs.parse([write(text)])
    assert again.operative_text() == text
    assert again.experiment().updates[0].objective.loss.__name__ == "hinge"


@pytest.mark.parametrize("value", ["'a\\'b\"c'", "'# no comment'", "'line\\nbreak'", "'é'", "'" + "x" * 200 + "'"])
def test_operative_text_keeps_any_string(value, write) -> None:
    text = configs.parse([write(GOOD)], [f"toy_data.ToySource.name = {value}"]).operative_text()
    assert configs.parse([write(text)]).experiment().data.name == eval(value)


@pytest.mark.parametrize("value", ["1e300", "1e-300", "0.1", "10", "1_000.5"])
def test_operative_text_keeps_any_number(value, write) -> None:
    text = configs.parse([write(GOOD)], [f"toy_gan.alternating.gradient_penalty_weight = {value}"]).operative_text()
    assert configs.parse([write(text)]).experiment().updates[0].objective.weight == float(value)


# --- differences -----------------------------------------------------------------------------------------------------


def texts(write: Callable[..., str], *params: str) -> tuple[str, str]:
    name = write(GOOD)
    return configs.parse([name]).operative_text(), configs.parse([name], params).operative_text()


def test_differences_same_text_is_none(write) -> None:
    assert configs.differences(*texts(write)) == []


def test_differences_changed_binding_is_one_line(write) -> None:
    assert configs.differences(*texts(write, f"{RATE} = 0.002")) == [f"{RATE}: 0.004 -> 0.002"]


def test_differences_changed_macro_is_told_once(write) -> None:
    assert configs.differences(*texts(write, "TRAIN_STEPS = 4")) == ["TRAIN_STEPS: 3000 -> 4"]


def test_differences_default_that_becomes_bound_is_compared_by_value(write) -> None:
    assert configs.differences(*texts(write, "toy_run.strategy.devices = 1")) == []
    assert configs.differences(*texts(write, "toy_run.strategy.devices = 2")) == ["toy_run.strategy.devices: 1 -> 2"]


def test_differences_macro_replaced_by_its_value_is_none_for_the_binding(write) -> None:
    found = configs.differences(*texts(write, "experiment.Experiment.train_steps = 3000"))
    assert found == ["TRAIN_STEPS: 3000 -> unset"]


def test_differences_ignored_names_are_left_out(write) -> None:
    old, new = texts(write, "TRAIN_STEPS = 4", "SEED = 2")
    assert configs.differences(old, new, ignore={"TRAIN_STEPS"}) == ["SEED: 0 -> 2"]
    assert configs.differences(old, new, ignore=str.isupper) == []


def test_parameters_of_the_command_line_have_places_of_their_own() -> None:
    with pytest.raises(UserError) as caught:
        configs.parse(["quickstart"], ["TRIAN_STEPS = 5", "SEED = 1\nGLOBAL_BATCH_SIZE = 'x'", "SEDE = 3"])
    message = str(caught.value)
    for place in ("--gin_param:1: Every macro", "--gin_param:3: `experiment", "--gin_param:4: Every macro"):
        assert place in message
