"""What must hold of a step's batches and metrics before it is run."""

from collections.abc import Sequence

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
