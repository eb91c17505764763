"""How batches come to the devices: images from the host, or numbers of images that the devices hold already."""

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from components.interfaces import Batch, DataSource, Hardware, Holdable, HostShard, UserError
from pipeline.experiment import Experiment


def batches(experiment: Experiment, hardware: Hardware, *, start_batch: int) -> Iterator[Any]:
    """Return the global batches from `start_batch` on, each split over this host's replicas.

    Raises:
      UserError: the devices are to hold data that they cannot hold.
    """
    read = _held(experiment, hardware)
    source = experiment.data.batches if read is None else experiment.data.numbers  # type: ignore[attr-defined]

    def on_host(context: tf.distribute.InputContext) -> tf.data.Dataset:
        per_replica = context.get_per_replica_batch_size(experiment.global_batch_size)
        elements = source(
            global_batch_size=experiment.global_batch_size,
            seed=experiment.seed,
            start_batch=start_batch,
            host=HostShard(index=context.input_pipeline_id, count=context.num_input_pipelines),
        ).rebatch(per_replica, drop_remainder=True)
        # Said to be endless: several hosts would else prepare for a partial batch, whose shapes are not static.
        return elements.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))

    elements = iter(hardware.strategy.distribute_datasets_from_function(on_host))
    return elements if read is None else _Read(elements, read, hardware.strategy)


class _Read:
    """Turns numbers of examples into batches on the replicas; iterated inside the traced loop."""

    def __init__(self, numbers: Iterator[Any], read: Callable[[tf.Tensor], Batch], strategy: Any) -> None:
        self._numbers, self._read, self._strategy = numbers, read, strategy

    def __iter__(self) -> "_Read":
        return self

    def __next__(self) -> Any:
        return self._strategy.run(self._read, (next(self._numbers),))


def _held(experiment: Experiment, hardware: Hardware) -> Callable[[tf.Tensor], Batch] | None:
    """Return what reads an example that the devices hold; None where they are fed."""
    wanted, data = experiment.data_on_device, experiment.data
    if not (hardware.accelerator != "cpu" if wanted is None else wanted):
        return None
    with hardware.strategy.scope():
        read = data.on_devices() if isinstance(data, Holdable) else None
    if read is None and wanted:
        raise UserError(_cannot(data))
    return read


def _cannot(data: DataSource) -> str:
    what = f"The data {data.spec.name!r} ({data.spec.num_examples:,} images of {data.spec.image_shape})"
    return (
        f"`Experiment.data_on_device` = True needs data that a device can hold. {what} are larger than "
        "`TFDSSource.device_budget_mb`, or their source holds none. Raise that number, or leave data_on_device out."
    )
