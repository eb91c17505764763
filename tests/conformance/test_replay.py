"""Every shipped gin file: stopped after some steps and resumed in new objects, it ends as one never stopped."""

import numpy as np
import pytest

from components.stepper import strategy
from pipeline import configs
from pipeline.build import Run, build

TINY = ["TRAIN_STEPS = 3", "GLOBAL_BATCH_SIZE = 4", "LATENT_DIM = 3", "tfds_source.TFDSSource.name = 'mnist_5k'"]
# Bound only where the file uses the part and its variant: a run of three steps needs no capacity.
NARROW = {
    "dcgan.generator": ["dcgan.generator.widths = (4, 4)"],
    "dcgan.discriminator": ["dcgan.discriminator.widths = (4, 4)"],
    "resnet.generator": ["resnet.generator.widths = (8, 8, 8, 8)", "gan.alternating.discriminator_repeats = 2"],
    "resnet.discriminator": ["resnet.discriminator.widths = (8, 8)", "resnet.discriminator.final_widths = (8, 8)"],
}
STOP, LAST = 2, 3
ON_REPLICAS = ("quickstart", "vae_tpu")  # test_gin_files.py goes on with every file on two, by plain gradient descent


def made(name: str, hardware: str, folder) -> Run:
    settings = configs.parse([name]).settings()
    bound = {f"{one.part}.{one.name}" for one in settings}
    narrow = [line for lines in NARROW.values() for line in lines if line.partition(" =")[0] in bound]
    experiment = configs.parse([name], TINY + narrow).experiment()
    return build(experiment, hardware=strategy.select(name=hardware), spec=experiment.data.spec, checkpoints=folder)


def last_metrics(run: Run) -> dict[str, float]:
    """Make the last step; return its metrics."""
    return run.stepper.run(run.batches(), LAST - run.step)


def numbers(run: Run) -> list[np.ndarray]:
    return [np.asarray(v.numpy()) for variables in run.state().values() for v in variables]


def next_images(run: Run) -> np.ndarray:
    return next(run.batches())["image"].numpy()


@pytest.mark.slow
@pytest.mark.parametrize("name", configs.shipped())
def test_gin_file_stopped_and_resumed_ends_as_one_never_stopped(name, tmp_path) -> None:
    whole = made(name, "one_device", tmp_path)
    batches = whole.batches()
    whole.stepper.run(batches, STOP)
    whole.checkpointer.save(STOP)
    told = whole.stepper.run(batches, LAST - STOP)

    resumed = made(name, "one_device", tmp_path)
    assert resumed.checkpointer.restore_latest() == STOP
    assert last_metrics(resumed) == told  # losses are of batches and latents
    np.testing.assert_array_equal(next_images(whole), next_images(resumed))
    np.testing.assert_array_equal(whole.sampler.sample(2, seed=0), resumed.sampler.sample(2, seed=0))
    for left, right in zip(numbers(whole), numbers(resumed), strict=True):
        np.testing.assert_array_equal(left, right)

    if name not in ON_REPLICAS:
        return
    replicas = made(name, "cpu:2", tmp_path)
    assert replicas.checkpointer.restore_latest() == STOP
    for metric, value in last_metrics(replicas).items():
        np.testing.assert_allclose(value, told[metric], rtol=1e-3, atol=1e-4, err_msg=metric)
