"""One contender of the benchmark in a process of its own, which makes steps when it is told a number of them.

`python -m tools.benchmark` starts it. Nothing heavy is imported before the clock of the contender's own work runs. What
it measured are lines of JSON on its standard output that begin with REPLY: one after its first step, one after each
number of steps, one at the end.
"""

import json
import logging
import math
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

REPLY = "measured: "
_OURS = ("gantry", "bfloat16", "variant")
_WARM_UP_STEPS = 2
_EXAMPLES = 4096


def main(argv: list[str]) -> int:
    """Measure contender argv[1] as the JSON of argv[2] asks; argv[3] is when the process was started."""
    name, task, started = argv[1], json.loads(argv[2]), float(argv[3])
    logging.getLogger("absl").setLevel(logging.ERROR)
    if name == "limits":
        _reply(_limits(task))
        return 0
    advance, facts = _ours(task) if name in _OURS else _by_hand(name, task)
    begin = time.perf_counter()
    losses = [advance(1)]
    end = time.time()
    facts["first_step"] = facts.pop("traced", 0.0) + time.perf_counter() - begin
    facts["start_to_first_step"] = end - started - facts.pop("not_its_own_seconds", 0.0)
    not_its_own_mib = facts.pop("not_its_own_mib", 0.0)
    losses.append(advance(_WARM_UP_STEPS))
    _reply(facts)
    for line in sys.stdin:
        begin = time.perf_counter()
        losses.append(advance(int(line)))
        _reply({"seconds": time.perf_counter() - begin})
    if not all(math.isfinite(value) for one in losses for value in one.values()):
        raise ValueError(f"The losses of {name} are not finite: {losses}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    _reply({"peak_mib": peak - not_its_own_mib})
    return 0


def _reply(facts: Mapping[str, float]) -> None:
    print(REPLY + json.dumps(facts), flush=True)


def _ours(task: dict[str, Any]) -> tuple[Callable, dict[str, float]]:
    """Return this project's loop as the program builds it; tracing counts as part of the first step."""
    from pipeline import api, configs

    config = configs.parse(task["files"], task["params"])
    config.experiment()  # imports the stepper, so that its rehearsal can be timed
    from components.stepper.distributed_stepper import DistributedStepper

    rehearse, traced = DistributedStepper.rehearse, []

    def timed(self: DistributedStepper) -> None:
        begin = time.perf_counter()
        rehearse(self)
        traced.append(time.perf_counter() - begin)

    DistributedStepper.rehearse = timed  # type: ignore[method-assign]
    run = api.build(task["files"], task["params"], workdir=task["folder"] + "/run")
    DistributedStepper.rehearse = rehearse  # type: ignore[method-assign]
    batches, loop = run.batches(), run.experiment.steps_per_loop

    def advance(steps: int) -> Mapping[str, float]:
        metrics: Mapping[str, float] = {}
        for done in range(0, steps, loop):
            metrics = run.stepper.run(batches, min(loop, steps - done))
        return metrics

    return advance, {"traced": sum(traced)}


def _by_hand(name: str, task: dict[str, Any]) -> tuple[Callable, dict[str, float]]:
    """Return a hand-written loop; what it costs to read our configuration is not its own."""
    import keras  # noqa: F401
    import tensorflow as tf  # noqa: F401

    begin, before = time.perf_counter(), _resident_mib()
    from pipeline import configs

    experiment = configs.parse(task["files"], task["params"]).experiment()
    facts = {"not_its_own_seconds": time.perf_counter() - begin, "not_its_own_mib": _resident_mib() - before}
    from tools.benchmark_loops import LOOPS

    return LOOPS[name](_game(experiment, Path(task["folder"]))), facts


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if os.path.exists("/proc/self/statm") else 0
    return pages * resource.getpagesize() / 2**20


def _game(experiment: Any, folder: Path) -> Any:
    """Return new networks and optimizers of an experiment, with the data that `_limits` left."""
    import keras
    import numpy as np

    from components.interfaces import DataSpec
    from tools.benchmark_loops import Game, moves_of

    spec = DataSpec(**json.loads((folder / "spec.json").read_text()))
    moves = moves_of(experiment.updates)
    keras.config.set_dtype_policy(experiment.precision)
    networks, optimizers = {}, {}
    for name, make in experiment.networks.items():
        random.seed(f"{experiment.seed}/{name}")  # the initial weights are those of our own run
        networks[name] = make(spec)
    for update in experiment.updates:
        for name, player in update.players.items():
            optimizers[name] = player.optimizer()
            optimizers[name].build(networks[name].trainable_variables)
    keras.config.set_dtype_policy("float32")
    with np.load(folder / "data.npz") as held:
        images, labels = held["images"].astype(np.float32) / 127.5 - 1.0, held["labels"]
    objective = experiment.updates[0].objective
    return Game(
        networks=networks,
        optimizers=optimizers,
        moves=moves,
        loss=getattr(objective, "loss", None) or objective.likelihood,
        same_latents=getattr(objective, "same_latents", False),
        num_classes=spec.num_classes,
        global_batch_size=experiment.global_batch_size,
        images=images,
        labels=labels,
    )


def _limits(task: dict[str, Any]) -> dict[str, float]:
    """Leave data for the hand-written loops; return the step's FLOPs and what the device reaches in a product."""
    import dataclasses

    import numpy as np

    from pipeline import configs

    experiment, folder = configs.parse(task["files"], task["params"]).experiment(), Path(task["folder"])
    spec, size = experiment.data.spec, experiment.global_batch_size
    (folder / "spec.json").write_text(json.dumps({**dataclasses.asdict(spec), "notice": ""}))
    batches = experiment.data.batches(global_batch_size=size, seed=0, start_batch=0).take(-(-_EXAMPLES // size))
    rows = list(batches.as_numpy_iterator())
    images = np.concatenate([row["image"] for row in rows])[:_EXAMPLES]
    labels = np.concatenate([row["label"] for row in rows])[:_EXAMPLES]
    np.savez(folder / "data.npz", images=np.rint(images * 127.5 + 127.5).astype(np.uint8), labels=labels)
    dtype = "float32" if experiment.precision == "float32" else experiment.precision.removeprefix("mixed_")
    return {"flops": _flops(experiment, folder), "peak_flops": _peak(dtype), "bfloat16_peak_flops": _peak("bfloat16")}


def _flops(experiment: Any, folder: Path) -> float:
    """Return the FLOPs of a step by TensorFlow's own count over the lean loop's graph; taps on padding count too."""
    import tensorflow as tf

    from tools.benchmark_loops import step_of

    game = _game(experiment, folder)
    image = tf.TensorSpec([game.global_batch_size, *game.images.shape[1:]], tf.float32)
    label = tf.TensorSpec([game.global_batch_size], tf.int32)
    graph = tf.function(step_of(game, game.draw), autograph=False).get_concrete_function(image, label).graph
    options = tf.compat.v1.profiler.ProfileOptionBuilder(tf.compat.v1.profiler.ProfileOptionBuilder.float_operation())
    profile = tf.compat.v1.profiler.profile(graph, options=options.with_empty_output().build())
    return float(profile.total_float_ops)


def _peak(dtype: str, size: int = 2048, seconds: float = 2.0) -> float:
    """Return the most FLOP/s of a product of two square matrices, over calls of `seconds` together."""
    import tensorflow as tf

    factor = tf.cast(tf.random.normal([size, size]), dtype)
    product = tf.function(lambda: tf.reduce_sum(tf.cast(tf.matmul(factor, factor)[:1], tf.float32)))
    product().numpy()
    best, begin = math.inf, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        product().numpy()
        best = min(best, time.perf_counter() - start)
    return 2.0 * size**3 / best


if __name__ == "__main__":
    sys.exit(main(sys.argv))
