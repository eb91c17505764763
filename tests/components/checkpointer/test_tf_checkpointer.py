"""Whole checkpoints come back, damaged ones are noticed, none is lost in silence."""

import numpy as np
import pytest
import tensorflow as tf

from components.checkpointer.tf_checkpointer import TFCheckpointer
from components.interfaces import UserError
from components.stepper import strategy


def state(value: float = 0.0, size: int = 3) -> dict[str, list[tf.Variable]]:
    return {"net": [tf.Variable(tf.fill([size], value)), tf.Variable(value)], "step": [tf.Variable(int(value))]}


def saved(folder, *values: float) -> None:
    """Save checkpoints of steps 1, 2, ... that hold `values`."""
    variables = state()
    checkpointer = TFCheckpointer(str(folder), variables)
    for step, value in enumerate(values, start=1):
        for variable in (*variables["net"], *variables["step"]):
            variable.assign(tf.cast(tf.fill(variable.shape, value), variable.dtype))
        checkpointer.save(step)


def test_restore_returns_the_saved_bits_and_the_step(tmp_path) -> None:
    saved(tmp_path, 0.1, 0.2)
    variables = state()
    assert TFCheckpointer(str(tmp_path), variables).restore_latest() == 2
    np.testing.assert_array_equal(variables["net"][0], np.full(3, 0.2, np.float32))
    TFCheckpointer(str(tmp_path), variables).restore(1)
    np.testing.assert_array_equal(variables["net"][1], np.float32(0.1))


def test_restore_of_an_empty_folder_is_step_zero_and_writes_nothing(tmp_path) -> None:
    assert TFCheckpointer(str(tmp_path / "none"), state()).restore_latest() == 0
    assert not (tmp_path / "none").exists()


def test_restore_of_a_step_that_is_not_there_names_those_that_are(tmp_path) -> None:
    saved(tmp_path, 0.1, 0.2)
    with pytest.raises(UserError, match="There are: 1, 2"):
        TFCheckpointer(str(tmp_path), state()).restore(5)


def test_save_keeps_the_newest(tmp_path) -> None:
    variables = state()
    checkpointer = TFCheckpointer(str(tmp_path), variables, keep=2)
    for step in (5, 10, 15, 20):
        checkpointer.save(step)
    assert checkpointer.steps() == [15, 20]


def _cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [_cut, _flip, lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
def test_restore_passes_over_a_damaged_checkpoint_to_the_one_before(tmp_path, damage, suffix) -> None:
    saved(tmp_path, 0.1, 0.2)
    damage(tmp_path / "step-000000002" / f"variables.{suffix}")
    variables = state()
    assert TFCheckpointer(str(tmp_path), variables).restore_latest() == 1
    np.testing.assert_array_equal(variables["net"][0], np.full(3, 0.1, np.float32))


def test_restore_where_all_are_damaged_is_an_error_and_no_fresh_start(tmp_path) -> None:
    saved(tmp_path, 0.1, 0.2)
    for step in (1, 2):
        _cut(tmp_path / f"step-00000000{step}" / "variables.data-00000-of-00001")
    with pytest.raises(UserError, match="All of .* are damaged: steps 1, 2"):
        TFCheckpointer(str(tmp_path), state()).restore_latest()


@pytest.mark.parametrize(
    "other",
    [
        lambda: state(size=4),
        lambda: {**state(), "more": [tf.Variable(0.0)]},
        lambda: {"net": state()["net"]},
    ],
)
def test_restore_into_other_variables_is_an_error(tmp_path, other) -> None:
    saved(tmp_path, 0.1)
    with pytest.raises(UserError, match="exactly the variables of the run"):
        TFCheckpointer(str(tmp_path), other()).restore_latest()


def test_save_that_dies_leaves_the_older_checkpoint_and_the_next_save_works(tmp_path, monkeypatch) -> None:
    variables = state()
    checkpointer = TFCheckpointer(str(tmp_path), variables)
    checkpointer.save(1)

    def die(prefix):
        with open(f"{prefix}.index", "w") as file:
            file.write("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpointer._checkpoint, "write", die)
        with pytest.raises(KeyboardInterrupt):
            checkpointer.save(2)
    assert TFCheckpointer(str(tmp_path), state()).restore_latest() == 1
    checkpointer.save(2)
    assert TFCheckpointer(str(tmp_path), state()).restore_latest() == 2
    assert not list(tmp_path.glob("writing-*"))


@pytest.mark.parametrize(("writer", "reader"), [("one_device", "cpu:2"), ("cpu:2", "one_device")])
def test_checkpoint_of_one_replica_count_restores_on_another(tmp_path, writer, reader) -> None:
    with strategy.select(name=writer).strategy.scope():
        TFCheckpointer(str(tmp_path), state(0.3)).save(1)
    with strategy.select(name=reader).strategy.scope():
        variables = state()
        assert TFCheckpointer(str(tmp_path), variables).restore_latest() == 1
        np.testing.assert_array_equal(variables["net"][0].numpy(), np.full(3, 0.3, np.float32))


def test_save_replaces_a_damaged_checkpoint_of_its_own_step(tmp_path) -> None:
    saved(tmp_path, 0.1, 0.2)
    _cut(tmp_path / "step-000000002" / "variables.data-00000-of-00001")
    checkpointer = TFCheckpointer(str(tmp_path), state())
    assert checkpointer.restore_latest() == 1
    checkpointer.save(2)  # what the run makes of step 2 anew, the bits of step 1 here
    variables = state()
    assert TFCheckpointer(str(tmp_path), variables).restore_latest() == 2
    np.testing.assert_array_equal(variables["net"][0], np.full(3, 0.1, np.float32))
    assert (tmp_path / "damaged-2").is_dir()
