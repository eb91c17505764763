"""All randomness of training: stateless draws for the global batch, of which a replica takes its own rows."""

import copy
import hashlib
from collections import Counter
from collections.abc import Sequence

import tensorflow as tf

from components import draws

_MOST_REPEATS = 2**16


class ReplicaRandom:
    """One replica's view of the draws of one update; see `interfaces.Random`.

    Args:
      seed: of the run, any integer.
      stream: keeps apart updates that draw for the same purpose.
      step: int64[], the step being run.
      repeat: an integer or int64[] in [0, 2 ** 16), which of the step's batches the draws go with.
      per_replica_batch_size: B.
      replica: int32[], which rows of the global batch are ours.
      num_replicas: the global batch has B * num_replicas rows.
    """

    def __init__(
        self,
        *,
        seed: int,
        stream: str,
        step: tf.Tensor,
        repeat: tf.Tensor | int,
        per_replica_batch_size: int,
        replica: tf.Tensor | int = 0,
        num_replicas: int = 1,
    ) -> None:
        """Hold the key; nothing is drawn yet."""
        self._seed = seed
        self._stream = stream
        self.step = tf.cast(step, tf.int64)
        self._moment = self.step * _MOST_REPEATS + repeat
        self._rows = per_replica_batch_size
        self._replica = replica
        self._num_replicas = num_replicas
        self._occasions: Counter[str] = Counter()

    @property
    def shared(self) -> "ReplicaRandom":
        """The draws that all updates of a step have in common."""
        twin = copy.copy(self)
        twin._stream = "shared"
        return twin

    def normal(self, purpose: str, shape: Sequence[int] = ()) -> tf.Tensor:
        """Return float32[B, *shape], standard normal, between -5.5 and 5.5."""
        return self._own(draws.normal(self._whole(shape), self._key(purpose)))

    def uniform(self, purpose: str, shape: Sequence[int] = ()) -> tf.Tensor:
        """Return float32[B, *shape], uniform in [0, 1)."""
        return self._own(draws.fractions(self._whole(shape), self._key(purpose)))

    def integers(self, purpose: str, upper: int, shape: Sequence[int] = ()) -> tf.Tensor:
        """Return int32[B, *shape], uniform in [0, upper)."""
        return self._own(draws.integers(self._whole(shape), self._key(purpose), upper))

    def occasion(self, purpose: str) -> str:
        """Return `purpose/n` with n counting the calls."""
        self._occasions[purpose] += 1
        return f"{purpose}/{self._occasions[purpose] - 1}"

    def _key(self, purpose: str) -> tf.Tensor:
        """Return int64[2]: who draws, and when."""
        digest = hashlib.blake2b(f"{self._seed}/{self._stream}/{purpose}".encode(), digest_size=8).digest()
        return tf.stack([tf.constant(int.from_bytes(digest, "big", signed=True), tf.int64), self._moment])

    def _whole(self, shape: Sequence[int]) -> list[int]:
        return [self._rows * self._num_replicas, *shape]

    def _own(self, whole: tf.Tensor) -> tf.Tensor:
        if self._num_replicas == 1:
            return whole
        begin = [self._replica * self._rows] + [0] * (whole.shape.rank - 1)
        return tf.slice(whole, begin, [self._rows, *whole.shape[1:]])
