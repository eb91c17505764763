"""The composition root: from the parts that a gin file names to live objects, each after those that it needs."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from components.interfaces import (
    Checkpointer,
    DataSpec,
    Evaluator,
    Hardware,
    Networks,
    Sampler,
    Stepper,
    UserError,
)
from pipeline import feed
from pipeline.experiment import Experiment


@dataclass(frozen=True, kw_only=True)
class Run:
    """An experiment whose parts live: networks and optimizers have their variables, nothing has been restored."""

    experiment: Experiment
    hardware: Hardware
    networks: Networks
    stepper: Stepper
    checkpointer: Checkpointer
    sampler: Sampler
    evaluator: Evaluator | None = None

    @property
    def step(self) -> int:
        """The step that the run has reached."""
        return int(self.stepper.step.numpy())

    def state(self) -> dict[str, Sequence[Any]]:
        """Return {name: variables}: all that a checkpoint holds."""
        return _state(self.networks, self.stepper)

    def batches(self) -> Iterator[Any]:
        """Return the real batches from the current step on, each split over this host's replicas."""
        return feed.batches(self.experiment, self.hardware, start_batch=self.step * self.stepper.batches_per_step)


def build(
    experiment: Experiment, *, hardware: Hardware, spec: DataSpec, checkpoints: Path, to_train: bool = True
) -> Run:
    """Make every part of `experiment` for data of `spec` on `hardware`.

    Args:
      experiment: names the parts.
      hardware: what to run on; every variable is made in the scope of its strategy.
      spec: of the experiment's data; given apart, so that sampling needs no data.
      checkpoints: folder of the checkpoints; nothing is written or read yet.
      to_train: rehearse the step; without it the run starts sooner and is good for drawing from.

    Raises:
      UserError: parts that do not fit each other.
    """
    with hardware.strategy.scope(), _computing_in(experiment.precision):
        networks = Networks({name: _network(experiment, name, spec) for name in experiment.networks}, spec)
        stepper = experiment.stepper(
            networks=networks,
            copy_network=lambda name: _copy(experiment, networks, name),
            updates=experiment.updates,
            global_batch_size=experiment.global_batch_size,
            seed=experiment.seed,
        )
        if to_train:
            stepper.rehearse()  # before its state is asked for, which would cost a trace of its own
        checkpointer = experiment.checkpointer(str(checkpoints), _state(networks, stepper))
    drawn_from = Networks({**networks, **stepper.averages}, spec)
    sampler = experiment.sampler(drawn_from)
    return Run(
        experiment=experiment,
        hardware=hardware,
        networks=networks,
        stepper=stepper,
        checkpointer=checkpointer,
        sampler=sampler,
        evaluator=_evaluator(experiment, drawn_from, stepper, sampler),
    )


def _state(networks: Networks, stepper: Stepper) -> dict[str, Sequence[Any]]:
    return {**{f"{name}/network": network.variables for name, network in networks.items()}, **stepper.state()}


def _evaluator(experiment: Experiment, drawn_from: Networks, stepper: Stepper, sampler: Sampler) -> Evaluator | None:
    if experiment.evaluator is None:
        return None
    return experiment.evaluator(
        networks=drawn_from,
        averaged=tuple(stepper.averages),
        sampler=sampler,
        data=experiment.data,
        updates=experiment.updates,
    )


def _network(experiment: Experiment, name: str, spec: DataSpec) -> keras.Model:
    with _initial_weights(f"{experiment.seed}/{name}"):
        network = experiment.networks[name](spec)
    if not isinstance(network, keras.Model):
        raise UserError(
            f"A network factory returns a keras.Model. `Experiment.networks[{name!r}]` returned "
            f"{type(network).__name__}."
        )
    return network


def _copy(experiment: Experiment, networks: Networks, name: str) -> keras.Model:
    with _initial_weights(""):  # any: they are replaced, and the process's own random state stays as it was
        copy = experiment.networks[name](networks.spec)
    copy.set_weights(networks[name].get_weights())
    return copy


@contextmanager
def _computing_in(precision: str) -> Iterator[None]:
    """Make layers, and the optimizers made beside them, of one precision; the process keeps its own."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


@contextmanager
def _initial_weights(seed: str) -> Iterator[None]:
    """Make the initial weights of a network a function of `seed`: Keras's initializers draw theirs from `random`."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
