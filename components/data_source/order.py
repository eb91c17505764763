"""Which example is at which position: the one place that decides the order of data.

Examples follow each other in an endless sequence of epochs. Every epoch is a permutation of all examples, and global
batch s of B rows is positions [s * B, (s + 1) * B) of the sequence: a batch may straddle epochs, and what remains of
an epoch opens the next batch. All of it is a function of (seed, position), so nothing needs to be saved for a restart.
"""

import hashlib
import operator

import tensorflow as tf

from components.interfaces import HostShard, UserError

# Fewer rounds leave permutations that resemble the stored order for small seeds. 4, which
# tf.random.experimental.index_shuffle fixes, give three times the correlation of a fair shuffle. 8 are recommended.
_ROUNDS = 8

_ONLY_HOST = HostShard()


def seed_words(seed: int) -> tuple[int, int]:
    """Return two words in [0, 2**32) that stand for any integer, negative and very large ones included.

    The shuffle reads 32 bits of each word, so seeds that differ by 2**32 would otherwise give the same order.

    Raises:
      UserError: `seed` is no integer.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise UserError(f"`seed` must be an integer. Received {seed!r}. Use, for example, 0.") from None
    digest = hashlib.sha256(str(number).encode()).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


def examples_at(positions: tf.Tensor, *, num_examples: int, seed: int) -> tf.Tensor:
    """Return which example is at each position of the endless sequence of epochs.

    Position p of the sequence is position p % N of epoch p // N, and the permutation of an epoch is keyed by
    (seed, epoch). Epochs that are 2**32 apart share theirs.

    Args:
      positions: int64[n], each at least 0; may span any number of epochs. Works inside a tf.data graph.
      num_examples: N, at least 1.
      seed: any integer.

    Returns:
      int64[n] in [0, N).

    Raises:
      UserError: there are no examples, or `seed` is no integer.
    """
    if num_examples < 1:
        raise UserError(f"A data set must hold at least one example. Received num_examples={num_examples}.")
    positions = tf.convert_to_tensor(positions, tf.int64)
    epochs = positions // num_examples
    words = [tf.fill(tf.shape(positions), tf.constant(word, tf.int64)) for word in seed_words(seed)]
    # The op itself, since tf.random.experimental.index_shuffle pads the wrong axis of a key for every row.
    return tf.raw_ops.RandomIndexShuffle(
        index=positions % num_examples,
        seed=tf.stack([epochs, *words], axis=1),
        max_index=tf.constant(num_examples - 1, tf.int64),
        rounds=_ROUNDS,
    )


def host_rows(global_batch_size: int, host: HostShard) -> tuple[int, int]:
    """Return (first row, number of rows) of a global batch that one host builds.

    Raises:
      UserError: the batch does not divide by the number of hosts, or there is no such host.
    """
    if global_batch_size < 1:
        raise UserError(f"`global_batch_size` must be at least 1. Received {global_batch_size}.")
    if not 0 <= host.index < host.count:
        raise UserError(f"A host's index must be in [0, count). Received index={host.index}, count={host.count}.")
    if global_batch_size % host.count:
        lower = global_batch_size // host.count * host.count
        choices = " or ".join(str(size) for size in (lower, lower + host.count) if size)
        raise UserError(
            "`global_batch_size` must be divisible by the number of hosts. "
            f"Received global_batch_size={global_batch_size}, hosts={host.count}. Use {choices}."
        )
    rows = global_batch_size // host.count
    return host.index * rows, rows


def batch_examples(
    batch: tf.Tensor, *, num_examples: int, global_batch_size: int, seed: int, host: HostShard = _ONLY_HOST
) -> tf.Tensor:
    """Return which examples are this host's rows of one global batch.

    Args:
      batch: int64[], index of the batch, at least 0.
      num_examples: N, at least 1; may be smaller than the batch.
      global_batch_size: B, rows of the batch over all hosts.
      seed: any integer.
      host: the rows wanted are [index * B / count, (index + 1) * B / count).

    Returns:
      int64[B / count] in [0, N), of static shape.

    Raises:
      UserError: as `host_rows` and `examples_at`.
    """
    first, rows = host_rows(global_batch_size, host)
    start = tf.cast(batch, tf.int64) * global_batch_size + first
    return examples_at(start + tf.range(rows, dtype=tf.int64), num_examples=num_examples, seed=seed)
