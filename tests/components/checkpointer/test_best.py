"""The best checkpoint: which it is, that it stays, and that it is known again."""

import json

import pytest
import tensorflow as tf

from components.checkpointer import checksums, notes
from components.checkpointer.tf_checkpointer import TFCheckpointer
from components.interfaces import UserError


def made(folder, **bound):
    weight = tf.Variable(0.0)
    return weight, TFCheckpointer(str(folder), {"net": [weight]}, keep=1, **{"best_metric": "fid", **bound})


def train(folder, values, **bound) -> TFCheckpointer:
    """Save steps 1, 2, ... whose weight is the step, each with a value of the metric."""
    weight, checkpointer = made(folder, **bound)
    for step, value in enumerate(values, 1):
        weight.assign(step)
        checkpointer.observe(step, {"other": 0.0} if value is None else {"fid": value})
        checkpointer.save(step)
    return checkpointer


@pytest.mark.parametrize(("direction", "best"), [("min", 3), ("max", 2)])
def test_best_stays_beside_the_newest_and_is_restored(direction, best, tmp_path) -> None:
    checkpointer = train(tmp_path, [5.0, 7.0, 2.0, 5.0, None, 2.0], best_direction=direction)
    assert checkpointer.steps() == sorted({best, 6})
    weight, reader = made(tmp_path, best_metric=None)  # who samples needs no binding
    assert reader.restore_best() == best == float(weight)


def test_best_is_known_after_a_restore_and_follows_a_rewind(tmp_path) -> None:
    train(tmp_path, [5.0, 3.0, 4.0])
    _, again = made(tmp_path)
    again.restore_latest()
    assert again.best == (2, "fid", 3.0)
    again.observe(4, {"fid": 1.0})  # killed before it was saved
    _, rewound = made(tmp_path)
    assert rewound.restore_latest() == 3 and rewound.best == (2, "fid", 3.0)


def test_best_of_another_metric_or_gone_is_found_anew_and_that_is_said(tmp_path, caplog) -> None:
    train(tmp_path, [5.0, 3.0, 4.0])
    _, other = made(tmp_path, best_direction="max")
    other.restore_latest()
    assert other.best is None and "it was the min of fid" in caplog.text
    (tmp_path / "step-000000002").rename(tmp_path / "elsewhere")
    _, again = made(tmp_path)
    again.restore_latest()
    assert again.best is None and "step 2 is gone" in caplog.text


def test_best_that_is_not_known_is_one_message(tmp_path) -> None:
    train(tmp_path, [None, float("nan")])
    with pytest.raises(UserError, match=r"best_metric.*take a step: 2"):
        made(tmp_path)[1].restore_best()


def test_checkpoint_of_a_later_version_is_refused_with_its_name(tmp_path) -> None:
    train(tmp_path, [1.0])
    folder = tmp_path / "step-000000001"
    told = json.loads((folder / notes.NAME).read_text())
    (folder / notes.NAME).write_text(json.dumps({**told, "format": 99, "version": "9.9"}))
    (folder / checksums.NAME).unlink()
    checksums.seal(folder, 1)
    with pytest.raises(UserError, match=r"version 9\.9, format 99.*Use that version"):
        made(tmp_path)[1].restore_latest()


class Part:
    """Remembers one number."""

    def __init__(self, number: float) -> None:
        self.number = number

    def state(self):
        return {"number": self.number}

    def restore(self, state):
        self.number = state.get("number", 0.0)


def test_what_the_host_remembers_comes_back_with_its_step_bit_for_bit(tmp_path) -> None:
    weight, checkpointer = made(tmp_path / "a", keep_every_steps=1)
    checkpointer.remember("part", part := Part(0.1 + 0.2))
    checkpointer.save(1)
    part.number = 1 / 3
    checkpointer.save(2)
    checkpointer.restore(1)
    assert part.number == 0.1 + 0.2
    checkpointer.restore_latest()
    assert part.number == 1 / 3
