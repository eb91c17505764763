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
from tools.replicas import descending, difference, numbers, on

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
    _require_equal(after, restored)
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
            largest = np.max(np.abs(value), initial=1.0)  # a sum rounds by its terms, which may cancel
            np.testing.assert_allclose(outputs[key], value, rtol=0, atol=1e-6 * largest)


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
    _require_equal(numbers(alone), numbers(many))
    after = _trained(many)
    assert difference(_trained(alone), after).value < 1e-5
    # And back: what two replicas saved is what one restores.
    many.checkpointer.save(3)
    assert alone.checkpointer.restore_latest() == 3
    _require_equal(after, numbers(alone))


def _require_equal(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> None:
    for key, value in left.items():
        np.testing.assert_array_equal(value, right[key], err_msg=key)


_CURVES = {"vae_tpu": 1e-3, "quickstart": 0.05, "acgan": 0.05}  # {file: difference of a mean loss, relative}


@pytest.mark.slow
@pytest.mark.parametrize("name", _CURVES)
def test_loss_curves_of_adam_over_a_hundred_steps_are_alike_on_two_replicas(name, tmp_path) -> None:
    gin = ["mnist_dcgan.discriminator.widths = (4, 4)"] if name == "acgan" else []
    curves = []
    for replicas in (1, 2):
        run = _run(name, replicas, tmp_path, gin=[*gin, "tfds_source.TFDSSource.image_size = (8, 8)"])
        batches = run.batches()
        curves.append([run.stepper.run(batches, 10) for _ in range(10)])
    for tenth, (one, two) in enumerate(zip(*curves, strict=True)):
        for metric in (metric for metric in one if metric.endswith("/loss")):
            np.testing.assert_allclose(two[metric], one[metric], rtol=_CURVES[name], err_msg=f"{metric} {tenth}")


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "many", "gin"),
    [
        ("quickstart", (2, 4, 8), _ALL_AT_ONCE),  # and its averaged weights and batch normalisation
        ("vae_tpu", (4, 8), []),
        ("vae_conv", (4, 8), []),
        ("acgan", (4,), ["mnist_dcgan.discriminator.widths = (4, 4)"]),  # dropout, shared forward pass
    ],  # of others eight replicas take up to twenty minutes: `python -m tools.invariance` compares them
)
def test_gin_file_takes_on_many_replicas_the_steps_of_one(name, many, gin, tmp_path) -> None:
    lines = ["\n".join(gin)] if gin else []
    alone = _trained(_run(name, 1, tmp_path, gin=lines, descends=True), 3)
    for replicas in many:
        assert difference(alone, _trained(_run(name, replicas, tmp_path, gin=lines, descends=True), 3)).value < 1e-5


@pytest.mark.parametrize("name", configs.shipped())
def test_gin_file_has_the_four_macros_and_at_most_thirty_lines(name) -> None:
    text = configs.find(name).read_text()
    assert len(text.splitlines()) <= 32, "a runnable file is short: move what others share into gin/base"
    assert text.startswith("# "), "hardware, expected time and expected metric stand on top"
    names = {setting.name for setting in configs.parse([name]).settings() if not setting.part}
    assert {"TRAIN_STEPS", "GLOBAL_BATCH_SIZE", "SEED", "LATENT_DIM"} <= names
