"""Data sets of TensorFlow Datasets, the digits that come with the package among them."""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf
import tensorflow_datasets as tfds
from absl import logging

from components.data_source import examples, order, preparation, records
from components.data_source.decoding import Decoder, decoder
from components.interfaces import Batch, DataSpec, HostShard, UserError

_ONLY_HOST = HostShard()


@dataclass(frozen=True, kw_only=True)
class _Opened:
    spec: DataSpec
    examples: examples.Examples


@dataclass(frozen=True, kw_only=True)
class TFDSSource:
    """Reads one split of a TFDS data set; opens nothing until its data are asked for.

    Element i of `batches` depends on (seed, start_batch + i, global_batch_size, host) and on nothing else, whether the
    data are held in memory or, beyond `memory_budget_mb`, read one by one: both give the same bits. Prepared data
    are read without any network access.

    Attributes:
      name: `data_set`, `data_set/config` or `data_set:version`, as TFDS knows it, or "mnist_5k", the embedded digits.
      split: a split of the data set, or a slice of one, such as "train[:90%]".
      data_dir: TFDS's folder; None: $TFDS_DATA_DIR, or ~/tensorflow_datasets.
      substitute: the data set used in place of one that is neither prepared nor can be downloaded, which is then
        announced; None: that is an error.
      memory_budget_mb: MiB that images may take as bytes to be held in memory.
      device_budget_mb: MiB that images may take as bytes to be copied to every device that trains; see
        `Experiment.data_on_device`.
      download: whether the network may be used for data that are not prepared.
      image_key: name of the image among the features of the data set.
      label_key: name of the class label; a data set without "label", or None, trains without labels.
      image_size: (height, width) in pixels: images are cropped to this aspect ratio about their centre, then resized.
        None: they stay as they are and must have one size.
    """

    name: str
    split: str = "train"
    data_dir: str | None = None
    substitute: str | None = None
    memory_budget_mb: int = 2048
    device_budget_mb: int = 1024
    download: bool = True
    image_key: str = "image"
    label_key: str | None = "label"
    image_size: tuple[int, int] | None = None

    @property
    def spec(self) -> DataSpec:
        """Shape, size and identity of the data; opens them if need be.

        Raises:
          UserError: they cannot be had, or are not such as can be trained on.
        """
        return self._opened.spec

    @property
    def streamed_files(self) -> list[str]:
        """The files that a training goes on reading; none where the images fit `memory_budget_mb`."""
        held = self._opened.examples
        return list(held.index.files) if isinstance(held, examples.StreamedExamples) else []

    def foresee(self) -> DataSpec | None:
        """Return what data that are not prepared will be, as far as TFDS knows; None for prepared ones.

        Raises:
          UserError: there is no such data set, or its images' size is known only when it is prepared.
        """
        self._check()
        builder = preparation.unprepared_builder(self.name, data_dir=self.data_dir)
        if builder is None:
            return None
        decode = self._decoder(builder)
        if None in decode.image_shape:
            raise UserError(
                f"The size of the images must be known. That of `{self.name}` is, once the data set is prepared: train "
                "once, or bind `image_size`, for example image_size = (64, 64)."
            )
        how = "they are written" if self.name == preparation.EMBEDDED else "they are downloaded and written"
        otherwise = f", or `{self.substitute}` is used where that fails" if self.substitute else ""
        return DataSpec(
            image_shape=decode.image_shape,
            num_classes=decode.num_classes,
            num_examples=0,
            name=self.name,
            split=self.split,
            fingerprint="",
            notice=f"Not prepared: first {how} to {builder.data_dir_root}{otherwise}.",
        )

    def batches(
        self, *, global_batch_size: int, seed: int, start_batch: int, host: HostShard = _ONLY_HOST
    ) -> tf.data.Dataset:
        """Return an endless dataset of `Batch`: element i is this host's part of global batch start_batch + i.

        Args:
          global_batch_size: B, rows over all hosts; a multiple of the number of hosts, and may exceed the data set.
          seed: any integer.
          start_batch: index of the first batch, at least 0.
          host: the rows [index * B / count, (index + 1) * B / count) are built.

        Returns:
          Dataset of {image: float32[B / count, H, W, C] in [-1, 1], label: int32[B / count]}, shapes static.

        Raises:
          UserError: an argument is out of range, or the data cannot be had.
        """
        wanted = self.numbers(global_batch_size=global_batch_size, seed=seed, start_batch=start_batch, host=host)
        return self._opened.examples.gather(wanted).prefetch(tf.data.AUTOTUNE).with_options(_as_they_come())

    def numbers(
        self, *, global_batch_size: int, seed: int, start_batch: int, host: HostShard = _ONLY_HOST
    ) -> tf.data.Dataset:
        """Return an endless dataset of int64[B / count]: the examples of which `batches` makes its elements.

        Raises:
          UserError: as `batches`.
        """
        order.host_rows(global_batch_size, host)
        order.seed_words(seed)
        if start_batch < 0:
            raise UserError(f"`start_batch` must be at least 0. Received {start_batch}.")
        which = functools.partial(
            order.batch_examples,
            num_examples=self.spec.num_examples,
            global_batch_size=global_batch_size,
            seed=seed,
            host=host,
        )
        return tf.data.Dataset.range(start_batch, tf.int64.max).map(which).with_options(_as_they_come())

    def on_devices(self) -> Callable[[tf.Tensor], Batch] | None:
        """Copy all examples to the devices of the current strategy, if they fit `device_budget_mb`; else None."""
        return self._opened.examples.on_devices(self.device_budget_mb)

    @functools.cached_property
    def _opened(self) -> _Opened:
        self._check()
        try:
            builder = preparation.prepared_builder(self.name, data_dir=self.data_dir, download=self.download)
        except preparation.Unavailable as error:
            return self._open_substitute(str(error))
        return self._read(builder, self.split, notice="")

    def _check(self) -> None:
        """Refuse what could not be used, though it may never come to it."""
        for name in ("memory_budget_mb", "device_budget_mb"):
            if getattr(self, name) < 0:
                raise UserError(f"`{name}` must be at least 0. Received {getattr(self, name)}.")
        if self.substitute is not None:
            preparation.require_known(self.substitute, parameter="substitute")

    def _open_substitute(self, reason: str) -> _Opened:
        """Open the substitute in place of a data set that cannot be had, and say so."""
        if self.substitute is None:
            raise UserError(self._remedies(reason))
        try:
            builder = preparation.prepared_builder(self.substitute, data_dir=self.data_dir, download=self.download)
        except preparation.Unavailable as error:
            raise UserError(
                f"Neither the data set `{self.name}` nor its substitute can be had: {reason}; `{self.substitute}`: "
                f"{error}. Bind `substitute` to {preparation.EMBEDDED!r}, the digits in the package."
            ) from error
        split, note = _split_of_substitute(builder, self.split)
        count = builder.info.splits[split].num_examples
        notice = (
            f"These are not the data of `{self.name}`, which is neither prepared nor can be downloaded now ({reason}). "
            f"In its place: `{self.substitute}`, split `{split}`, {count} examples{note}."
        )
        opened = self._read(builder, split, notice=notice)
        _announce(notice)
        return opened

    def _read(self, builder: tfds.core.DatasetBuilder, split: str, *, notice: str) -> _Opened:
        """Open one split of a prepared data set."""
        decode = self._decoder(builder)
        instructions = _instructions(builder, split)
        index = records.index_records(instructions)
        held = examples.open_examples(
            instructions, index, decode, memory_budget_mb=self.memory_budget_mb, name=builder.name
        )
        spec = DataSpec(
            image_shape=held.image_shape,
            num_classes=decode.num_classes,
            num_examples=len(index.file),
            name="/".join(filter(None, (builder.name, builder.info.config_name))),
            split=split,
            fingerprint=_fingerprint(builder, split, decode, held),
            notice=notice,
        )
        return _Opened(spec=spec, examples=held)

    def _decoder(self, builder: tfds.core.DatasetBuilder) -> Decoder:
        return decoder(
            builder.info.features,
            name=builder.name,
            image_key=self.image_key,
            label_key=self.label_key,
            image_size=self.image_size,
        )

    def _remedies(self, reason: str) -> str:
        """Say how to come by a data set that cannot be had."""
        folder = self.data_dir or str(tfds.core.constants.DATA_DIR)
        return (
            f"The data set `{self.name}` must be prepared in {folder}, or be within reach of a download. Received: "
            f"{reason.rstrip('.')}.\nPrepare it on a machine with a network:\n"
            f'  python -c "import tensorflow_datasets as tfds; '
            f'tfds.builder({self.name!r}, data_dir={folder!r}).download_and_prepare()"\n'
            f"then copy {folder}/{self.name.split('/')[0].partition(':')[0]} to the same place on this one. "
            f"Or train on the 5,000 digits in the package: bind TFDSSource.name, or TFDSSource.substitute, "
            f"to {preparation.EMBEDDED!r}."
        )


