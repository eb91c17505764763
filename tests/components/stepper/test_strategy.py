"""Which hardware is chosen on this machine, which has neither TPU nor GPU."""

import pytest

from components.interfaces import UserError
from components.stepper import strategy


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


@pytest.mark.parametrize("value", [None, "", "{}", "{half", "[]", '{"cluster": {}}'])
def test_multi_worker_without_its_workers_is_refused(monkeypatch, value) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if value is not None:
        monkeypatch.setenv("TF_CONFIG", value)
    with pytest.raises(UserError, match="TF_CONFIG"):
        strategy.select(name="multi_worker")
