"""Which hardware is chosen on this machine, which has neither TPU nor GPU."""

import json
import signal
import socket
import subprocess
import sys
import threading

import pytest
import tensorflow as tf

from components.interfaces import UserError
from components.stepper import rendezvous, strategy, workers


@pytest.mark.parametrize(
    ("name", "replicas", "missing"),
    [
        ("auto", 1, ""),
        ("one_device", 1, ""),
        ("tpu", 1, "No TPU was found."),
        ("mirrored", 1, "No GPU was found."),
        ("cpu:1", 1, ""),
        ("cpu:8", 8, ""),
    ],
)
def test_strategy_by_name_has_its_replicas_and_says_what_is_missing(name, replicas, missing) -> None:
    hardware = strategy.select(name=name)
    assert hardware.strategy.num_replicas_in_sync == replicas
    assert hardware.shortfall == missing
    assert hardware.accelerator == "cpu" and hardware.is_chief


@pytest.mark.parametrize(
    ("name", "words"),
    [("gpu", "must be one of"), ("cpu:0", "at least 1"), ("cpu:two", "at least 1"), ("cpu:9", "new process")],
)
def test_strategy_of_another_name_is_refused(name, words) -> None:
    with pytest.raises(UserError, match=words):
        strategy.select(name=name)


def tf_config(task: object = None, **jobs: list[str]) -> str:
    return json.dumps({"cluster": jobs, "task": {"type": "worker", "index": 0} if task is None else task})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "lists the workers"),
        ("", "lists the workers"),
        ("{}", "lists the workers"),
        ("{half", "lists the workers"),
        ("[]", "lists the workers"),
        ('{"cluster": {}}', "lists the workers"),
        ('{"cluster": {"worker": 3}}', "lists the workers"),
        (tf_config(worker=["a:1"], ps=["b:1"]), "job 'ps'"),
        (tf_config(worker=["a:1", "a:1"]), "a:1 is there twice"),
        (tf_config(worker=["a"]), "host:port"),
        (tf_config(worker=["a:port"]), "port from 1 to 65535"),
        (tf_config(worker=["a:99999"]), "port from 1 to 65535"),
        (tf_config(worker=[":2222"]), "host:port"),
        (tf_config({}, worker=["a:1"]), "counted from 0"),
        (tf_config({"type": "worker", "index": 1}, worker=["a:1"]), "counted from 0"),
        (tf_config({"type": "worker", "index": "0"}, worker=["a:1"]), "counted from 0"),
        (tf_config({"type": "evaluator", "index": 0}, worker=["a:1"]), "counted from 0"),
    ],
)
def test_multi_worker_without_its_workers_is_refused(monkeypatch, value, words) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if value is not None:
        monkeypatch.setenv("TF_CONFIG", value)
    with pytest.raises(UserError, match=f"TF_CONFIG.*{words}.*Set it on each worker"):
        strategy.select(name="multi_worker")


def test_chief_is_the_first_worker_whatever_its_job_is_called() -> None:
    plain = workers.cluster(tf_config({"type": "worker", "index": 1}, worker=["a:1", "b:1"]))
    assert (plain.index, plain.is_chief) == (1, False)
    apart = {"chief": ["c:1"], "worker": ["a:1", "b:1"]}
    first = workers.cluster(tf_config({"type": "chief", "index": 0}, **apart))
    other = workers.cluster(tf_config({"type": "worker", "index": 0}, **apart))
    assert (first.index, first.is_chief, other.index, other.is_chief) == (0, True, 1, False)
    assert other.addresses == ("c:1", "a:1", "b:1")
    assert str(first) == "3 workers, this is worker 0, the chief, at c:1"
    assert str(other) == "3 workers, this is worker 1, at a:1; worker 0 is the chief, at c:1"


def test_one_process_agrees_with_itself() -> None:
    hardware = strategy.select(name="one_device")
    assert hardware.agree(15) == 15 and hardware.agree(0) == 0


@pytest.mark.parametrize("number", [0, 2, 15])
def test_replicas_agree_on_the_largest_number(number) -> None:
    assert workers._agreement(strategy.select(name="cpu:2").strategy)(number) == number


def test_port_that_is_taken_is_told(monkeypatch) -> None:
    def refuse() -> None:
        raise tf.errors.UnknownError(None, None, "Could not start gRPC server")

    monkeypatch.setenv("TF_CONFIG", tf_config(worker=["a:1", "b:1"]))
    monkeypatch.setattr(workers, "meet", lambda *_: None)
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", refuse)
    with pytest.raises(UserError, match="Received for this one a:1"):
        strategy.select(name="multi_worker")


def free_ports(count: int) -> list[str]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return [f"127.0.0.1:{port}" for port in ports]


def test_workers_meet_and_a_late_one_is_told(monkeypatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(rendezvous.logging, "warning", lambda text, *arguments: told.append(text % arguments))
    addresses, has_met = free_ports(2), threading.Event()

    def come_late() -> None:
        rendezvous.meet(addresses, 1)
        # The first need not have seen this one yet: a server takes the port over, as TensorFlow's does.
        with socket.create_server(("", int(addresses[1].rpartition(":")[2]))):
            has_met.wait(20)

    late = threading.Timer(0.5, come_late)
    late.start()
    rendezvous.meet(addresses, 0, patience=0.0, most=20.0)
    has_met.set()
    late.join()
    assert told == [f"Still waiting for {addresses[1]}, of 2 workers. This is worker 0."]


def test_worker_that_never_comes_or_a_port_that_is_taken_is_an_error() -> None:
    addresses = free_ports(2)
    with pytest.raises(UserError, match=rf"none at {addresses[1]}"):
        rendezvous.meet(addresses, 0, most=0.0)
    with (
        socket.create_server(("", int(addresses[0].rpartition(":")[2]))),
        pytest.raises(UserError, match=f"Received for this one {addresses[0]}"),
    ):
        rendezvous.meet(addresses, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_wait_for_a_worker_ends_at_a_signal(number, repository) -> None:
    addresses = free_ports(2)
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from components.stepper import rendezvous\n"
        f"rendezvous.meet({addresses!r}, 0, patience=0.0)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=repository, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "Still waiting" in line:
            break
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode != 0
