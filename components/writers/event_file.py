"""Curves and pictures for TensorBoard."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import tensorflow as tf


class EventFile:
    """Writes TensorBoard events into `events` in the run folder; see them with `tensorboard --logdir=runs`.

    Args:
      directory: the run folder.
    """

    def __init__(self, directory: str) -> None:
        """Hold the path."""
        self._directory = f"{directory}/events"

    def rewind(self, step: int) -> None:
        """Nothing to do: TensorBoard drops what an earlier file holds beyond the first step of a later one."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write one point of every curve."""
        with self._writer.as_default():
            for name, value in values.items():
                tf.summary.scalar(name, value, step)

    def images(self, step: int, name: str, images: Any) -> None:
        """Write one picture uint8[H, W, C]."""
        with self._writer.as_default():
            tf.summary.image(name, images[None], step)

    def close(self) -> None:
        """Flush and close."""
        if "_writer" in self.__dict__:
            self._writer.close()

    @cached_property
    def _writer(self) -> tf.summary.SummaryWriter:
        return tf.summary.create_file_writer(self._directory)
