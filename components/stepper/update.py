"""One update in replica context: losses, gradients, moves."""

from collections.abc import Mapping

import tensorflow as tf

from components.interfaces import Batch, Losses, Networks, Random, Update, UserError, drawing_from
from components.stepper.players import LivePlayer


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
        self._players = [players[name] for name in update.players]
        self._networks = networks
        self._global_batch_size = global_batch_size
        own = {network for player in self._players for network in player.network_names}
        self._bystanders = [
            v for name, network in networks.items() if name not in own for v in network.non_trainable_variables
        ]

    def losses(self, batch: Batch, random: Random) -> Losses:
        """Return the objective's losses, checked: one float32 number per example for each player named."""
        with drawing_from(random):
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
        return losses

    def __call__(self, batch: Batch, random: Random) -> dict[str, tf.Tensor]:
        """Make the move; return {metric: float32[]} whose sum over replicas is the mean over the global batch."""
        statistics = [tf.identity(v) for v in self._bystanders]
        with tf.GradientTape(persistent=len(self._players) > 1) as tape:
            losses = self.losses(batch, random)
            shares = {name: self._share(loss) for name, loss in losses.players.items()}
            objectives = {p.name: p.optimizer.scale_loss(shares[p.name]) for p in self._players}
        gradients = [tape.gradient(objectives[p.name], p.trainable) for p in self._players]
        for player, gradient in zip(self._players, gradients, strict=True):
            player.move(gradient)
        # A network that only judged keeps its statistics: an update moves nothing but its own players' networks.
        for variable, value in zip(self._bystanders, statistics, strict=True):
            variable.assign(value)
        metrics = {name: self._share(value) for name, value in losses.metrics.items()}
        return {**{self._reported(name): share for name, share in shares.items()}, **metrics}

    def metric_names(self, batch: Batch, random: Random) -> list[str]:
        """Return the names of the metrics that a call returns, in order."""
        losses = self.losses(batch, random)
        return [*map(self._reported, losses.players), *losses.metrics]

    def _reported(self, player: str) -> str:
        return f"{player}/{self.update.loss_name}"

    def _share(self, per_example: tf.Tensor) -> tf.Tensor:
        """Return sum / global batch: the one place that divides by a batch size."""
        return tf.reduce_sum(per_example) / self._global_batch_size

    def _describe(self) -> str:
        return f"The update of {' and '.join(self.update.players)}"


def _check_per_example(what: str, value: tf.Tensor, size: int) -> None:
    if value.shape.as_list() != [size] or value.dtype != tf.float32:
        raise UserError(
            f"Losses and metrics are float32, one number per example, never a mean. {what} must be float32[{size}]; "
            f"received {value.dtype.name}{value.shape.as_list()}. Reduce over all axes but the first."
        )
