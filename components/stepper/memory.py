"""What updates remember from one step to the next: moving averages over the global batch."""

from collections.abc import Sequence

import tensorflow as tf

from components.interfaces import UserError


class Averages:
    """The moving averages of one update.

    Its first trace says which there are; `settle` then makes their variables, and it must be traced again.
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.names: dict[str, None] = {}  # in the order in which they were first asked for
        self.variables: dict[str, tf.Variable] = {}

    @property
    def is_settled(self) -> bool:
        """Whether each name has its variable."""
        return self.names.keys() == self.variables.keys()

    def settle(self) -> None:
        """Make a variable for each name that has none, inside strategy.scope()."""
        aggregation = tf.VariableAggregation.ONLY_FIRST_REPLICA
        for name in self.names:
            if name not in self.variables:
                self.variables[name] = tf.Variable(0.0, trainable=False, aggregation=aggregation)


class MoveMemory:
    """The memory of one batch of a move on one replica; see `interfaces.Memory`.

    Args:
      averages: of the update; shared by the replicas, which are threads.
      global_batch_size: the mean over the global batch is sum / this.
    """

    def __init__(self, averages: Averages, global_batch_size: int) -> None:
        """Begin with nothing asked for."""
        self.averages = averages
        self.global_batch_size = global_batch_size
        self.asked: dict[str, tuple[tf.Tensor, float | tf.Tensor]] = {}

    def average(self, name: str, values: tf.Tensor, *, decay: float | tf.Tensor) -> tf.Tensor:
        """Return float32[], the average before this move; raises UserError for a name used twice in one move."""
        if name in self.asked:
            raise UserError(f"A move follows each average once. Received {name!r} twice. Name one of them differently.")
        self.asked[name] = tf.reduce_sum(tf.stop_gradient(values)), decay
        self.averages.names.setdefault(name)
        variable = self.averages.variables.get(name)
        return tf.zeros([]) if variable is None else variable.read_value()


def follow(memories: Sequence[MoveMemory]) -> None:
    """Move every average that was asked for, once for all batches of a move; all replicas come to the same numbers."""
    first, replica = memories[0], tf.distribute.get_replica_context()
    for name, (_, decay) in first.asked.items() if first.averages.is_settled else ():
        total = tf.add_n([memory.asked[name][0] for memory in memories])
        mean = replica.all_reduce(tf.distribute.ReduceOp.SUM, total) / (len(memories) * first.global_batch_size)
        variable = first.averages.variables[name]
        variable.assign(decay * variable + (1.0 - decay) * mean)
