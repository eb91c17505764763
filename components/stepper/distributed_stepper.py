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
import tensorflow as tf

from components.interfaces import Batch, Networks, Random, Update
from components.outside import outside
from components.stepper import inspection
from components.stepper.audit import Audit
from components.stepper.heap import keep_freed_memory
from components.stepper.metric_sums import MetricSums
from components.stepper.players import seat_players
from components.stepper.randomness import ReplicaRandom
from components.stepper.replica_program import replica_program
from components.stepper.rules import is_compiled, require_distinct, rows_of_each
from components.stepper.schedule import Schedule
from components.stepper.update import LiveUpdate


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
        self._metrics = [MetricSums() for _ in updates]
        self._schedule = Schedule(updates)
        self._traced: dict[tuple, Any] = {}  # {(the updates of a call, *form of the batches): a function}
        self._is_rehearsed = False
        self.batches_per_step = self._schedule.batches_per_step
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

        What is traced here is what runs: a call is traced once, however often and in whatever steps it is made.
        """
        if self._is_rehearsed:
            return
        rows = self._abstract_rows()
        for updates, count in dict.fromkeys((call.updates, call.batches) for call in self._schedule.calls()):
            self._trace(updates, [rows] * count)
            if any(self._lacks_room(index) for index in updates):
                self._make_room(updates)
                self._trace(updates, [rows] * count)
        require_distinct(self.metrics)
        for player in self._players.values():
            player.require_reached()
        self._is_rehearsed = True
        networks = {f"{name}/network": network.variables for name, network in self._networks.items()}
        with self._strategy.scope():
            self._audit = Audit(networks | self.state(), xla=self._xla)

    @property
    def rehearsals(self) -> list[tf.Graph]:
        """The graphs of all updates as they were rehearsed."""
        return [traced.graph for traced in self._traced.values()]

    def replica_program(self, num_replicas: int) -> tf.types.experimental.PolymorphicFunction:
        """Return a whole step as one function of what a replica is given; see `replica_program.replica_program`."""
        self.rehearse()
        return replica_program(copy.copy(self), num_replicas)

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics that `run` returns; known after `rehearse`."""
        return [name for sums in self._metrics for name in sums.names]

    def lost(self) -> list[str]:
        """Return the names of the variables that hold NaN or infinity."""
        self.rehearse()
        return self._audit.lost()

    def inspect(self, iterator: Iterator[Batch]) -> str:
        """Run one step with a look at every layer; see `interfaces.Auditing`. The first replica that finds tells."""
        self.rehearse()
        step = self.step.read_value()
        batches = [next(iterator) for _ in range(self.batches_per_step)]
        for move in self._schedule.moves(self._schedule.due(int(step))):
            live, rows = self._updates[move.updates[0]], batches[move.first : move.first + move.batches]
            randoms = functools.partial(self._randoms, move.updates[0], step, move.first, move.batches)
            where = inspection.first_fault_on_replicas(self._strategy, live, self._networks, rows, randoms)
            if not where:
                self._call(move.updates, rows, step, tf.constant(move.first, tf.int64))
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
        made = [0] * len(self._updates)
        for due, steps in groupby(range(first, first + num_steps), self._schedule.due):
            count = len(list(steps))
            self._make(iterator, count, due)
            for move in self._schedule.moves(due):
                made[move.updates[0]] += count
        if int(self.step.numpy()) != first + num_steps:
            raise RuntimeError(f"Asked for step {first + num_steps}, arrived at {int(self.step.numpy())}.")
        taken = [sums.take(moves) for sums, moves in zip(self._metrics, made, strict=True)]
        return {name: mean for means in taken for name, mean in means.items()}

    def _make(self, iterator: Iterator[Batch], num_steps: int, due: tuple[bool, ...]) -> None:
        if self._loops:
            self._loop(iterator, tf.constant(num_steps), due)
        else:  # each call is one function already: another around them would be traced and optimised once more
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
        for call in self._schedule.calls(due):
            rows = batches[call.first : call.first + call.batches]
            self._call(call.updates, rows, step, tf.constant(call.first, tf.int64))
        self.step.assign_add(1)

    def _call(self, updates: tuple[int, ...], batches: Sequence[Batch], step: tf.Tensor, first: tf.Tensor) -> None:
        """Make moves as they were rehearsed, or as traced for batches of another form; on TPUs as part of the loop."""
        if isinstance(self._strategy, tf.distribute.TPUStrategy):
            self._on_replicas(updates, batches, step, first)
            return
        form = tf.nest.map_structure(tf.type_spec_from_value, batches)
        traced = self._traced.get(_key(updates, form))
        if traced is None:
            traced = outside(lambda: self._trace(updates, form))
        traced(batches, step, first)

    def _on_replicas(
        self, updates: tuple[int, ...], batches: Sequence[Batch], step: tf.Tensor, first: tf.Tensor
    ) -> None:
        self._strategy.run(self._on_replica, (batches, step, first, updates))

    def _trace(self, updates: tuple[int, ...], batches: Sequence[Batch]) -> Any:
        """Return a call traced on abstract batches."""
        number = tf.TensorSpec([], tf.int64)
        call = tf.function(
            functools.partial(self._on_replicas, updates), jit_compile=self._xla or None, autograph=False
        )
        traced = self._traced[_key(updates, batches)] = call.get_concrete_function(batches, number, number)
        return traced

    def _abstract_rows(self) -> Batch:
        """Return the form of a global batch, as iterators give it."""

        size = self._per_replica_batch_size
        form = Batch(
            image=tf.TensorSpec([size, *self._networks.spec.image_shape]), label=tf.TensorSpec([size], tf.int32)
        )
        if self._num_replicas == 1:
            return form  # nothing of its size is made: a batch may be too large for this host

        def zeros(context: tf.distribute.ReplicaContext) -> Batch:
            return tf.nest.map_structure(lambda one: tf.zeros(one.shape, one.dtype), form)

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
        self._make_room(range(len(self._updates)))

    def _lacks_room(self, index: int) -> bool:
        return self._metrics[index].lacks_room or not self._updates[index].remembered.is_settled

    def _make_room(self, updates: Sequence[int]) -> None:
        """Make the variables that a trace found missing."""
        with self._strategy.scope():
            for index in updates:
                self._updates[index].remembered.settle()
                self._metrics[index].make_room()

    def _on_replica(
        self, batches: Sequence[Batch], step: tf.Tensor, first: tf.Tensor, updates: tuple[int, ...]
    ) -> None:
        for index in updates:
            live = self._updates[index]
            randoms = self._randoms(index, step, first, live.update.accumulate)
            self._metrics[index].add(live(batches[: live.update.accumulate], randoms))

    def _randoms(self, index: int, step: tf.Tensor, first: tf.Tensor | int, count: int) -> list[Random]:
        return [self._random(index, step, first + number) for number in range(count)]

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


def _key(updates: tuple[int, ...], batches: Sequence[Batch]) -> tuple:
    return (updates, *tf.nest.flatten(batches))
