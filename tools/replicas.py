"""Runs of one experiment on one and on many logical CPUs, and how far apart they are."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import keras
import numpy as np

from components.interfaces import Update
from components.stepper import strategy
from pipeline.build import Run, build
from pipeline.experiment import Experiment

_ROUNDING = 2.0**-22  # two units in the last place of float32
Numbers: TypeAlias = dict[str, np.ndarray]


@dataclass(frozen=True)
class Difference:
    """The largest difference of two runs: its size, relative to the number or to 1, and where it is."""

    value: float
    where: str

    def __str__(self) -> str:
        """Say both."""
        return f"{self.value:.1e} ({self.where})"


def make_room(replicas: int) -> None:
    """Make this process's logical CPUs, before TensorFlow starts; raises UserError where there are fewer already."""
    strategy.select(name=f"cpu:{replicas}")


def on(experiment: Experiment, replicas: int, checkpoints: str = "") -> Run:
    """Return a new run on logical CPUs."""
    name = "one_device" if replicas == 1 else f"cpu:{replicas}"
    folder = checkpoints or tempfile.gettempdir()  # which nothing is written to
    return build(experiment, hardware=strategy.select(name=name), spec=experiment.data.spec, checkpoints=folder)


def descending(experiment: Experiment, rate: float = 1e-3) -> Experiment:
    """Return the experiment with plain gradient descent for every optimizer."""

    def descent() -> keras.optimizers.Optimizer:  # one for all: a player of two updates is the same in both
        return keras.optimizers.SGD(rate)

    def descends(update: Update) -> Update:
        players = {name: replace(player, optimizer=descent) for name, player in update.players.items()}
        return replace(update, players=players)

    return replace(experiment, updates=[descends(update) for update in experiment.updates])


def numbers(run: Run) -> Numbers:
    """Return {where: all numbers that a run holds}, by names that another run of the experiment has too."""
    networks = {f"{name}/{i}": v.numpy() for name, one in run.networks.items() for i, v in enumerate(one.variables)}
    state = run.stepper.state().items()
    return networks | {f"{name}/{i}": np.asarray(v.numpy()) for name, some in state for i, v in enumerate(some)}


def difference(left: Numbers, right: Numbers) -> Difference:
    """Return the largest difference of any number, relative to it or to 1 where it is smaller; of NaN, infinity."""
    found = []
    for where, one in left.items():
        sizes = np.abs(one - right[where]) / np.maximum(np.abs(one), 1.0)
        found.append(Difference(float(np.max(np.where(np.isnan(sizes), np.inf, sizes))), where))
    return max(found, key=lambda one: one.value)


def steps(experiment: Experiment, count: int) -> Callable[[int], Difference]:
    """Return what compares N replicas with one, after `count` steps of gradient descent."""

    def taken(replicas: int) -> tuple[Numbers, Run]:
        run = on(descending(experiment), replicas)
        run.stepper.run(run.batches(), count)
        return numbers(run), run

    alone, run = taken(1)
    paths = {
        f"{name}/{i}": f"{name}: {v.path}" for name, one in run.networks.items() for i, v in enumerate(one.variables)
    }

    def compared(replicas: int) -> Difference:
        found = difference(alone, taken(replicas)[0])
        return replace(found, where=paths.get(found.where, found.where))

    return compared


def curves(experiment: Experiment, count: int, replicas: int) -> tuple[Difference, Difference]:
    """Return how far the losses on N replicas are from those on one, and those after a rounding error.

    The losses are those of the file's own optimizers, as means over each tenth of `count` steps. The second difference
    is of one replica whose first weights are off in their last bits: no two orders of a sum promise less.
    """

    def curve(replicas: int, nudge: float = 0.0) -> Numbers:
        run = on(experiment, replicas)
        for variable in (v for network in run.networks.values() for v in network.trainable_variables if nudge):
            variable.assign(variable * (1.0 + nudge))
        batches = run.batches()
        tenths = [run.stepper.run(batches, count // 10) for _ in range(10)]
        names = [name for name in tenths[0] if name.endswith("/loss")]
        return {name: np.array([tenth[name] for tenth in tenths]) for name in names}

    alone = curve(1)
    return difference(alone, curve(replicas)), difference(alone, curve(1, _ROUNDING))
