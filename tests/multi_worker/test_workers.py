"""Runs of several worker processes on this machine: what they write, and how they end when one is killed or stopped."""

import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from multi_worker.processes import PARAMETERS, Workers, variables

from pipeline import api

WITNESS = str(Path(__file__).with_name("witness.py"))
LAST = 100


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_workers_take_the_steps_of_one_process_and_one_of_them_writes(count, tmp_path) -> None:
    def witness(index: int) -> tuple[str, ...]:
        return WITNESS, str(tmp_path / f"{index}.jsonl"), str(tmp_path / "run")

    with Workers(count, tmp_path / "run", ["TRAIN_STEPS = 10"], witness) as workers:
        ends = workers.end(seconds=180)
        outputs = [workers.output(index) for index in range(count)]
    assert ends == [0] * count, (ends, outputs)
    require_one_voice(outputs)
    require_one_writer(tmp_path, count)
    require_same_as_one_process(tmp_path, count)


def require_one_voice(outputs: list[str]) -> None:
    """The first line tells who takes part; the chief alone tells how far the run is."""
    for index, output in enumerate(outputs):
        first = rf"Hardware: {len(outputs)} workers, this is worker {index}, .*the chief, at 127"
        assert re.match(first, output), output
        assert ("step 10/10" in output and "Done" in output) == (index == 0), output
        assert len(output.splitlines()) == (8 if index == 0 else 2), output


def require_one_writer(folder: Path, count: int) -> None:
    """The data are prepared once, each worker builds its part of the batches, and the chief alone writes."""
    told = [[json.loads(line) for line in (folder / f"{i}.jsonl").read_text().splitlines()] for i in range(count)]
    parts = [[fact for fact in facts if fact["event"] == "part"] for facts in told]
    shape = [12 // count, 28, 28, 1]
    assert parts == [[{"event": "part", "index": i, "count": count, "shape": shape}] for i in range(count)]
    assert sum(fact["event"] == "prepare" for facts in told for fact in facts) == 1
    writes = [[fact for fact in facts if "path" in fact] for facts in told]
    assert len(writes[0]) > 5 and not any(writes[1:]), writes[1:]
    assert [json.loads(line)["step"] for line in (folder / "run" / "metrics.jsonl").open()] == [5, 10]
    assert len(list((folder / "run" / "events").iterdir())) == 1
    assert len(json.loads((folder / "run" / "manifest.json").read_text())["starts"]) == 1


def require_same_as_one_process(folder: Path, count: int) -> None:
    devices = ["from components.stepper import strategy", f"strategy.select.name = 'cpu:{count}'"]
    tf.config.list_logical_devices()  # all that conftest asks for: else `cpu:2` would leave this process only two
    api.train(["quickstart.gin"], [*PARAMETERS, "TRAIN_STEPS = 10", *devices], workdir=folder / "alone")
    expected, found = variables(folder / "alone", 10), variables(folder / "run", 10)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_worker_that_is_stopped_or_killed_takes_the_others_along_and_the_run_goes_on(tmp_path) -> None:
    steps = [f"TRAIN_STEPS = {LAST}"]
    with Workers(2, tmp_path / "whole", steps) as whole:
        assert whole.end(seconds=180) == [0, 0], (whole.output(0), whole.output(1))

    with Workers(2, tmp_path / "cut", steps) as stopped:
        stopped.wait_for("step 15/")
        stopped.processes[1].send_signal(signal.SIGTERM)
        assert stopped.end(seconds=60) == [143, 143], (stopped.output(0), stopped.output(1))
        assert "Stopped and saved at step" in stopped.output(0)
    first = newest(tmp_path / "cut")
    assert 15 <= first < LAST

    with Workers(2, tmp_path / "cut", steps) as killed:
        killed.wait_for(f"going on at step {first}")
        killed.wait_for(f"step {first + 15 - first % 5}/")
        killed.processes[1].kill()
        assert killed.end(seconds=60) == [1, -signal.SIGKILL], (killed.output(0), killed.output(1))
        last = killed.output(0).splitlines()[-1]
        assert "worker 1 has ended" in last and "start the same command" in last
        assert "Traceback" not in killed.output(0)
    second = newest(tmp_path / "cut")
    assert first < second < LAST

    with Workers(2, tmp_path / "cut", steps) as resumed:
        assert resumed.end(seconds=180) == [0, 0], (resumed.output(0), resumed.output(1))
        assert f"going on at step {second}" in resumed.output(0)
    expected, found = variables(tmp_path / "whole", LAST), variables(tmp_path / "cut", LAST)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def newest(run_folder: Path) -> int:
    return max(int(path.name.removeprefix("step-")) for path in (run_folder / "checkpoints").glob("step-*"))
