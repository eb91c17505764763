"""Chooses the hardware, and says what was chosen and why."""

import dataclasses
import os

import tensorflow as tf

from components.interfaces import Hardware, UserError
from components.stepper import workers

_NAMES = ("auto", "tpu", "mirrored", "multi_worker", "one_device", "cpu:N")


def select(*, name: str = "auto") -> Hardware:
    """Return the strategy called `name`.

    Args:
      name: "auto": a TPU, else all GPUs of this host, else the CPU. "tpu": a TPU, or what "auto" finds without one, and
        the shortfall said. "mirrored": all GPUs of this host, likewise. "one_device": the first GPU, or the CPU.
        "cpu:N": N logical replicas on this CPU, to see distribution on any machine. "multi_worker": the workers that
        the environment variable TF_CONFIG lists.

    Raises:
      UserError: an unknown name, a number of logical CPUs that this process can no longer make, or a TF_CONFIG that
        does not say who the workers are.
    """
    if name == "multi_worker":
        return workers.join()
    if name.startswith("cpu:"):
        return _logical_cpus(name)
    if name not in _NAMES:
        raise UserError(f"`strategy.select.name` must be one of {', '.join(_NAMES)}. Received {name!r}.")
    gpus = tf.config.list_physical_devices("GPU")
    if name == "one_device":
        return _one_device("gpu" if gpus else "cpu", "one device was asked for")
    if name != "mirrored" and _tpu_is_here():
        return _tpu()
    missing = {"tpu": "No TPU was found.", "mirrored": "" if gpus else "No GPU was found."}.get(name, "")
    if len(gpus) > 1:
        return Hardware(
            strategy=tf.distribute.MirroredStrategy(),
            accelerator="gpu",
            description=f"{len(gpus)} GPUs of this host, one replica each",
            shortfall=missing,
            meant_for_tpu=name == "tpu",
        )
    found = _one_device("gpu" if gpus else "cpu", "the best device found", missing)
    return dataclasses.replace(found, meant_for_tpu=name == "tpu")


def _one_device(kind: str, reason: str, shortfall: str = "") -> Hardware:
    label = {"gpu": "one GPU", "cpu": f"this CPU ({os.cpu_count()} cores)"}[kind]
    strategy = tf.distribute.OneDeviceStrategy(f"/{kind}:0")
    return Hardware(strategy=strategy, accelerator=kind, description=f"{label}, {reason}", shortfall=shortfall)


def _tpu_is_here() -> bool:
    """Say whether a TPU is attached or named by the environment; touches no network.

    TPU_SYSTEM alone proves nothing: TensorFlow for TPU lists it on any machine.
    """
    return bool(tf.config.list_physical_devices("TPU") or os.environ.get("TPU_NAME"))


def _tpu() -> Hardware:
    address = os.environ.get("TPU_NAME", "local")
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(address)
    if address != "local":
        tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    description = f"TPU {address!r}, {strategy.num_replicas_in_sync} cores, one replica each"
    return Hardware(
        strategy=strategy,
        accelerator="tpu",
        description=description,
        meant_for_tpu=True,
        is_remote=address != "local",
    )


def _logical_cpus(name: str) -> Hardware:
    wanted = name.removeprefix("cpu:")
    if not wanted.isdecimal() or int(wanted) < 1:
        raise UserError(f"`cpu:N` needs a number of replicas of at least 1. Received {name!r}. Use cpu:2.")
    count = int(wanted)
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    except RuntimeError:  # TensorFlow has started: the devices are what they are
        pass
    devices = [device.name for device in tf.config.list_logical_devices("CPU")][:count]
    if len(devices) < count:
        raise UserError(
            f"A process fixes its logical CPUs when TensorFlow starts. Received {name!r} where there are "
            f"{len(devices)}. Start a new process for it."
        )
    return Hardware(
        strategy=tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice()),
        accelerator="cpu",
        description=f"{count} logical replicas on this CPU",
    )
