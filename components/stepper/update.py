"""One update in replica context: losses, gradients, moves."""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from components.interfaces import Batch, Losses, Moment, Networks, Random, Update, UserError, happening_at
from components.per_example import other_form
from components.stepper.memory import Averages, MoveMemory, follow
from components.stepper.players import LivePlayer

Gradients = list[list[tf.Tensor | None]]  # of each player's variables


class LiveUpdate:
    """What an `Update` became: runs on one replica's rows and returns its share of every metric.

    Args:
      update: what to do.
      players: the live players of all updates.
      networks: all networks.
      global_batch_size: the one divisor of every sum over examples.
    """

    def __init__(
        self, update: Update, players: Mapping[str, LivePlayer], networks: Networks, global_batch_size: int
    ) -> None:
        """Find the players that move and the variables that must not."""
        self.update = update
        self.remembered = Averages()
        self._players = [players[name] for name in update.players]
        self._networks = networks
        self._global_batch_size = global_batch_size
        own = {network for player in self._players for network in player.network_names}
        self._bystanders = [
            v for name, network in networks.items() if name not in own for v in network.non_trainable_variables
        ]

    def losses(self, batch: Batch, random: Random) -> tuple[Losses, MoveMemory]:
        """Return the objective's losses, checked, and what it asked to remember."""
        memory = MoveMemory(self.remembered, self._global_batch_size)
        with happening_at(Moment(random, memory)):
            losses = self.update.objective(self._networks, batch, random=random)
        expected, received = set(self.update.players), set(losses.players)
        if expected != received:
            raise UserError(
                f"An objective must give the loss of each player of its update and of no other. {self._describe()} has "
                f"the players {sorted(expected)}; received losses for {sorted(received)}."
            )
        size = batch["image"].shape[0]
        for name, value in {**losses.players, **losses.metrics}.items():
            _check_per_example(f"{self._describe()}: {name!r}", value, size)
        return losses, memory

    def __call__(self, batches: Sequence[Batch], randoms: Sequence[Random]) -> dict[str, tf.Tensor]:
        """Make the move; return {metric: float32[]} whose sum over replicas is the mean over the global batch.

        Args:
          batches: one, or as many as the update accumulates.
          randoms: one a batch.
        """
        statistics = [tf.identity(v) for v in self._bystanders]
        total, metrics, memory = self._gradients(batches[0], randoms[0])
        memories = [memory]
        for batch, random in zip(batches[1:], randoms[1:], strict=True):
            # One after the other: the layers' outputs of a single batch are what memory must hold.
            with tf.control_dependencies([g for one in total for g in one if g is not None]):
                more, more_metrics, memory = self._gradients({k: tf.identity(v) for k, v in batch.items()}, random)
            memories.append(memory)
            total = [[_sum(a, b) for a, b in zip(*pair, strict=True)] for pair in zip(total, more, strict=True)]
            metrics = {name: value + more_metrics[name] for name, value in metrics.items()}
        follow(memories)
        share = 1.0 / len(batches)
        for player, gradients in zip(self._players, total, strict=True):
            player.move([g if g is None or share == 1 else share * g for g in gradients], randoms[0].step)
        # A network that only judged keeps its statistics: an update moves nothing but its own players' networks.
        for variable, value in zip(self._bystanders, statistics, strict=True):
            variable.assign(value)
        return {name: share * value for name, value in metrics.items()}

    def shares(self, losses: Losses) -> dict[str, tf.Tensor]:
        """Return {player: float32[]}, what this replica's rows add to the mean of each loss."""
        return {name: self._share(loss) for name, loss in losses.players.items()}

    @property
    def players(self) -> Sequence[LivePlayer]:
        """Those that move."""
        return self._players

    def lost_in_the_move(self) -> str:
        """Return which variable of a player is not finite after a move whose gradients were; "" where all are."""
        for player in self._players:
            for variable in player.trainable:
                if not bool(tf.reduce_all(tf.math.is_finite(tf.convert_to_tensor(variable)))):
                    kind = type(player.optimizer).__name__
                    return f"player {player.name!r}: {variable.path}, which {kind} moved by a finite gradient"
        return ""

    def _gradients(self, batch: Batch, random: Random) -> tuple[Gradients, dict[str, tf.Tensor], MoveMemory]:
        """Return the gradients of each player's loss on one batch, the metrics' shares, and what it remembers."""
        with tf.GradientTape(persistent=len(self._players) > 1) as tape:
            losses, memory = self.losses(batch, random)
            shares = self.shares(losses)
            objectives = {p.name: p.optimizer.scale_loss(shares[p.name]) for p in self._players}
        gradients = [tape.gradient(objectives[p.name], p.trainable) for p in self._players]
        metrics = {name: self._share(value) for name, value in losses.metrics.items()}
        return gradients, {**{self._reported(name): share for name, share in shares.items()}, **metrics}, memory

    def _reported(self, player: str) -> str:
        return f"{player}/{self.update.loss_name}"

    def _share(self, per_example: tf.Tensor) -> tf.Tensor:
        """Return sum / global batch: the one place that divides by a batch size."""
        return tf.reduce_sum(per_example) / self._global_batch_size

    def _describe(self) -> str:
        return f"The update of {' and '.join(self.update.players)}"


def _sum(left: tf.Tensor | None, right: tf.Tensor | None) -> tf.Tensor | None:
    """Add two gradients; None is that of a loss that does not know the variable."""
    if left is None or right is None:
        return right if left is None else left
    return tf.convert_to_tensor(left) + tf.convert_to_tensor(right)  # an embedding's are sparse


def _check_per_example(what: str, value: object, size: int) -> None:
    received = other_form(value, size)
    if received is None:
        return
    raise UserError(
        f"Losses and metrics are float32, one number per example, never a mean. {what} must be float32[{size}]; "
        f"received {received}. Cast it, or reduce over all axes but the first, in the loss or objective that "
        "`Experiment.updates` leads to."
    )
