"""Data that the devices hold give the batches that the host would have fed."""

import numpy as np
import pytest
from toy_parts import ToySource

from components.data_source.tfds_source import TFDSSource
from components.interfaces import UserError
from components.stepper import strategy
from pipeline import api, feed
from pipeline.experiment import Experiment

SMALL = TFDSSource(name="mnist_5k", split="train[:40]")


def experiment(**changed) -> Experiment:
    unused = lambda *_, **__: None  # noqa: E731
    parts = {"data": SMALL, "networks": {}, "updates": [unused], "train_steps": 1, "global_batch_size": 8, "seed": 3}
    makers = {name: unused for name in ("strategy", "stepper", "checkpointer", "sampler")}
    return Experiment(**{**parts, **makers, **changed})


def first_batches(hardware: str, count: int, start_batch: int, **changed) -> list[dict[str, np.ndarray]]:
    chosen = strategy.select(name=hardware)
    fed = feed.batches(experiment(**changed), chosen, start_batch=start_batch)
    rows = []
    for _ in range(count):
        local = {name: chosen.strategy.experimental_local_results(value) for name, value in next(fed).items()}
        rows.append({name: np.concatenate(values) for name, values in local.items()})
    return rows


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2"])
def test_batches_of_held_data_are_those_that_are_fed(hardware) -> None:
    # 8 rows of 40 examples: the seventh batch is one of the second epoch.
    fed = first_batches(hardware, 7, 2, data_on_device=False)
    held = first_batches(hardware, 7, 2, data_on_device=True)
    for left, right in zip(fed, held, strict=True):
        assert left["image"].shape == (8, 28, 28, 1)
        for name in ("image", "label"):
            np.testing.assert_array_equal(left[name], right[name])
            assert left[name].dtype == right[name].dtype


@pytest.mark.parametrize(
    "data",
    [ToySource(), TFDSSource(name="mnist_5k", device_budget_mb=3), TFDSSource(name="mnist_5k", memory_budget_mb=0)],
)
def test_data_that_no_device_can_hold_are_refused_where_that_was_asked_for(data) -> None:
    with pytest.raises(UserError, match="device_budget_mb"):
        first_batches("one_device", 1, 0, data=data, data_on_device=True)


def test_data_are_held_on_accelerators_and_fed_to_cpus_by_default() -> None:
    chosen = strategy.select(name="one_device")
    gpu = type(chosen)(strategy=chosen.strategy, accelerator="gpu", description="")
    assert feed._held(experiment(), chosen) is None
    assert feed._held(experiment(), gpu) is not None
    assert feed._held(experiment(data=ToySource()), gpu) is None


@pytest.mark.slow
def test_run_on_held_data_has_the_bits_of_one_that_is_fed(tmp_path) -> None:
    def weights(held: bool) -> list[np.ndarray]:
        tiny = ["TRAIN_STEPS = 3", "GLOBAL_BATCH_SIZE = 8", "dcgan.generator.widths = (4, 4)"]
        params = [*tiny, f"experiment.Experiment.data_on_device = {held}", "experiment.Experiment.steps_per_loop = 2"]
        params += [f"experiment.Experiment.{name} = 2" for name in ("log_every", "save_every", "sample_every")]
        run = api.train(["quickstart.gin"], params, workdir=tmp_path / str(held)).run
        return [v.numpy() for network in run.networks.values() for v in network.variables]

    for left, right in zip(weights(True), weights(False), strict=True):
        np.testing.assert_array_equal(left, right)
