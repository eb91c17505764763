"""Where in an update the first number arises that is not finite: looked for after the fact, layer by layer."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from components.interfaces import Batch, Networks, Random
from components.stepper.update import LiveUpdate

_SEEN = threading.local()  # operations whose output was not finite, in order; replicas are threads


def first_fault(live: LiveUpdate, networks: Networks, batches: Sequence[Batch], randoms: Sequence[Random]) -> str:
    """Compute the losses and gradients of an update eagerly, in replica context, and look at each number on the way.

    Args:
      live: the update; nothing is moved.
      networks: of the run, to name the layers.
      batches: those of one move.
      randoms: one a batch.

    Returns:
      What was not finite first, with the player: the output of a layer, while one is `watching`, a loss, or a
      gradient; "" where all was.
    """
    players = " and ".join(player.name for player in live.players)
    for batch, random in zip(batches, randoms, strict=True):
        if not _is_finite(batch["image"]):
            return f"player {players!r}: the real images of its batch"
        _SEEN.operations = []
        with tf.GradientTape(persistent=True) as tape:
            losses, _ = live.losses(batch, random)
            shares = live.shares(losses)
        if _SEEN.operations:
            return f"player {players!r}: the output of {_described(_SEEN.operations[0], networks)}"
        for name, value in {**losses.players, **losses.metrics}.items():
            if not _is_finite(value):
                return f"player {players!r}: {name!r} of the objective, made from finite outputs of all layers"
        for player in live.players:
            if where := _gradient_fault(tape, shares[player.name], player.trainable):
                return f"player {player.name!r}: the gradient of {where}"
    return ""


def first_fault_on_replicas(
    strategy: tf.distribute.Strategy,
    live: LiveUpdate,
    networks: Networks,
    batches: Sequence[Any],
    randoms: Callable[[], Sequence[Random]],
) -> str:
    """Return `first_fault` of the first replica that has one, with every layer watched; nothing is changed.

    Args:
      strategy: that the run is distributed by.
      live: the update.
      networks: of the run.
      batches: those of one move, of all replicas.
      randoms: gives one a batch, in replica context.
    """
    found: dict[int, str] = {}

    def look(rows: Sequence[Batch]) -> None:
        replica = int(tf.distribute.get_replica_context().replica_id_in_sync_group)
        found[replica] = first_fault(live, networks, rows, randoms())

    with undone(networks), watching():
        strategy.run(look, (batches,))
    return next((found[replica] for replica in sorted(found) if found[replica]), "")


@contextmanager
def undone(networks: Networks) -> Iterator[None]:
    """Take back what a look changes: statistics and vectors that networks keep beside their weights."""
    variables = [v for network in networks.values() for v in network.non_trainable_variables]
    values = [v.numpy() for v in variables]
    try:
        yield
    finally:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


@contextmanager
def watching() -> Iterator[None]:
    """Let `first_fault` see, in whatever thread it is called, each operation of Keras as it returns."""
    call = keras.Operation.__call__

    def watched(operation: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = call(operation, *args, **kwargs)
        if not all(map(_is_finite, keras.tree.flatten(outputs))):
            getattr(_SEEN, "operations", []).append(operation)
        return outputs

    keras.Operation.__call__ = watched
    try:
        yield
    finally:
        keras.Operation.__call__ = call


def _gradient_fault(tape: tf.GradientTape, loss: tf.Tensor, variables: Sequence[keras.Variable]) -> str:
    """Return the variable whose gradient is the first one, from the loss backwards, that is not finite."""
    gradients = tape.gradient(loss, variables)
    lost = [v.path for v, g in zip(variables, gradients, strict=True) if g is not None and not _is_finite(g)]
    return lost[-1] if lost else ""


def _is_finite(value: Any) -> bool:
    if not isinstance(value, tf.Tensor) or not value.dtype.is_floating or not hasattr(value, "numpy"):
        return True
    return bool(tf.reduce_all(tf.math.is_finite(value)))


def _described(operation: Any, networks: Networks) -> str:
    owner = next((n for n, network in networks.items() if operation in network._flatten_layers()), None)
    kind = f"{operation.name!r} ({type(operation).__name__})"
    return f"layer {kind} of network {owner!r}" if owner else f"the operation {kind}"
