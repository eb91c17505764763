"""Every shipped gin file, found by looking: builds, has no idle binding, trains, saves and restores."""

import contextlib
import zipfile
from collections.abc import Iterator

import keras
import numpy as np
import pytest

from components.interfaces import Networks
from components.stepper import strategy
from pipeline import configs
from pipeline.build import Run, build
from pipeline.exporting.networks import networks_of
from pipeline.exporting.plain import plain

_TINY = ["TRAIN_STEPS = 2", "GLOBAL_BATCH_SIZE = 8", "LATENT_DIM = 3", "tfds_source.TFDSSource.name = 'mnist_5k'"]

_TOLD = {
    frozenset({"generator", "discriminator"}): {"generator/accuracy", "discriminator/accuracy"},
    frozenset({"vae"}): {"vae/reconstruction", "vae/kl_divergence"},
}


_NARROW_RESNET = [
    "resnet.generator.widths = (8, 8, 8, 8)",
    "resnet.discriminator.widths = (8, 8)",
    "resnet.discriminator.final_widths = (8, 8)",
    "gan.alternating.discriminator_repeats = 2",
]


def _config(name: str) -> configs.Config:
    is_resnet = any(one.part == "resnet.generator" for one in configs.parse([name]).settings())
    return configs.parse([name], _TINY + (_NARROW_RESNET if is_resnet else []))


def _run(name: str, hardware: str, folder) -> Run:
    config = _config(name)
    experiment = config.experiment()
    run = build(
        experiment,
        hardware=strategy.select(name=hardware),
        spec=experiment.data.spec,
        checkpoints=folder,
    )
    experiment.strategy()
    run.stepper.rehearse()
    for make in experiment.writers:
        make(str(folder))
    for make_preview in experiment.previews.values():
        make_preview(run.sampler, experiment.data, experiment.seed)
    config.refuse_unused()
    return run


def _variables(run: Run) -> list[np.ndarray]:
    networks = [v.numpy() for network in run.networks.values() for v in network.variables]
    return networks + [np.asarray(v.numpy()) for variables in run.stepper.state().values() for v in variables]


def _cases() -> list:
    """Return every file on every hardware; the fast set takes two players and one, on one device."""
    fast = [("quickstart", "one_device"), ("vae_tpu", "one_device")]
    every = [(name, hardware) for name in configs.shipped() for hardware in ("one_device", "cpu:2")]
    return [pytest.param(*case, marks=[] if case in fast else pytest.mark.slow) for case in every]


@pytest.mark.parametrize(("name", "hardware"), _cases())
def test_gin_file_trains_saves_and_restores(name, hardware, tmp_path) -> None:
    run = _run(name, hardware, tmp_path)
    before = _variables(run)
    metrics = run.stepper.run(run.batches(), 2)
    assert all(np.isfinite(float(value)) for value in metrics.values()), metrics
    assert _TOLD.get(frozenset(run.networks), set()) <= metrics.keys()
    after = _variables(run)
    moved = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    assert np.mean(moved) > 0.8  # an optimizer's learning rate and the like stay
    run.checkpointer.save(2)

    again = _run(name, hardware, tmp_path)
    assert again.checkpointer.restore_latest() == 2 == again.step
    for left, right in zip(after, _variables(again), strict=True):
        np.testing.assert_array_equal(left, right)
    assert again.sampler.sample(3, seed=0).shape == (3, *again.networks.spec.image_shape)
    assert again.experiment.previews, "a shipped file draws something"
    for make in again.experiment.previews.values():
        images, columns = make(again.sampler, again.experiment.data, 0)()
        assert (
            images.dtype == np.uint8
            and images.shape[1:] == again.networks.spec.image_shape
            and len(images) % columns == 0
        )


def _of_plain_keras() -> list:
    """Return every file; the fast set takes one."""
    marks = {"quickstart": []}
    return [pytest.param(name, marks=marks.get(name, [pytest.mark.slow])) for name in configs.shipped()]


@pytest.mark.parametrize("name", _of_plain_keras())
def test_gin_files_networks_load_where_keras_knows_no_layer_of_this_project(name, tmp_path) -> None:
    experiment = _config(name).experiment()
    spec = experiment.data.spec
    made = Networks({name: make(spec) for name, make in experiment.networks.items()}, spec)
    random = np.random.default_rng(0)
    networks = networks_of(made, {})
    assert {one.name.partition("_")[0] for one in networks} == set(made)
    for one in networks:
        for variable in one.model.trainable_variables:  # what starts at 0 or 1 must not hide a fault
            variable.assign(variable + random.normal(scale=0.1, size=variable.shape))
        place = tmp_path / f"{one.name}.keras"
        plain(one.model).save(place)
        with zipfile.ZipFile(place) as file:
            config = file.read("config.json").decode()
        assert "components" not in config and "gantry" not in config
        with _knowing_no_class_of_ours():
            loaded = keras.models.load_model(place)
        inputs = one.examples(5)
        outputs = one.named(loaded(list(inputs.values()), training=False))
        for key, value in one.answers(inputs).items():
            np.testing.assert_allclose(outputs[key], value, rtol=1e-6, atol=1e-6)


@contextlib.contextmanager
def _knowing_no_class_of_ours() -> Iterator[None]:
    registered = keras.saving.get_custom_objects()
    kept = dict(registered)
    registered.clear()
    try:
        yield
    finally:
        registered.update(kept)


@pytest.mark.parametrize("name", configs.shipped())
def test_gin_file_has_the_four_macros_and_at_most_thirty_lines(name) -> None:
    text = configs.find(name).read_text()
    assert len(text.splitlines()) <= 32, "a runnable file is short: move what others share into gin/base"
    assert text.startswith("# "), "hardware, expected time and expected metric stand on top"
    names = {setting.name for setting in configs.parse([name]).settings() if not setting.part}
    assert {"TRAIN_STEPS", "GLOBAL_BATCH_SIZE", "SEED", "LATENT_DIM"} <= names
