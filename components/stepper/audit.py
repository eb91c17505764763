"""Which variables of a run are no longer finite, asked of the device when something is to be saved or told."""

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf


class Audit:
    """Looks at every number that a checkpoint would hold.

    A gradient that is not finite shows here too, in the weights that it moved or the averages that an optimizer keeps
    of it, unless the optimizer took it out: by `clipvalue`, or by the scaling of a loss, which passes such a step over.

    Args:
      state: {name: variables}.
      xla: whether XLA compiles it.
    """

    def __init__(self, state: Mapping[str, Sequence[keras.Variable | tf.Variable]], *, xla: bool) -> None:
        """Make a flag for each variable, inside strategy.scope()."""
        named = {
            id(variable): (f"{name}: {getattr(variable, 'path', None) or place}", variable)
            for name, variables in state.items()
            for place, variable in enumerate(variables)
            if tf.as_dtype(variable.dtype).is_floating
        }
        self._names = [name for name, _ in named.values()]
        self._variables = [variable for _, variable in named.values()]
        self._flags = replica_sums(len(self._names))
        self._strategy = tf.distribute.get_strategy()
        self._raise = tf.function(self._raise_flags, jit_compile=True, autograph=False) if xla else self._raise_flags

    def lost(self) -> list[str]:
        """Return the names of the variables that hold NaN or infinity on any replica."""
        return [name for name, flag in zip(self._names, self._take_flags().numpy(), strict=True) if flag]

    def _raise_flags(self) -> None:
        """Raise the flags of what is not finite on this replica."""
        # A sum is cheaper than a look at each number, and lost where one is; finite numbers overflow it near 1e38 only.
        sums = [tf.reduce_sum(tf.convert_to_tensor(v)) for v in self._variables]
        self._flags.assign_add(tf.cast(~tf.math.is_finite(tf.stack(sums)), tf.float32))

    @tf.function(autograph=False)
    def _take_flags(self) -> tf.Tensor:
        """Return the flags float32[variables], above 0 where raised, and lower them."""
        self._strategy.run(self._raise)
        flags = tf.identity(self._flags)
        self._flags.assign(tf.zeros_like(self._flags))
        return flags


def replica_sums(size: int) -> tf.Variable:
    """Return a float32[size] that each replica adds to on its own and that reads as the sum over replicas."""
    return tf.Variable(
        tf.zeros([size]),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
