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


def made(name: str, hardware: str, folder) -> Run:
    settings = configs.parse([name]).settings()
    bound = {f"{one.part}.{one.name}" for one in settings}
    narrow = [line for lines in NARROW.values() for line in lines if line.partition(" =")[0] in bound]
    experiment = configs.parse([name], TINY + narrow).experiment()
    return build(experiment, hardware=strategy.select(name=hardware), spec=experiment.data.spec, checkpoints=folder)


def trained(name: str, hardware: str, folder, last: int) -> tuple[Run, dict[str, float]]:
    """Restore what there is, train to step `last`, save; return the run and the metrics of its last step."""
    run = made(name, hardware, folder)
    run.checkpointer.restore_latest()
    batches, metrics = run.batches(), {}
    while run.step < last:
        metrics = {name: float(value) for name, value in run.stepper.run(batches, 1).items()}
    run.checkpointer.save(last)
    return run, metrics


def numbers(run: Run) -> list[np.ndarray]:
    networks = [v for network in run.networks.values() for v in network.variables]
    return [np.asarray(v.numpy()) for v in [*networks, *(v for vs in run.stepper.state().values() for v in vs)]]


def next_images(run: Run) -> np.ndarray:
    return next(run.batches())["image"].numpy()


@pytest.mark.slow
@pytest.mark.parametrize("name", configs.shipped())
def test_gin_file_stopped_and_resumed_ends_with_the_bits_of_one_never_stopped(name, tmp_path) -> None:
    whole, told = trained(name, "one_device", tmp_path / "whole", LAST)
    trained(name, "one_device", tmp_path / "cut", STOP)
    resumed, told_again = trained(name, "one_device", tmp_path / "cut", LAST)
    assert told == told_again and told  # losses are of batches and latents
    np.testing.assert_array_equal(next_images(whole), next_images(resumed))
    np.testing.assert_array_equal(whole.sampler.sample(2, seed=0), resumed.sampler.sample(2, seed=0))
    for left, right in zip(numbers(whole), numbers(resumed), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.slow
@pytest.mark.parametrize("name", configs.shipped())
def test_gin_file_resumed_on_two_replicas_makes_the_step_of_one(name, tmp_path) -> None:
    trained(name, "one_device", tmp_path / "one", STOP)
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / f"step-{STOP:09d}").rename(tmp_path / "two" / f"step-{STOP:09d}")
    _, replicas = trained(name, "cpu:2", tmp_path / "two", LAST)
    (tmp_path / "two" / f"step-{LAST:09d}").rename(tmp_path / "other")
    _, device = trained(name, "one_device", tmp_path / "two", LAST)
    for (
        metric,
        value,
    ) in device.items():  # of the step after the resume, before it: Adam's signs of tiny gradients differ
        np.testing.assert_allclose(replicas[metric], value, rtol=1e-3, atol=1e-4, err_msg=metric)
