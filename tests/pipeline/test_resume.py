"""A run that is stopped and taken up again ends with the bits of one that was not."""

import keras
import numpy as np
import pytest
from toy_games import toy_experiment

from components.interfaces import Player
from components.loss_library import adversarial, penalties
from components.objectives import gan
from components.stepper import strategy
from pipeline.build import build
from pipeline.experiment import Experiment
from pipeline.stop import StopSignal
from pipeline.train import train


def adaptive() -> keras.optimizers.Optimizer:
    return keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(1e-2, 12))


def plain() -> keras.optimizers.Optimizer:
    return keras.optimizers.SGD(1e-3, momentum=0.9)


def experiment(hardware: str, train_steps: int, optimizer=adaptive) -> Experiment:
    return toy_experiment(
        updates=gan.alternating(
            loss=adversarial.hinge,
            generator=Player(optimizer=optimizer, ema_decay=0.9),
            discriminator=Player(optimizer=optimizer),
            discriminator_repeats=2,
            penalties=[penalties.r1],
            penalty_every=3,
        ),
        train_steps=train_steps,
        strategy=lambda: strategy.select(name=hardware),
        steps_per_loop=2,
    )


def run_to(hardware: str, folder, last: int, optimizer=adaptive):
    """Build, restore, train to step `last`, save; return (start step, all numbers)."""
    parts = experiment(hardware, last, optimizer)
    run = build(parts, hardware=parts.strategy(), spec=parts.data.spec, checkpoints=folder)
    start = run.checkpointer.restore_latest()
    train(run, [], StopSignal())
    run.checkpointer.save(last)
    return start, [np.asarray(v.numpy()) for variables in run.state().values() for v in variables]


@pytest.mark.parametrize(
    ("hardware", "stop"),
    [
        ("one_device", 7),
        pytest.param("one_device", 4, marks=pytest.mark.slow),
        pytest.param("cpu:2", 7, marks=pytest.mark.slow),
    ],
)
def test_run_stopped_and_resumed_has_the_bits_of_one_that_was_not(hardware, stop, tmp_path) -> None:
    start, whole = run_to(hardware, tmp_path / "whole", 10)
    assert start == 0
    run_to(hardware, tmp_path / "cut", stop)
    start, resumed = run_to(hardware, tmp_path / "cut", 10)
    assert start == stop
    for left, right in zip(whole, resumed, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.slow
def test_run_resumed_on_another_number_of_replicas_goes_on_along_the_same_path(tmp_path) -> None:
    _, whole = run_to("one_device", tmp_path / "whole", 6, plain)
    run_to("one_device", tmp_path / "cut", 4, plain)
    start, resumed = run_to("cpu:2", tmp_path / "cut", 6, plain)
    assert start == 4
    for left, right in zip(whole, resumed, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


def test_stop_request_ends_the_loop_after_the_steps_in_flight(tmp_path) -> None:
    parts = experiment("one_device", 10)
    run = build(parts, hardware=parts.strategy(), spec=parts.data.spec, checkpoints=tmp_path)
    stop = StopSignal()

    def ask(step: int, metrics) -> None:
        if step == 4:
            stop.requested = 2

    assert train(run, [ask], stop) == 4 == run.step


def test_initial_weights_are_a_function_of_the_seed(tmp_path) -> None:
    def weights(seed: int):
        parts = experiment("one_device", 10)
        parts = type(parts)(**{**vars(parts), "seed": seed})
        run = build(parts, hardware=parts.strategy(), spec=parts.data.spec, checkpoints=tmp_path)
        return run.networks["generator"].get_weights()[0], run.stepper.averages["generator"].get_weights()[0]

    (one, average), (again, _), (other, _) = weights(1), weights(1), weights(2)
    np.testing.assert_array_equal(one, again)
    np.testing.assert_array_equal(one, average)  # an average starts at the weights
    assert not np.array_equal(one, other)
