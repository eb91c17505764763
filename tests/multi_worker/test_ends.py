"""How a process of a shared run ends: by agreement, or because another one is gone."""

import os
import signal

import pytest
import tensorflow as tf

from pipeline.lost_worker import LostWorker, ending_with_the_others
from pipeline.stop import StopSignal

KILLED = (
    "Collective ops is aborted by: Error reported from /job:worker/task:2: The following tasks are unhealthy (stopped "
    "sending heartbeats):\n/job:worker/replica:0/task:2\nThe tasks have crashed."
)
UNNAMED = "Collective ops is aborted by: Socket closed"


@pytest.mark.parametrize(
    ("text", "words"),
    [(KILLED, "worker 2 has ended"), (KILLED.replace("worker", "chief"), "chief 2 has"), (UNNAMED, "one of them has")],
)
def test_lost_worker_ends_the_process_with_status_1_and_one_line(text, words) -> None:
    with pytest.raises(LostWorker, match=words) as ended, ending_with_the_others():
        raise tf.errors.UnavailableError(None, None, text)
    assert isinstance(ended.value, SystemExit) and "\n" not in str(ended.value)


def test_lost_worker_is_found_behind_what_it_led_to() -> None:
    with pytest.raises(LostWorker, match="worker 2"), ending_with_the_others():
        try:
            raise tf.errors.InternalError(None, None, KILLED)
        except tf.errors.OpError as error:
            raise RuntimeError("A network could not be built.") from error


@pytest.mark.parametrize(
    "error",
    [
        ValueError(KILLED),
        tf.errors.ResourceExhaustedError(None, None, "OOM on /job:worker/replica:0/task:0/device:GPU:0"),
        KeyboardInterrupt(),
    ],
)
def test_other_errors_pass(error) -> None:
    with pytest.raises(type(error)) as raised, ending_with_the_others():
        raise error
    assert raised.value is error


def test_signal_to_another_process_stops_this_one_with_its_status() -> None:
    stop = StopSignal()
    assert not stop.is_agreed(lambda number: number) and stop.exit_status == 0
    assert stop.is_agreed(lambda number: max(number, signal.SIGTERM)) and stop.exit_status == 143


def test_signal_that_comes_during_the_agreement_waits_for_the_next() -> None:
    with StopSignal() as stop:

        def agree(number: int) -> int:
            os.kill(os.getpid(), signal.SIGTERM)
            return number

        assert not stop.is_agreed(agree)
        assert stop.is_agreed(lambda number: number) and stop.exit_status == 143


def test_own_signal_after_that_of_another_process_is_no_second_one() -> None:
    with StopSignal() as stop:
        assert stop.is_agreed(lambda number: signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # a second one would end this process
        assert stop.is_agreed(lambda number: number) and stop.exit_status == 143
