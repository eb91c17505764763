"""Which hardware is chosen on this machine, which has neither TPU nor GPU."""

import json
import threading

import pytest
import tensorflow as tf

from components.interfaces import UserError
from components.stepper import strategy, workers


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
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", refuse)
    with pytest.raises(UserError, match="Received for this one a:1"):
        strategy.select(name="multi_worker")


def test_worker_that_is_late_is_told(monkeypatch) -> None:
    told: list[str] = []
    is_told = threading.Event()

    def warning(text: str, *arguments: object) -> None:
        told.append(text % arguments)
        is_told.set()

    def wait() -> None:
        assert is_told.wait(10)
        raise tf.errors.UnknownError(None, None, "enough")

    monkeypatch.setenv("TF_CONFIG", tf_config(worker=["a:1", "b:1"]))
    monkeypatch.setattr(workers, "_PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(workers.logging, "warning", warning)
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", wait)
    with pytest.raises(tf.errors.UnknownError):
        strategy.select(name="multi_worker")
    assert told == ["Still waiting for all of 2 workers to start: a:1, b:1. This is worker 0."]
