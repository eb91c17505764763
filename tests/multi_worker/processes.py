"""Worker processes of one run, on this machine."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

ROOT = Path(__file__).parents[2]
PARAMETERS = (
    "GLOBAL_BATCH_SIZE = 12",
    "dcgan.generator.widths = (4, 4)",
    "dcgan.discriminator.widths = (4, 4)",
    "experiment.Experiment.steps_per_loop = 5",
    "experiment.Experiment.log_every = 5",
    "experiment.Experiment.save_every = 10",
    "experiment.Experiment.sample_every = 100",
)


class Workers:
    """All workers of a run; each one's output is in FOLDER/workdir.INDEX.txt.

    Args:
      count: how many.
      workdir: the run folder, in a folder of the test's own.
      parameters: lines of gin, beside PARAMETERS.
      program: what to run instead of `-m pipeline.main`, for each index.
    """

    def __init__(
        self,
        count: int,
        workdir: Path,
        parameters: Sequence[str],
        program: Callable[[int], Sequence[str]] = lambda index: ("-m", "pipeline.main"),
    ) -> None:
        addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
        params = [f"--gin_param={line}" for line in (*PARAMETERS, *parameters)]
        flags = ["--gin_file=quickstart.gin", "--strategy=multi_worker", f"--workdir={workdir}", *params]
        self._outputs = [workdir.with_name(f"{workdir.name}.{index}.txt") for index in range(count)]
        self.processes = []
        for index in range(count):
            task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
            with self._outputs[index].open("w") as output:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, *program(index), *flags],
                        cwd=workdir.parent,
                        env=environment(workdir.parent / "data") | {"TF_CONFIG": json.dumps(task)},
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                )

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def output(self, index: int) -> str:
        return self._outputs[index].read_text()

    def wait_for(self, text: str, seconds: float = 120) -> None:
        """Return when the chief has printed a text."""
        end = time.monotonic() + seconds
        while text not in self.output(0):
            assert time.monotonic() < end and self.processes[0].poll() is None, self.output(0)
            time.sleep(0.02)

    def end(self, seconds: float) -> list[int]:
        """Return the status of each, all of which end within so many seconds."""
        end = time.monotonic() + seconds
        return [process.wait(timeout=max(0.1, end - time.monotonic())) for process in self.processes]


def environment(data: Path) -> dict[str, str]:
    loud = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    return {**loud, "PYTHONPATH": str(ROOT), "TFDS_DATA_DIR": str(data)}


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def variables(run_folder: Path, step: int) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(run_folder / "checkpoints" / f"step-{step:09d}" / "variables"))
    names = [name for name in reader.get_variable_to_shape_map() if "CHECKPOINTABLE" not in name]
    return {name: reader.get_tensor(name) for name in names}
