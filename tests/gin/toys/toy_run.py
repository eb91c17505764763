"""The remaining parts of an experiment."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from components.interfaces import Hardware, Networks, Update


class ToyStepper:
    def __init__(
        self, *, networks: Networks, copy_network: Any, updates: Sequence[Update], global_batch_size: int, seed: int
    ) -> None:
        self.step = tf.Variable(0)
        self.batches_per_step = 1
        self.averages: Mapping[str, Any] = {}

    def state(self) -> Mapping[str, Sequence[tf.Variable]]:
        return {}

    def rehearse(self) -> None: ...

    def run(self, iterator: Any, num_steps: int) -> Mapping[str, tf.Tensor]:
        return {}


class ToyCheckpointer:
    def __init__(self, directory: str, state: Mapping[str, Sequence[tf.Variable]], *, keep: int = 3) -> None:
        self.directory = directory

    def restore_latest(self) -> int:
        return 0

    def restore(self, step: int) -> None: ...

    def steps(self) -> list[int]:
        return []

    def save(self, step: int) -> None: ...


class ToySampler:
    def __init__(self, networks: Networks) -> None: ...

    def sample(self, num_images: int, *, seed: int, labels: Sequence[int] | None = None) -> Any: ...


def strategy(*, devices: int = 1) -> Hardware:
    return Hardware(strategy=tf.distribute.get_strategy(), accelerator="cpu", description="")
