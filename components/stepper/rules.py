"""What must hold of a step's batches, metrics and compilation before it is run."""

from collections.abc import Sequence

import tensorflow as tf

from components.interfaces import UserError


def rows_of_each(global_batch_size: int, num_replicas: int) -> int:
    """Return the rows of a replica; raises UserError where they would not be equally many."""
    if global_batch_size % num_replicas:
        near = -(-global_batch_size // num_replicas) * num_replicas
        raise UserError(
            "The number of replicas must divide `global_batch_size`. Received "
            f"global_batch_size={global_batch_size} for {num_replicas} replicas. Use {near}."
        )
    return global_batch_size // num_replicas


def require_distinct(names: Sequence[str]) -> None:
    """Raise UserError where two metrics of a step bear one name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(
            f"Two updates never report under one name. Received twice: {', '.join(twice)}. Set one `Update.loss_name`, "
            "or rename the metric in its objective."
        )


def is_compiled(xla: bool | None, strategy: tf.distribute.Strategy, *, is_on_gpu: bool) -> bool:
    """Say whether XLA compiles each move, where `xla` is asked for; raises UserError where it cannot."""
    if strategy.num_replicas_in_sync == 1:
        return is_on_gpu if xla is None else xla
    if xla and not isinstance(strategy, tf.distribute.TPUStrategy):
        raise UserError(
            "XLA compiles an update for one device. Received `DistributedStepper.xla` = True for "
            f"{strategy.num_replicas_in_sync} replicas. Leave it out, or use --strategy=one_device."
        )
    return False
