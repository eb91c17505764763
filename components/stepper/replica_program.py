"""A whole training step as one function of what one replica is given, for a compiler to look at."""

from typing import Any

import tensorflow as tf

from components.interfaces import Batch
from components.stepper.rules import rows_of_each


def replica_program(twin: Any, num_replicas: int) -> tf.types.experimental.PolymorphicFunction:
    """Return a whole step, every update due; it is not meant to be run, and leaves out sums over replicas.

    Args:
      twin: a copy of a DistributedStepper, rehearsed, which is changed here.
      num_replicas: that share the global batch; the stepper's own may be another number.

    Returns:
      A function of (images float32[n, B, H, W, C], labels int32[n, B], step int64[], replica int32[]), n the batches of
      a step.

    Raises:
      UserError: the replicas do not divide the global batch.
    """
    rows_of_all = twin._per_replica_batch_size * twin._num_replicas
    twin._num_replicas, twin._per_replica_batch_size = num_replicas, rows_of_each(rows_of_all, num_replicas)

    def step(images: tf.Tensor, labels: tf.Tensor, step: tf.Tensor, replica: tf.Tensor) -> None:
        twin._replica = replica
        rows = zip(tf.unstack(images), tf.unstack(labels), strict=True)
        batches = [Batch(image=image, label=label) for image, label in rows]
        for call in twin._schedule.calls():
            own = batches[call.first : call.first + call.batches]
            twin._strategy.run(twin._on_replica, (own, step, call.first, call.updates))

    rows = [twin.batches_per_step, twin._per_replica_batch_size]
    signature = [
        tf.TensorSpec([*rows, *twin._networks.spec.image_shape], tf.float32, name="images"),
        tf.TensorSpec(rows, tf.int32, name="labels"),
        tf.TensorSpec([], tf.int64, name="step"),
        tf.TensorSpec([], tf.int32, name="replica"),
    ]
    return tf.function(step, input_signature=signature, jit_compile=True, autograph=False)
