"""Asks a second process to compile a module for a chip, and keeps what it answers."""

import hashlib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.tpu.chips import Topology

_SCRIPT = Path(__file__).with_name("ahead_of_time.py")
_TOO_LARGE = re.compile(r"[Uu]sed ([\d.]+[KMG]?) of ([\d.]+[KMG]?) hbm")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of a module for one core of a topology.

    Attributes:
      topology: that it was compiled for.
      seconds: that it took.
      memory: {"argument", "temp", "generated_code": bytes}.
      cost: {"flops", "bytes"} of a step, as the compiler counts them.
      error: why there is none of these; empty: it was compiled.
    """

    topology: Topology
    seconds: float = 0.0
    memory: Mapping[str, int]
    cost: Mapping[str, float]
    error: str = ""

    @property
    def bytes_needed(self) -> int:
        """Arguments (weights, optimizers, batches), temporaries and code; results are written over the arguments."""
        return sum(self.memory.get(name, 0) for name in ("argument", "temp", "generated_code"))

    @property
    def is_too_large(self) -> bool:
        """Whether the compiler ran out of memory, or what it made does not leave what the runtime needs."""
        return self.needs_more_than_there_is or self.bytes_needed > self.topology.chip.core_bytes

    @property
    def needs_more_than_there_is(self) -> bool:
        """Whether the compiler itself ran out of the chip's memory."""
        return "RESOURCE_EXHAUSTED" in self.error or "Ran out of memory" in self.error

    @property
    def compilers_own_count(self) -> str:
        """What the compiler says of memory where it ran out of it, such as "20.1G of 15.75G"."""
        found = _TOO_LARGE.search(self.error)
        return f"{found[1]} of {found[2]}" if found else "more than there is"

    @property
    def fits(self) -> bool:
        """Whether it was compiled and fits the memory."""
        return not self.error and not self.is_too_large


def is_installed() -> bool:
    """Say whether the extra `tpu-check` is there; imports nothing of it."""
    return all(importlib.util.find_spec(name) is not None for name in ("jax", "jaxlib", "libtpu"))


def compile_for(module: bytes, topology: Topology, keep: Path | None = None) -> Answer:
    """Compile serialized StableHLO for one core; takes from seconds to minutes.

    Args:
      module: of one replica's step.
      topology: of the chip.
      keep: a folder of answers; what it holds for this very module is not compiled again.
    """
    kept = keep and keep / f"{_digest(module)}-{topology.name.replace(':', '-')}.json"
    if kept and kept.exists():
        return _read(json.loads(kept.read_text()), topology)
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(module)
        file.flush()
        # -P: the modules beside the script are not to be taken for others of their names.
        command = [sys.executable, "-P", str(_SCRIPT), file.name, topology.name]
        done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = " ".join(done.stderr.split())[-600:]
        return _read({"error": f"the compiler's process ended with status {done.returncode}: {last}"}, topology)
    answer = json.loads(lines[-1])
    if kept and "memory" in answer:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(lines[-1])
    return _read(answer, topology)


def _digest(module: bytes) -> str:
    """Return what changes with a module, but not with the number that TensorFlow puts into its function's name."""
    return hashlib.sha256(re.sub(rb"inference_step_\d+", b"inference_step", module)).hexdigest()[:32]


def _read(answer: Mapping, topology: Topology) -> Answer:
    error = answer.get("error", "")
    if not error and answer["devices"] != topology.cores:
        error = f"the compiler sees {answer['devices']} cores where {topology.cores} were counted"
    return Answer(
        topology=topology,
        seconds=answer.get("seconds", 0.0),
        memory=answer.get("memory", {}),
        cost=answer.get("cost", {}),
        error=error,
    )
