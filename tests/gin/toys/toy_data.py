"""A data source that holds nothing."""

import tensorflow as tf

from components.interfaces import DataSpec, HostShard


class ToySource:
    def __init__(self, name: str = "toy", image_shape: tuple[int, int, int] = (4, 4, 1), split: str = "train") -> None:
        self.name, self.image_shape, self.split = name, image_shape, split

    @property
    def spec(self) -> DataSpec:
        return DataSpec(
            image_shape=self.image_shape,
            num_classes=0,
            num_examples=8,
            name=self.name,
            split=self.split,
            fingerprint="",
        )

    def batches(self, *, global_batch_size: int, seed: int, start_batch: int, host: HostShard) -> tf.data.Dataset:
        raise NotImplementedError
