"""Every shipped gin file, found by looking: builds, has no idle binding, trains, saves, restores, alike on replicas."""

import contextlib
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence

import keras
import numpy as np
import pytest

from components.interfaces import Networks
from pipeline import configs
from pipeline.build import Run
from pipeline.exporting.networks import networks_of
from pipeline.exporting.plain import plain
from tools.replicas import curves, descending, difference, numbers, on, steps

_TINY = ["TRAIN_STEPS = 2", "GLOBAL_BATCH_SIZE = 8", "LATENT_DIM = 3", "tfds_source.TFDSSource.name = 'mnist_5k'"]

_TOLD = {
    frozenset({"generator", "discriminator"}): {"generator/accuracy", "discriminator/accuracy"},
    frozenset({"vae"}): {"vae/reconstruction", "vae/kl_divergence"},
}


_NARROW_RESNET = [
    "resnet.generator.widths = (8, 8, 8, 8)",
    "resnet.discriminator.widths = (8, 8)",
    "resnet.discriminator.final_widths = (8, 8)",
]
# Of a critic with a penalty each move makes a difference of rounding up to thirty times as large.
_FEW_MOVES = ["gan.alternating.discriminator_repeats = 2"]


def _config(name: str, gin: Sequence[str] = ()) -> configs.Config:
    bound = {f"{one.part}.{one.name}" for one in configs.parse([name]).settings() if one.source != "default"}
    narrow = _NARROW_RESNET if "resnet.generator.latent_dim" in bound else []
    moves = _FEW_MOVES if "gan.alternating.discriminator_repeats" in bound else []
    return configs.parse([name], [*_TINY, *narrow, *moves, *gin])


def _run(name: str, replicas: int, folder, *, gin: Sequence[str] = (), descends: bool = False) -> Run:
    """Return a tiny run of a shipped file; one that `descends` has plain gradient descent for every optimizer."""
    config = _config(name, gin)
    experiment = config.experiment()
    if descends:
        experiment = descending(experiment)
    run = on(experiment, replicas, folder)
    if not descends:
        experiment.strategy()
        for make in experiment.writers:
            make(str(folder))
        for make_preview in experiment.previews.values():
            make_preview(run.sampler, experiment.data, experiment.seed)
        config.refuse_unused()
    return run


def _moved(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> float:
    return float(np.mean([not np.array_equal(before[name], after[name]) for name in before]))


def _trained(run: Run, steps: int = 2) -> dict[str, np.ndarray]:
    """Return all that a run holds after its first steps, having seen that they are steps."""
    before = numbers(run)
    metrics = run.stepper.run(run.batches(), steps)
    assert all(np.isfinite(float(value)) for value in metrics.values()), metrics
    assert _TOLD.get(frozenset(run.networks), set()) <= metrics.keys()
    after = numbers(run)
    assert _moved(before, after) > 0.8  # an optimizer's learning rate and the like stay
    return after


def _marked(names: Iterable[str], fast: Collection[str]) -> list:
    return [pytest.param(name, marks=[] if name in fast else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", _marked(configs.shipped(), {"quickstart", "vae_tpu"}))
def test_gin_file_trains_saves_and_restores(name, tmp_path) -> None:
    run = _run(name, 1, tmp_path)
    after = _trained(run)
    run.checkpointer.save(2)

    again = _run(name, 1, tmp_path)
    assert again.checkpointer.restore_latest() == 2 == again.step
    restored = numbers(again)
    assert difference(after, restored).value == 0
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


@pytest.mark.slow
@pytest.mark.parametrize("name", configs.shipped())
def test_gin_file_goes_on_with_two_replicas_as_it_would_with_one(name, tmp_path) -> None:
    alone, many = (_run(name, replicas, tmp_path, descends=True) for replicas in (1, 2))
    alone.stepper.run(alone.batches(), 1)
    alone.checkpointer.save(1)
    assert many.checkpointer.restore_latest() == 1
    assert difference(numbers(alone), numbers(many)).value == 0
    after = _trained(many)
    assert difference(_trained(alone), after).value < 1e-5
    # And back: what two replicas saved is what one restores.
    many.checkpointer.save(3)
    assert alone.checkpointer.restore_latest() == 3
    assert difference(after, numbers(alone)).value == 0


_ALL_AT_ONCE = [
    "from components.loss_library import penalties",
    "from components.loss_library import regularizers",
    "tfds_source.TFDSSource.image_size = (8, 8)",
    "gan.alternating.penalties = [@penalties.r1, @penalties.wgan_gp, @regularizers.lecam]",
    "gan.alternating.penalty_every = 2",
    "gan.alternating.discriminator_repeats = 2",
    "dcgan.discriminator.spectral_norm = True",
    "dcgan.generator.widths = (4,)",
    "dcgan.discriminator.widths = (4,)",
]


# The others take up to twenty minutes: `python -m tools.invariance` compares them.
_ON_EIGHT = [("vae_tpu", []), ("vae_conv", []), ("quickstart", _ALL_AT_ONCE)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "gin"), _ON_EIGHT)
def test_gin_file_takes_on_many_replicas_the_steps_of_one(name, gin) -> None:
    differs = steps(_config(name, ["\n".join(gin)] if gin else []).experiment(), 2)
    for replicas in (4, 8):
        found = differs(replicas)
        assert found.value < 1e-5, f"{replicas} replicas: {found}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "bound"), [("vae_tpu", 1e-3), ("quickstart", 0.05), ("acgan", 0.05)])
def test_losses_of_adam_over_a_hundred_steps_are_alike_on_two_replicas(name, bound) -> None:
    gin = ["mnist_dcgan.discriminator.widths = (4, 4)"] if name == "acgan" else []
    experiment = _config(name, [*gin, "tfds_source.TFDSSource.image_size = (8, 8)"]).experiment()
    losses, control = curves(experiment, 100, 2)
    assert losses.value <= max(bound, 2 * control.value), f"{losses}; of a rounding error: {control}"


@pytest.mark.parametrize("name", configs.shipped())
def test_gin_file_has_the_four_macros_and_at_most_thirty_lines(name) -> None:
    text = configs.find(name).read_text()
    assert len(text.splitlines()) <= 32, "a runnable file is short: move what others share into gin/base"
    assert text.startswith("# "), "hardware, expected time and expected metric stand on top"
    names = {setting.name for setting in configs.parse([name]).settings() if not setting.part}
    assert {"TRAIN_STEPS", "GLOBAL_BATCH_SIZE", "SEED", "LATENT_DIM"} <= names
