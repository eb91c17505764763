"""Which variables of a run are no longer finite, asked of the device once for many steps."""

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf


class Audit:
    """Looks at every number that a checkpoint would hold; called in replica context.

    A gradient that is not finite shows here too, in the weights that it moved or the averages that an optimizer keeps
    of it, unless the optimizer took it out: by `clipvalue`, or by the scaling of a loss, which passes such a step over.

    Args:
      state: {name: variables}.

    Attributes:
      flags: float32[variables], above 0 where a variable holds NaN or infinity; the sum over the replicas.
    """

    def __init__(self, state: Mapping[str, Sequence[keras.Variable | tf.Variable]]) -> None:
        """Make the flags, inside strategy.scope()."""
        named = {
            id(variable): (f"{name}: {getattr(variable, 'path', None) or place}", variable)
            for name, variables in state.items()
            for place, variable in enumerate(variables)
            if tf.as_dtype(variable.dtype).is_floating
        }
        self._names = [name for name, _ in named.values()]
        self._variables = [variable for _, variable in named.values()]
        self.flags = replica_sums(len(self._names))

    def __call__(self) -> None:
        """Raise the flags of what is not finite on this replica."""
        whole = [tf.reduce_all(tf.math.is_finite(tf.convert_to_tensor(v))) for v in self._variables]
        self.flags.assign_add(tf.cast(~tf.stack(whole), tf.float32))

    def named(self, flags: tf.Tensor) -> list[str]:
        """Return the names of the variables whose flags are raised."""
        return [name for name, flag in zip(self._names, flags.numpy(), strict=True) if flag]


def replica_sums(size: int) -> tf.Variable:
    """Return a float32[size] that each replica adds to on its own and that reads as the sum over replicas."""
    return tf.Variable(
        tf.zeros([size]),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
