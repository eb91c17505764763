"""Runs an ordered list of updates on every replica, many steps in one call.

What is decided here and nowhere else: sums over examples are divided by the global batch and summed over replicas, all
randomness is keyed by (seed, update, purpose, step, batch of the step), and step s draws the batches
[s * batches_per_step, (s + 1) * batches_per_step).
"""

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from components.interfaces import Batch, Networks, Random, Update
from components.stepper import inspection
from components.stepper.audit import Audit, replica_sums
from components.stepper.heap import keep_freed_memory
from components.stepper.players import seat_players
from components.stepper.randomness import ReplicaRandom
from components.stepper.replica_program import replica_program
from components.stepper.rules import is_compiled, require_distinct, rows_of_each
from components.stepper.update import LiveUpdate

_ROOM = 32  # metrics of an update; more make it be traced once again


class DistributedStepper:
    """The stepper for one device, many devices and many hosts; see `interfaces.Stepper`.

    Made inside strategy.scope(). An update that is not due in a step, because of `every`, is decided by the host and
    left out of the traced loop: an optimizer must not move inside a condition on replicas.
    """

    def __init__(
        self,
        *,
        networks: Networks,
        copy_network: Callable[[str], keras.Model],
        updates: Sequence[Update],
        global_batch_size: int,
        seed: int,
        xla: bool | None = None,
        loop_on_device: bool | None = None,
    ) -> None:
        """Make optimizers and averages; raises UserError where players, networks and batch do not fit together.

        Args:
          networks: of the experiment.
          copy_network: makes another network of a name, for an average.
          updates: of a step, in order.
          global_batch_size: examples of a batch over all replicas.
          seed: of all draws.
          xla: whether XLA compiles each update; None: on one GPU it does. A TPU always compiles; several replicas on
            CPUs or GPUs never do, as their variables lie on several devices.
          loop_on_device: whether the steps of a `run` are one call; None: on an accelerator. A CPU gains nothing by it.
        """
        self._strategy = tf.distribute.get_strategy()
        self._num_replicas = self._strategy.num_replicas_in_sync
        self._per_replica_batch_size = rows_of_each(global_batch_size, self._num_replicas)
        self._replica: tf.Tensor | None = None  # None: the one of the replica context
        self._seed = seed
        self._networks = networks
        self._players = seat_players(updates, networks, copy_network, global_batch_size)
        self._updates = [LiveUpdate(update, self._players, networks, global_batch_size) for update in updates]
        self._names: dict[int, list[str]] = {}  # of the metrics of each update
        self._sums = [replica_sums(_ROOM) for _ in updates]
        self._moves: dict[tuple, Any] = {}  # {(index of the update, *form of the batches): traced}
        self._is_rehearsed = False
        self.batches_per_step = max(update.repeats * update.accumulate for update in updates)
        self.averages = {n: copy for p in self._players.values() for n, copy in p.averages.items()}
        self.step = tf.Variable(
            0, trainable=False, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
        )
        device = self.step.device
        self._xla = is_compiled(xla, self._strategy, is_on_gpu="GPU" in device)
        self._loops = "GPU" in device or "TPU" in device if loop_on_device is None else loop_on_device

    def state(self) -> dict[str, list[keras.Variable | tf.Variable]]:
        """Return {name: variables} of the step counter, the optimizers, the averages and what updates remember."""
        self._learn_memory()
        state = {"step": [self.step]}
        for name, player in self._players.items():
            state[f"{name}/optimizer"] = list(player.optimizer.variables)
            state |= {f"{network}/average": list(copy.variables) for network, copy in player.averages.items()}
        for index, live in enumerate(self._updates):
            state |= {f"update_{index}/{name}": [variable] for name, variable in live.remembered.variables.items()}
        return state

    def rehearse(self) -> None:
        """Trace every update on abstract rows; learn the metrics' names, raise what would fail at step 0.

        What is traced here is what runs: a move is traced once, however often and in whatever steps it is made.
        """
        if self._is_rehearsed:
            return
        rows = self._abstract_rows()
        for index, live in enumerate(self._updates):
            batches = [rows] * live.update.accumulate
            self._trace(index, batches)
            if self._lacks_room(index):
                self._make_room(index)
                self._trace(index, batches)
        require_distinct([name for names in self._names.values() for name in names])
        for player in self._players.values():
            player.require_reached()
        self._is_rehearsed = True
        networks = {f"{name}/network": network.variables for name, network in self._networks.items()}
        with self._strategy.scope():
            self._audit = Audit(networks | self.state(), xla=self._xla)

    @property
    def rehearsals(self) -> list[tf.Graph]:
        """The graph of every update as it was rehearsed."""
        return [move.graph for move in self._moves.values()]

    def replica_program(self, num_replicas: int) -> tf.types.experimental.PolymorphicFunction:
        """Return a whole step as one function of what a replica is given; see `replica_program.replica_program`."""
        self.rehearse()
        return replica_program(copy.copy(self), num_replicas)

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics that `run` returns; known after `rehearse`."""
        return [name for names in self._names.values() for name in names]

    def lost(self) -> list[str]:
        """Return the names of the variables that hold NaN or infinity."""
        self.rehearse()
        return self._audit.lost()

    def inspect(self, iterator: Iterator[Batch]) -> str:
        """Run one step with a look at every layer; see `interfaces.Auditing`. The first replica that finds tells."""
        self.rehearse()
        step, due = self.step.read_value(), self._due(int(self.step.numpy()))
        batches = [next(iterator) for _ in range(self.batches_per_step)]
        for index, first, rows in self._each_move(batches, due):
            live = self._updates[index]

            def randoms(first: int = first, index: int = index, count: int = len(rows)) -> list[Random]:
                return [self._random(index, step, first + number) for number in range(count)]

            where = inspection.first_fault_on_replicas(self._strategy, live, self._networks, rows, randoms)
            if not where:
                self._move(index, rows, step, tf.constant(first, tf.int64))
                where = live.lost_in_the_move()
            if where:
                return where
        self.step.assign_add(1)
        return ""

    def run(self, iterator: Iterator[Batch], num_steps: int) -> dict[str, float]:
        """Run `num_steps` steps; see `interfaces.Stepper.run`."""
        self.rehearse()
        keep_freed_memory()  # every time: TensorFlow sets the C library too, once a run is built
        first = int(self.step.numpy())
        runs = [0] * len(self._updates)
        for due, steps in groupby(range(first, first + num_steps), self._due):
            count = len(list(steps))
            self._make(iterator, count, due)
            made = [count * live.update.repeats * is_due for live, is_due in zip(self._updates, due, strict=True)]
            runs = [n + more for n, more in zip(runs, made, strict=True)]
        if int(self.step.numpy()) != first + num_steps:
            raise RuntimeError(f"Asked for step {first + num_steps}, arrived at {int(self.step.numpy())}.")
        return self._means(self._take_sums(), runs)

    def _due(self, step: int) -> tuple[bool, ...]:
        """Say which updates are made in a step."""
        return tuple(step % live.update.every == 0 for live in self._updates)

    def _make(self, iterator: Iterator[Batch], num_steps: int, due: tuple[bool, ...]) -> None:
        if self._loops:
            self._loop(iterator, tf.constant(num_steps), due)
        else:  # each move is one call already: a function around them would be traced and optimised once more
            for _ in range(num_steps):
                self._one_step(iterator, due)

    @tf.function(autograph=False)
    def _loop(self, iterator: Iterator[Batch], num_steps: tf.Tensor, due: tuple[bool, ...]) -> None:
        def body(done: tf.Tensor) -> tf.Tensor:
            self._one_step(iterator, due)
            return done + 1

        tf.while_loop(lambda done: done < num_steps, body, [0])

    def _one_step(self, iterator: Iterator[Batch], due: tuple[bool, ...]) -> None:
        batches = [next(iterator) for _ in range(self.batches_per_step)]
        step = self.step.read_value()
        for index, first, rows in self._each_move(batches, due):
            self._move(index, rows, step, tf.constant(first, tf.int64))
        self.step.assign_add(1)

    def _each_move(self, batches: Sequence[Batch], due: tuple[bool, ...]) -> Iterator[tuple[int, int, Sequence[Batch]]]:
        """Yield the moves of a step: the update, the first of its batches, and these."""
        for index, live in enumerate(self._updates):
            share = live.update.accumulate
            for first in range(0, live.update.repeats * share if due[index] else 0, share):
                yield index, first, batches[first : first + share]

    def _move(self, index: int, batches: Sequence[Batch], step: tf.Tensor, first: tf.Tensor) -> None:
        """Make a move as it was rehearsed, or as traced for batches of another form; on TPUs as part of the loop."""
        if isinstance(self._strategy, tf.distribute.TPUStrategy):
            self._on_replicas(index, batches, step, first)
            return
        form = tf.nest.map_structure(tf.type_spec_from_value, batches)
        if _key(index, form) not in self._moves:
            with tf.init_scope():
                self._trace(index, form)
        self._moves[_key(index, form)](batches, step, first)

    def _on_replicas(self, index: int, batches: Sequence[Batch], step: tf.Tensor, first: tf.Tensor) -> None:
        self._strategy.run(self._on_replica, (batches, step, first, index))

    def _trace(self, index: int, batches: Sequence[Batch]) -> None:
        """Trace a move on abstract batches."""
        number = tf.TensorSpec([], tf.int64)
        move = tf.function(functools.partial(self._on_replicas, index), jit_compile=self._xla or None, autograph=False)
        self._moves[_key(index, batches)] = move.get_concrete_function(batches, number, number)

    def _abstract_rows(self) -> Batch:
        """Return the form of a global batch, as iterators give it."""

        def zeros(context: tf.distribute.ReplicaContext | None = None) -> Batch:
            size = self._per_replica_batch_size
            return Batch(image=tf.zeros([size, *self._networks.spec.image_shape]), label=tf.zeros([size], tf.int32))

        if self._num_replicas == 1:
            rows = zeros()
        else:
            rows = self._strategy.experimental_distribute_values_from_function(zeros)
        return tf.nest.map_structure(tf.type_spec_from_value, rows)

    def _learn_memory(self) -> None:
        """Make what updates remember, as their losses alone tell it: no move is traced for a run that only samples."""
        if self._is_rehearsed:
            return

        def trace(batch: Batch) -> None:
            for index, live in enumerate(self._updates):
                live.losses(batch, self._random(index, tf.constant(0, tf.int64), 0))

        on_replicas = tf.function(lambda batch: self._strategy.run(trace, (batch,)), autograph=False)
        on_replicas.get_concrete_function(self._abstract_rows())
        for index in range(len(self._updates)):
            self._make_room(index)

    def _lacks_room(self, index: int) -> bool:
        return len(self._names[index]) > self._sums[index].shape[0] or not self._updates[index].remembered.is_settled

    def _make_room(self, index: int) -> None:
        """Make the variables that a trace found missing."""
        with self._strategy.scope():
            self._updates[index].remembered.settle()
            if len(names := self._names.get(index, ())) > self._sums[index].shape[0]:
                self._sums[index] = replica_sums(len(names))

    def _on_replica(self, batches: Sequence[Batch], step: tf.Tensor, first: tf.Tensor, index: int) -> None:
        randoms = [self._random(index, step, first + number) for number in range(len(batches))]
        metrics = self._updates[index](batches, randoms)
        self._names[index] = list(metrics)
        if (more := self._sums[index].shape[0] - len(metrics)) >= 0:
            self._sums[index].assign_add(tf.pad(tf.stack(list(metrics.values())), [[0, more]]))

    def _random(self, index: int, step: tf.Tensor, batch: tf.Tensor | int) -> Random:
        replica = self._replica
        if replica is None:
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return ReplicaRandom(
            seed=self._seed,
            stream=str(index),
            step=step,
            repeat=batch,
            per_replica_batch_size=self._per_replica_batch_size,
            replica=replica,
            num_replicas=self._num_replicas,
        )

    def _take_sums(self) -> list[tf.Tensor]:
        """Return every metric's sum over replicas and runs, and start again from 0."""
        sums = [tf.identity(variable) for variable in self._sums]
        for variable in self._sums:
            variable.assign(tf.zeros_like(variable))
        return sums

    def _means(self, sums: Sequence[tf.Tensor], runs: Sequence[int]) -> dict[str, float]:
        """Return {metric: its mean over the steps run}; the device is read once an update."""
        means: dict[str, float] = {}
        for index, (total, count) in enumerate(zip(sums, runs, strict=True)):
            if count:
                means |= dict(zip(self._names[index], (total.numpy() / np.float32(count)).tolist(), strict=False))
        return means


def _key(index: int, batches: Sequence[Batch]) -> tuple:
    return (index, *tf.nest.flatten(batches))
