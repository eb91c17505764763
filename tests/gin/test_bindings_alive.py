"""Every hyper-parameter that a shipped file binds, changed once, changes the step or the run."""

import ast
import functools
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.interfaces import UserError
from components.stepper.distributed_stepper import DistributedStepper
from pipeline import api, configs
from tools import catalogue

# The second step shows what an optimizer remembers of the first.
TINY = {
    "TRAIN_STEPS": 2,
    "GLOBAL_BATCH_SIZE": 4,
    "LATENT_DIM": 4,
    "experiment.Experiment.steps_per_loop": 1,
    "experiment.Experiment.log_every": 2,
    "experiment.Experiment.save_every": 2,
    "experiment.Experiment.sample_every": 2,
    "tfds_source.TFDSSource.name": "mnist_5k",
    "tfds_source.TFDSSource.split": "train[:32]",
}
TINY_WHERE_BOUND = {"gan.alternating.discriminator_repeats": 2, "history_picture.HistoryPicture.kept_steps": (2,)}
NARROW_RESNET = {
    "resnet.generator.widths": (8, 8, 8, 8),
    "resnet.discriminator.widths": (8, 8),
    "resnet.discriminator.final_widths": (8, 8),
}
PARTS = catalogue.parts()


@functools.cache
def settings(name: str) -> dict[str, configs.Setting]:
    """Return {dotted name: setting} of what a shipped file binds, pieces that it includes among it."""
    found = {f"{one.part}.{one.name}".lstrip("."): one for one in configs.parse([name]).settings()}
    return {dotted: one for dotted, one in found.items() if one.source != "default"}


def tiny(name: str) -> dict[str, Any]:
    """Return what makes a shipped file's run small."""
    bound = {dotted: value for dotted, value in TINY_WHERE_BOUND.items() if dotted in settings(name)}
    return TINY | bound | (NARROW_RESNET if "resnet.generator.latent_dim" in settings(name) else {})


def current(name: str, dotted: str) -> Any:
    """Return the value that takes effect in a tiny run; None for what is no literal."""
    text = settings(name)[dotted].value
    if dotted in tiny(name):
        return tiny(name)[dotted]
    if text.startswith("%"):
        return current(name, text[1:])
    return None if "@" in text else ast.literal_eval(text)


def others(value: Any, part: str, parameter: str) -> list[Any]:
    """Return values to try in place of one, the most telling first; none for what is not asked after here."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value // 2 if value > 1 else value + 1, value + 1]
    if isinstance(value, float):
        return [0.1 * value or 0.3, 0.5 * value]
    if isinstance(value, (tuple, list)) and value and all(type(item) in (int, float) for item in value):
        return [type(value)([2 * value[0], *value[1:]]), type(value)(2 * item for item in value)]
    if isinstance(value, str) and part:
        known = PARTS.get(part.rpartition("/")[2])
        annotation = known.signature.parameters[parameter].annotation if known else None
        return [
            one
            for one in typing.get_args(annotation)
            if one != value and typing.get_origin(annotation) is typing.Literal
        ]
    return []


def run(name: str, changed: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Train a tiny run of a shipped file and return all that a person could see of it."""
    visits: list[int] = []
    run_steps = DistributedStepper.run

    def counting(self: DistributedStepper, iterator: Any, num_steps: int) -> Any:
        visits.append(num_steps)
        return run_steps(self, iterator, num_steps)

    monkeypatch.setattr(DistributedStepper, "run", counting)
    # A macro of the command line that a binding of the command line makes idle is refused.
    idle = {settings(name)[dotted].value.removeprefix("%") for dotted in changed}
    given = {dotted: value for dotted, value in tiny(name).items() if dotted not in idle}
    params = [f"{dotted} = {value!r}" for dotted, value in {**given, **changed}.items()]
    live = api.train([name], params, workdir=folder).run
    monkeypatch.undo()
    return {
        "visits": visits,
        "weights": [v.numpy().tobytes() for network in live.networks.values() for v in network.variables],
        "samples": live.sampler.sample(3, seed=0).tobytes(),
        "saved": sorted(path.name for path in folder.glob("checkpoints/*")),
        "drawn": {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("**/*.png")},
        "logged": [line.partition("timing")[0] for line in (folder / "metrics.jsonl").read_text().splitlines()],
    }


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """Return a function that runs a shipped file unchanged, once each."""
    seen: dict[str, dict[str, Any]] = {}

    def of(name: str) -> dict[str, Any]:
        if name not in seen:
            with pytest.MonkeyPatch.context() as patch:
                seen[name] = run(name, {}, tmp_path_factory.mktemp("base") / "run", patch)
        return seen[name]

    return of


def cases() -> list:
    """Return (file, name) of each hyper-parameter.

    Each name comes once: it goes the same way in every file, and what has no effect at all is refused before a run. The
    fast set takes one of the quickstart.
    """
    found, seen = [], set()
    for name in sorted(configs.shipped(), key=lambda name: (name != "quickstart", "resnet" in name, name)):
        bound = settings(name)
        for dotted, one in bound.items():
            if dotted not in seen and others(current(name, dotted), one.part, one.name):
                seen.add(dotted)
                is_fast = name == "quickstart" and dotted.endswith("Adam.beta_1") and one.part.startswith("generator/")
                found.append(pytest.param(name, dotted, marks=[] if is_fast else pytest.mark.slow))
    return found


@pytest.mark.parametrize(("name", "dotted"), cases())
def test_binding_changed_once_changes_the_run(name, dotted, base, tmp_path, monkeypatch) -> None:
    one = settings(name)[dotted]
    refusals = []
    for number, value in enumerate(others(current(name, dotted), one.part, one.name)):
        try:
            changed = run(name, {dotted: value}, tmp_path / str(number), monkeypatch)
        except UserError as error:
            if isinstance(value, bool) or dotted in str(error):
                return  # the only other value, or one that must be another's: some part has taken notice of it
            refusals.append(str(error))
            continue
        before = base(name)
        assert any(changed[what] != before[what] for what in before), f"{dotted} = {value} does what another does"
        return
    pytest.fail("no value could be tried: " + "\n".join(refusals))


def test_binding_unchanged_leaves_the_run_as_it_was(base, tmp_path, monkeypatch) -> None:
    again = run("quickstart", {}, tmp_path / "run", monkeypatch)
    assert again == base("quickstart")
    assert sum(again["visits"]) == 2


def test_every_shipped_file_has_hyper_parameters_among_the_cases() -> None:
    assert {"quickstart"} <= {case.values[0] for case in cases()} and len(cases()) > 20