def _as_they_come() -> tf.data.Options:
    options = tf.data.Options()
    options.deterministic = True
    # An element is this host's part already: nobody is to divide the files among hosts once more.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options


def _instructions(builder: tfds.core.DatasetBuilder, split: str) -> list:
    """Return TFDS's file instructions of a split, of at least one example.

    Raises:
      UserError: there is no such split, it is empty, or its files are no TFRecords.
    """
    try:
        instructions = [part for part in builder.info.splits[split].file_instructions if part.take > 0]
    except (KeyError, ValueError, AssertionError) as error:
        sizes = ", ".join(f"{key} ({value.num_examples} examples)" for key, value in builder.info.splits.items())
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"`split` must be a split of the data set `{builder.name}`, or a slice of one. Received {split!r}: "
            f"{reason} It has {sizes}. Use, for example, {next(iter(builder.info.splits), 'train')!r}."
        ) from error
    if not instructions:
        raise UserError(f"A split must hold an example. Received {split!r} of `{builder.name}`, which holds none.")
    if ".tfrecord" not in str(instructions[0].filename):
        raise UserError(
            f"A data set must be prepared as TFRecord files. Received {instructions[0].filename}. "
            "Prepare it again by `download_and_prepare(file_format='tfrecord')` in another `data_dir`."
        )
    return instructions


def _split_of_substitute(builder: tfds.core.DatasetBuilder, split: str) -> tuple[str, str]:
    """Return the split to read of a substitute and a remark if it is not the one asked for."""
    try:
        if builder.info.splits[split].num_examples > 0:
            return split, ""
    except (KeyError, ValueError, AssertionError):
        pass
    whole = next(iter(builder.info.splits))
    return whole, f", since it has no split `{split}`: do not compare results with those of `{split}`"


def _fingerprint(builder: tfds.core.DatasetBuilder, split: str, decode: Decoder, held: examples.Examples) -> str:
    """Return 16 hexadecimal digits that change with the data, their order, or what is read of them.

    Data held in memory enter byte by byte, data that are streamed by the lengths of their records. So the same data
    get another fingerprint when a new `memory_budget_mb` moves them from one kind to the other.
    """
    identity = (
        builder.info.full_name,
        split,
        held.image_shape,
        held.digest,
        decode.image_key,
        decode.label_key,
        decode.image_size,
    )
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


@functools.cache  # once for each text, however many sources there are
def _announce(notice: str) -> None:
    rule = "*" * 100
    logging.warning("\n%s\nATTENTION, SUBSTITUTE DATA\n%s\n%s", rule, notice, rule)
