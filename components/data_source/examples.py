"""The examples of a split, held in memory or read one by one, in the same order and with the same values."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from components.data_source import records
from components.data_source.decoding import Decoder, check_channels
from components.interfaces import Batch, UserError

_CHUNK = 256


class Examples(Protocol):
    """All examples of a split, addressed by number."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """H, W, C."""
        ...

    @property
    def digest(self) -> str:
        """Changes with the examples and with their order."""
        ...

    def gather(self, wanted: tf.data.Dataset) -> tf.data.Dataset:
        """Turn a dataset of example numbers int64[n], n static, into one of `Batch` with n rows."""
        ...

    def on_devices(self, budget_mb: int) -> Callable[[tf.Tensor], Batch] | None:
        """Copy the examples to the devices; None where they are too large, or are not held at all."""
        ...


def to_batch(images: tf.Tensor, labels: tf.Tensor) -> Batch:
    """Return the batch of images uint8[n, H, W, C] and labels int32[n]: byte 0 becomes -1, byte 255 becomes 1."""
    # A division by a constant becomes this product in some graphs and not in others, with other last bits.
    return Batch(image=(tf.cast(images, tf.float32) - 127.5) * (1 / 127.5), label=labels)


@dataclass(frozen=True, kw_only=True)
class HeldExamples:
    """Examples held in memory, as bytes.

    Attributes:
      images: uint8[N, H, W, C].
      labels: int32[N].
      digest: of every byte and label, in order; the same for every preparation of the same data.
    """

    images: tf.Tensor
    labels: tf.Tensor
    digest: str

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """H, W, C."""
        return tuple(self.images.shape[1:])

    def gather(self, wanted: tf.data.Dataset) -> tf.data.Dataset:
        """Turn a dataset of example numbers int64[n], n static, into one of `Batch` with n rows."""

        def rows(numbers: tf.Tensor) -> Batch:
            # The tensors are captured by reference: the graph holds no copy of the data.
            return to_batch(tf.gather(self.images, numbers), tf.gather(self.labels, numbers))

        return wanted.map(rows, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)

    def on_devices(self, budget_mb: int) -> Callable[[tf.Tensor], Batch] | None:
        """Copy the examples to the devices of the current strategy, if they take `budget_mb` MiB at most.

        Returns:
          What makes a `Batch` with n rows of example numbers int64[n], on the device that it is called on; or None.
        """
        if int(tf.size(self.images)) > budget_mb * 2**20:
            return None
        images = tf.Variable(self.images, trainable=False)
        labels = tf.Variable(tf.cast(self.labels, tf.int64), trainable=False)  # a GPU gathers no int32 of a variable
        return lambda numbers: to_batch(tf.gather(images, numbers), tf.cast(tf.gather(labels, numbers), tf.int32))


@dataclass(frozen=True, kw_only=True)
class StreamedExamples:
    """Examples read and decoded when they are wanted: memory holds 12 bytes for each, and the batches on their way.

    Records are read at random, which wants a local disk rather than a distant one. Since the images are not read
    beforehand, the digest is that of the lengths of their records.
    """

    index: records.RecordIndex
    decode: Decoder
    image_shape: tuple[int, int, int]

    @property
    def digest(self) -> str:
        """Changes with the length of any record, and with their order."""
        return self.index.digest

    def gather(self, wanted: tf.data.Dataset) -> tf.data.Dataset:
        """Turn a dataset of example numbers int64[n], n static, into one of `Batch` with n rows."""
        with tf.device("/CPU:0"):
            files = tf.constant(self.index.files)
            file, offset = tf.constant(self.index.file), tf.constant(self.index.offset)

        def example(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            record = records.read_record(files[file[number]], offset[number])
            image, label = self.decode(record)
            if self.decode.num_classes:
                message = "An example has no label. Bind `label_key = None` to train without labels."
                tf.debugging.assert_non_negative(label, message)
            return tf.ensure_shape(image, self.image_shape), label

        rows = wanted.element_spec.shape[0]
        examples = wanted.unbatch().map(example, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        return examples.batch(rows, drop_remainder=True).map(to_batch)

    def on_devices(self, budget_mb: int) -> None:
        """Return None: what does not fit the host's memory does not fit a device's."""


def open_examples(
    instructions: Sequence[Any], index: records.RecordIndex, decode: Decoder, *, memory_budget_mb: int, name: str
) -> Examples:
    """Hold the examples if they fit the budget, read them one by one otherwise.

    Args:
      instructions: TFDS file instructions of the split.
      index: of the same split, with at least one record.
      decode: reads one record.
      memory_budget_mb: MiB that the images may take as bytes; loading takes twice as much for a moment.
      name: of the data set, for messages.

    Raises:
      UserError: images differ in size, have 2 or more than 4 channels, lack labels, or are damaged.
    """
    try:
        first, _ = decode(next(iter(records.stored_order(instructions).take(1))))
        return _choose(instructions, index, decode, tuple(first.shape), memory_budget_mb=memory_budget_mb, name=name)
    except tf.errors.OpError as error:
        raise UserError(
            f"Every example of the data set `{name}` must be readable. Received: {error.message[:300]} "
            f"Delete the folder of {index.files[0]}, and the data set is prepared again."
        ) from error


def _choose(
    instructions: Sequence[Any],
    index: records.RecordIndex,
    decode: Decoder,
    shape: tuple[int, int, int],
    *,
    memory_budget_mb: int,
    name: str,
) -> Examples:
    check_channels(shape[2], name=name)
    needed = len(index.file) * int(np.prod(shape))
    if needed <= memory_budget_mb * 2**20:
        return _load(instructions, decode, count=len(index.file), shape=shape, name=name)
    if None in decode.image_shape:
        raise UserError(
            "Data that do not fit `memory_budget_mb` must state one size for all images. Received the data set "
            f"`{name}`, which takes about {needed / 2**20:.0f} MiB, {memory_budget_mb=}. Bind `image_size`, "
            f"for example image_size = {shape[:2]}."
        )
    return StreamedExamples(index=index, decode=decode, image_shape=shape)


def _load(instructions: Sequence[Any], decode: Decoder, *, count: int, shape: tuple, name: str) -> HeldExamples:
    """Decode all examples, in stored order."""
    images, labels = np.empty((count, *shape), np.uint8), np.empty(count, np.int32)
    chunk = 1 if None in decode.image_shape else _CHUNK  # images of several sizes make no batch
    decoded = records.stored_order(instructions).map(decode, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    start = 0
    for some_images, some_labels in decoded.batch(chunk).prefetch(2).as_numpy_iterator():
        if some_images.shape[1:] != shape:
            raise UserError(
                f"All images must have one size. Received {shape} and {some_images.shape[1:]} in the data set "
                f"`{name}`. Bind `image_size`, for example image_size = (64, 64)."
            )
        images[start : start + len(some_images)] = some_images
        labels[start : start + len(some_labels)] = some_labels
        start += len(some_images)
    if decode.num_classes and labels.min() < 0:
        raise UserError(
            f"Every example must have a label. Received {(labels < 0).sum()} of {count} without in the data set "
            f"`{name}`. Bind `label_key = None` to train without labels, or use another split."
        )
    digest = hashlib.sha256(images.data)
    digest.update(labels.tobytes())
    with tf.device("/CPU:0"):  # a GPU has better uses for its memory
        return HeldExamples(images=tf.constant(images), labels=tf.constant(labels), digest=digest.hexdigest())
