"""A run that several processes share: who takes part, which of them this is, and how they agree."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from components.interfaces import Hardware, UserError
from components.stepper.rendezvous import meet, port_is_taken

_JOBS = ("chief", "worker")
_NUMBERS = 65  # 0 to 64: none, or the number of a signal
_EXAMPLE = '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What TF_CONFIG says of a run.

    Attributes:
      addresses: `host:port` of every worker; the first is the chief, whatever job it is listed under.
      index: which of them this process is.
    """

    addresses: tuple[str, ...]
    index: int

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that writes."""
        return self.index == 0

    def __str__(self) -> str:
        """Return one line for a person."""
        chief = f"the chief, at {self.addresses[0]}"
        if self.is_chief:
            return f"{len(self.addresses)} workers, this is worker 0, {chief}"
        return (
            f"{len(self.addresses)} workers, this is worker {self.index}, at {self.addresses[self.index]}; worker 0 is "
            f"{chief}"
        )


def cluster(tf_config: str | None) -> Cluster:
    """Return what a TF_CONFIG says.

    Args:
      tf_config: the text of the environment variable, or None where it is not set.

    Raises:
      UserError: it is not set, is no JSON of the form that TensorFlow reads, or this process is none of its workers.
    """
    jobs, task = _read(tf_config)
    others = sorted(set(jobs) - set(_JOBS))
    if others:
        raise _refusal(
            "lists the jobs `worker` and, where one is set apart, `chief`", tf_config, f" (job {others[0]!r})"
        )
    addresses = [address for job in _JOBS for address in jobs.get(job, [])]
    if not addresses:
        raise _refusal("lists the workers", tf_config)
    if not all(isinstance(address, str) and _is_address(address) for address in addresses):
        raise _refusal("lists each worker as `host:port`, of a port from 1 to 65535", tf_config)
    twice = [address for address in addresses if addresses.count(address) > 1]
    if twice:
        raise _refusal("lists each worker once", tf_config, f" ({twice[0]} is there twice)")
    job, index = task.get("type"), task.get("index")
    if job not in jobs or not isinstance(index, int) or not 0 <= index < len(jobs[job]):
        raise _refusal("says which of its workers this process is, counted from 0", tf_config)
    before = len(jobs.get("chief", [])) if job == "worker" else 0
    return Cluster(addresses=tuple(addresses), index=before + index)


def join() -> Hardware:
    """Return the hardware of a run that the workers of TF_CONFIG share, when all of them have come.

    Raises:
      UserError: TF_CONFIG does not say who they are, this one's port is taken, or some do not come within an hour.
    """
    members = cluster(os.environ.get("TF_CONFIG"))
    meet(members.addresses, members.index)
    strategy = _strategy(members)
    agree = _agreement(strategy)

    def wait_for_all() -> None:
        agree(0)

    kind = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    return Hardware(
        strategy=strategy,
        accelerator=kind,
        description=f"{members}; {strategy.num_replicas_in_sync} replicas in all, on {kind.upper()}s",
        is_chief=members.is_chief,
        wait_for_all=wait_for_all,
        agree=agree,
    )


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 2**16


def _strategy(members: Cluster) -> tf.distribute.Strategy:
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.UnknownError as error:
        if "Could not start gRPC server" not in str(error):
            raise
        raise port_is_taken(members.addresses[members.index]) from error


def _agreement(strategy: tf.distribute.Strategy) -> Callable[[int], int]:
    """Return what gives all processes the largest of their numbers; it returns when all have called it."""

    @tf.function
    def count(number: tf.Tensor) -> tf.Tensor:
        # Strategies reduce by sum or mean only: each process casts its vote, and the largest number with one is it.
        votes = strategy.run(lambda: tf.one_hot(number, _NUMBERS))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, votes, axis=None)

    def agree(number: int) -> int:
        return int(tf.reduce_max(tf.where(count(tf.constant(number)) > 0)))

    return agree


def _read(tf_config: str | None) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return {job: addresses} and the task of a TF_CONFIG."""
    try:
        config = json.loads(tf_config or "")
        jobs = {job: list(addresses) for job, addresses in config["cluster"].items()}
        return jobs, dict(config.get("task") or {})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _refusal("lists the workers", tf_config) from None


def _refusal(rule: str, tf_config: str | None, detail: str = "") -> UserError:
    return UserError(
        f"`--strategy=multi_worker` needs the environment variable TF_CONFIG, which {rule}. Received "
        f"TF_CONFIG={tf_config!r}{detail}. Set it on each worker, such as '{_EXAMPLE}'."
    )
