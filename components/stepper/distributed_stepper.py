"""Runs an ordered list of updates on every replica, many steps in one call.

What is decided here and nowhere else: sums over examples are divided by the global batch and summed over replicas, all
randomness is keyed by (seed, update, purpose, step, batch of the step), and step s draws the batches
[s * batches_per_step, (s + 1) * batches_per_step).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import keras
import tensorflow as tf

from components.interfaces import Batch, Networks, Random, Update, UserError
from components.stepper import inspection
from components.stepper.audit import Audit
from components.stepper.players import seat_players
from components.stepper.randomness import ReplicaRandom
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
        """
        self._strategy = tf.distribute.get_strategy()
        self._num_replicas = self._strategy.num_replicas_in_sync
        if global_batch_size % self._num_replicas:
            near = -(-global_batch_size // self._num_replicas) * self._num_replicas
            raise UserError(
                "The number of replicas must divide `global_batch_size`. Received "
                f"global_batch_size={global_batch_size} for {self._num_replicas} replicas. Use {near}."
            )
        self._per_replica_batch_size = global_batch_size // self._num_replicas
        self._seed = seed
        self._networks = networks
        self._players = seat_players(updates, networks, copy_network, global_batch_size)
        self._updates = [LiveUpdate(update, self._players, networks, global_batch_size) for update in updates]
        self._names: dict[int, list[str]] = {}  # of the metrics of each update
        self._sums: list[tf.Variable] = []
        self._audit: Audit | None = None
        self._lost: list[str] = []
        self.batches_per_step = max(update.repeats * update.accumulate for update in updates)
        self.averages = {n: copy for p in self._players.values() for n, copy in p.averages.items()}
        self.step = tf.Variable(
            0, trainable=False, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
        )
        self._replica_step = self._compiled(self._on_replica, xla)
        self._compiles = xla

    def state(self) -> dict[str, list[keras.Variable | tf.Variable]]:
        """Return {name: variables} of the step counter, the optimizers, the averages and what updates remember."""
        self.rehearse()  # it tells what there is to remember
        state = {"step": [self.step]}
        for name, player in self._players.items():
            state[f"{name}/optimizer"] = list(player.optimizer.variables)
            state |= {f"{network}/average": list(copy.variables) for network, copy in player.averages.items()}
        for index, live in enumerate(self._updates):
            state |= {f"update_{index}/{name}": [variable] for name, variable in live.remembered.variables.items()}
        return state

    def rehearse(self) -> None:
        """Trace every objective on abstract rows; learn the metrics' names, raise what would fail at step 0."""
        if self._names:
            return

        def trace(batch: Batch) -> None:
            for index, live in enumerate(self._updates):
                self._names[index] = live.metric_names(batch, self._random(index, tf.constant(0, tf.int64), 0))

        image = tf.TensorSpec([self._per_replica_batch_size, *self._networks.spec.image_shape], tf.float32)
        label = tf.TensorSpec([self._per_replica_batch_size], tf.int32)
        on_replicas = tf.function(lambda batch: self._strategy.run(trace, (batch,)), autograph=False)
        on_replicas.get_concrete_function({"image": image, "label": label})
        _require_distinct([name for names in self._names.values() for name in names])
        with self._strategy.scope():
            self._sums = [_replica_sums(len(self._names[index])) for index in range(len(self._updates))]
            for live in self._updates:
                live.remembered.settle()

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics that `run` returns; known after `rehearse`."""
        return [name for names in self._names.values() for name in names]

    def lost(self) -> list[str]:
        """Return the names of the variables that held NaN or infinity at the end of the last `run`."""
        return self._lost

    def inspect(self, iterator: Iterator[Batch]) -> str:
        """Run one step with a look at every layer; see `interfaces.Auditing`. The first replica that finds tells."""
        step, found = self.step.read_value(), dict[int, str]()
        batches, due = [next(iterator) for _ in range(self.batches_per_step)], self._due(int(step))

        def look(batches: Sequence[Batch], index: int, first: int) -> None:
            randoms = [self._random(index, step, first + number) for number in range(len(batches))]
            where = inspection.first_fault(self._updates[index], self._networks, batches, randoms)
            found[int(tf.distribute.get_replica_context().replica_id_in_sync_group)] = where

        move = tf.function(lambda *given: self._strategy.run(self._replica_step, given), autograph=False)
        for index, first, rows in self._moves(batches, due):
            with inspection.undone(self._networks), inspection.watching():
                self._strategy.run(look, (rows, index, first))
            where = next((found[replica] for replica in sorted(found) if found[replica]), "")
            if not where:
                move(rows, step, index, first)
                where = self._updates[index].lost_in_the_move()
            if where:
                return where
        self.step.assign_add(1)
        return ""

    def run(self, iterator: Iterator[Batch], num_steps: int) -> dict[str, tf.Tensor]:
        """Run `num_steps` steps; see `interfaces.Stepper.run`."""
        self.rehearse()
        if self._audit is None:
            self._audit = self._made_audit()
        first = int(self.step.numpy())
        runs = [0] * len(self._updates)
        for due, steps in groupby(range(first, first + num_steps), self._due):
            count = len(list(steps))
            self._loop(iterator, tf.constant(count), due)
            runs = [
                n + count * update.update.repeats * d for n, update, d in zip(runs, self._updates, due, strict=True)
            ]
        if int(self.step.numpy()) != first + num_steps:
            raise RuntimeError(f"Asked for step {first + num_steps}, arrived at {int(self.step.numpy())}.")
        sums, flags = self._take_sums()
        self._lost = self._audit.named(flags)
        return self._means(sums, runs)

    def _made_audit(self) -> Audit:
        state = {f"{name}/network": network.variables for name, network in self._networks.items()} | self.state()
        with self._strategy.scope():
            audit = Audit(state)
        self._audit_replica = self._compiled(audit, self._compiles)
        return audit

    def _due(self, step: int) -> tuple[bool, ...]:
        """Say which updates are made in a step."""
        return tuple(step % live.update.every == 0 for live in self._updates)

    @tf.function(autograph=False)
    def _loop(self, iterator: Iterator[Batch], num_steps: tf.Tensor, due: tuple[bool, ...]) -> None:
        def body(done: tf.Tensor) -> tf.Tensor:
            self._one_step(iterator, due)
            return done + 1

        tf.while_loop(lambda done: done < num_steps, body, [0])

    def _one_step(self, iterator: Iterator[Batch], due: tuple[bool, ...]) -> None:
        batches = [next(iterator) for _ in range(self.batches_per_step)]
        step = self.step.read_value()
        for index, first, rows in self._moves(batches, due):
            self._strategy.run(self._replica_step, (rows, step, index, first))
        self.step.assign_add(1)
        if all(due):
            for player in self._players.values():
                player.require_reached()

    def _moves(self, batches: Sequence[Batch], due: tuple[bool, ...]) -> Iterator[tuple[int, int, Sequence[Batch]]]:
        """Yield the moves of a step: the update, the first of its batches, and these."""
        for index, live in enumerate(self._updates):
            share = live.update.accumulate
            for first in range(0, live.update.repeats * share if due[index] else 0, share):
                yield index, first, batches[first : first + share]

    def _compiled(self, function: Callable[..., None], xla: bool | None) -> Callable[..., None]:
        """Return the replica's part of an update, compiled or not; raises UserError where it cannot be."""
        if self._num_replicas > 1:
            if xla and not isinstance(self._strategy, tf.distribute.TPUStrategy):
                raise UserError(
                    "XLA compiles an update for one device. Received `DistributedStepper.xla` = True for "
                    f"{self._num_replicas} replicas. Leave it out, or use --strategy=one_device."
                )
            return function
        wanted = "GPU" in self.step.device if xla is None else xla
        return tf.function(function, jit_compile=True, autograph=False) if wanted else function

    def _on_replica(self, batches: Sequence[Batch], step: tf.Tensor, index: int, first: int) -> None:
        randoms = [self._random(index, step, first + number) for number in range(len(batches))]
        metrics = self._updates[index](batches, randoms)
        self._sums[index].assign_add(tf.stack([metrics[name] for name in self._names[index]]))

    def _random(self, index: int, step: tf.Tensor, batch: int) -> Random:
        return ReplicaRandom(
            seed=self._seed,
            stream=str(index),
            step=step,
            repeat=batch,
            per_replica_batch_size=self._per_replica_batch_size,
            replica=tf.distribute.get_replica_context().replica_id_in_sync_group,
            num_replicas=self._num_replicas,
        )

    @tf.function(autograph=False)
    def _take_sums(self) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Return every metric's sum over replicas and runs, and what the audit says; start again from 0."""
        self._strategy.run(self._audit_replica)
        taken = [self._audit.flags, *self._sums] if self._audit else self._sums
        flags, *sums = [tf.identity(variable) for variable in taken]
        for variable in taken:
            variable.assign(tf.zeros_like(variable))
        return sums, flags

    def _means(self, sums: Sequence[tf.Tensor], runs: Sequence[int]) -> dict[str, tf.Tensor]:
        means: dict[str, tf.Tensor] = {}
        for index, (total, count) in enumerate(zip(sums, runs, strict=True)):
            if count:
                means |= dict(zip(self._names[index], tf.unstack(total / count), strict=True))
        return means


def _require_distinct(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(
            f"Two updates never report under one name. Received twice: {', '.join(twice)}. Set one `Update.loss_name`, "
            "or rename the metric in its objective."
        )


def _replica_sums(size: int) -> tf.Variable:
    """Return a float32[size] that each replica adds to on its own and that reads as the sum over replicas."""
    return tf.Variable(
        tf.zeros([size]),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
