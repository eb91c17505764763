"""Whole checkpoints come back, damaged ones are noticed, none is lost in silence."""

import errno
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from components.checkpointer import checksums
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


def _unseal(folder) -> None:
    """Make checkpoints such as earlier versions wrote, without checksums."""
    for path in folder.glob(f"step-*/{checksums.NAME}"):
        path.unlink()


@pytest.mark.parametrize("damage", [_cut, _flip, lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("is_sealed", [True, False])
def test_restore_passes_over_a_damaged_checkpoint_to_the_one_before(tmp_path, damage, suffix, is_sealed) -> None:
    saved(tmp_path, 0.1, 0.2)
    if not is_sealed:
        _unseal(tmp_path)
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


# --- checksums -------------------------------------------------------------------------------------------------------


def test_checkpoint_without_checksums_of_an_earlier_version_is_restored(tmp_path) -> None:
    saved(tmp_path, 0.1, 0.2)
    _unseal(tmp_path)
    variables = state()
    assert TFCheckpointer(str(tmp_path), variables).restore_latest() == 2
    np.testing.assert_array_equal(variables["net"][0], np.full(3, 0.2, np.float32))


def test_fault_notices_a_flipped_bit_wherever_it_is(tmp_path) -> None:
    saved(tmp_path, 0.1)
    folder = tmp_path / "step-000000001"
    assert checksums.fault(folder, 1) is None
    for path in folder.glob("variables*"):
        whole = path.read_bytes()
        for place in range(0, len(whole) * 8, 61):
            path.write_bytes((int.from_bytes(whole, "little") ^ 1 << place).to_bytes(len(whole), "little"))
            assert checksums.fault(folder, 1) == f"{path.name} has changed since it was written"
        path.write_bytes(whole)
    assert checksums.fault(folder, 1) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"step": 2}', '{"step": 2, "files": 3}', "\x00\x00"])
def test_checksums_that_are_damaged_themselves_are_noticed(tmp_path, text) -> None:
    saved(tmp_path, 0.1, 0.2)
    (tmp_path / "step-000000002" / checksums.NAME).write_text(text)
    assert TFCheckpointer(str(tmp_path), state()).restore_latest() == 1


def test_checkpoint_under_the_name_of_another_step_is_noticed(tmp_path) -> None:
    saved(tmp_path, 0.1)
    shutil.copytree(tmp_path / "step-000000001", tmp_path / "step-000000009")
    assert TFCheckpointer(str(tmp_path), state()).restore_latest() == 1


def test_damage_is_told_in_one_line_with_what_is_used(tmp_path, caplog) -> None:
    saved(tmp_path, 0.1, 0.2, 0.3)
    _flip(tmp_path / "step-000000002" / "variables.index")
    (tmp_path / "step-000000003" / "variables.index").unlink()
    TFCheckpointer(str(tmp_path), state()).restore_latest()
    assert [record.getMessage() for record in caplog.records] == [
        "Damaged checkpoints: steps 2, 3 (variables.index is missing). That of step 1 is used."
    ]


def test_restore_of_a_damaged_step_names_the_damage_and_the_others(tmp_path) -> None:
    saved(tmp_path, 0.1, 0.2)
    _cut(tmp_path / "step-000000002" / "variables.index")
    with pytest.raises(UserError, match="is damaged: variables.index has changed .* there are: 1, 2"):
        TFCheckpointer(str(tmp_path), state()).restore(2)


def test_restore_that_is_refused_leaves_every_variable_as_it_was(tmp_path) -> None:
    saved(tmp_path, 0.1)
    variables = {**state(7.0), "more": [tf.Variable(0.0)]}
    with pytest.raises(UserError):
        TFCheckpointer(str(tmp_path), variables).restore_latest()
    np.testing.assert_array_equal(variables["net"][0], np.full(3, 7.0, np.float32))


def test_restore_lists_what_is_unmatched_on_both_sides(tmp_path) -> None:
    old, new = tf.Variable(0.0), tf.Variable([1, 2])
    TFCheckpointer(str(tmp_path), {"a.b/c": [old, old], "old": [new], "both": [tf.Variable(0.0)]}).save(1)
    with pytest.raises(UserError) as caught:
        TFCheckpointer(str(tmp_path), {"a.b/c": [old], "new": [new], "both": [tf.Variable([0])]}).restore_latest()
    message = str(caught.value)
    assert "without a stored value: new[0]; stored without a variable: old[0]; " in message
    assert "of another type or shape: both[0] float32[] -> int32[1]" in message and "a.b" not in message


def test_restore_into_many_other_variables_lists_the_first(tmp_path) -> None:
    TFCheckpointer(str(tmp_path), {"old": [tf.Variable(0.0) for _ in range(20)]}).save(1)
    with pytest.raises(UserError, match=r"old\[0\], .* and 12 more"):
        TFCheckpointer(str(tmp_path), {}).restore_latest()


def test_checkpoint_that_is_dropped_while_it_is_read_gives_way_to_the_newer_one(tmp_path, monkeypatch) -> None:
    saved(tmp_path, 0.1)
    reader, verify = TFCheckpointer(str(tmp_path), state()), checksums.fault

    def meanwhile(folder, step):
        if step == 1:
            (tmp_path / "step-000000001").rename(tmp_path / "step-000000002")
            facts = json.loads((tmp_path / "step-000000002" / checksums.NAME).read_text())
            (tmp_path / "step-000000002" / checksums.NAME).write_text(json.dumps({**facts, "step": 2}))
        return verify(folder, step)

    monkeypatch.setattr(checksums, "fault", meanwhile)
    assert reader.restore_latest() == 2


# --- what is kept ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("every", "saves", "kept"),
    [
        (20, range(5, 75, 5), [20, 40, 60, 65, 70]),
        (20, range(0, 60, 15), [30, 45]),  # the first after each multiple: 30 for 20, 45 for 40
        (20, [7, 20, 27, 40, 47], [20, 40, 47]),
        (1, range(1, 6), [1, 2, 3, 4, 5]),
        (None, range(5, 75, 5), [65, 70]),
    ],
)
def test_save_keeps_the_newest_and_one_of_each_so_many_steps(tmp_path, every, saves, kept) -> None:
    for step in saves:  # each save in a run that goes on
        TFCheckpointer(str(tmp_path), state(), keep=2, keep_every_steps=every).save(step)
    assert TFCheckpointer(str(tmp_path), state()).steps() == kept


@pytest.mark.parametrize("name", ["keep", "keep_every_steps"])
def test_count_below_one_is_refused(tmp_path, name) -> None:
    with pytest.raises(UserError, match=f"{name}` must be at least 1. Received 0"):
        TFCheckpointer(str(tmp_path), state(), **{name: 0})


def test_save_removes_what_a_kill_left_behind(tmp_path) -> None:
    for name in ("writing-3", "dropping-1"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "variables.index").write_text("half")
    TFCheckpointer(str(tmp_path), state()).save(4)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000004"]


def test_save_goes_on_where_a_damaged_checkpoint_was_taken_away_by_hand(tmp_path) -> None:
    saved(tmp_path, 0.1, 0.2)
    _cut(tmp_path / "step-000000002" / "variables.index")
    checkpointer = TFCheckpointer(str(tmp_path), state())
    checkpointer.restore_latest()
    shutil.rmtree(tmp_path / "step-000000002")
    checkpointer.save(2)
    assert checkpointer.steps() == [1, 2]


# --- written beside the training -------------------------------------------------------------------------------------


def test_asynchronous_save_holds_the_values_of_its_moment_and_restores_like_any_other(tmp_path) -> None:
    variables = state(1.0)
    variables["again"] = variables["net"][:1]  # a variable that is listed twice is one
    checkpointer = TFCheckpointer(str(tmp_path), variables, asynchronous=True)
    for step in (1, 2):
        checkpointer.save(step)
        variables["net"][0].assign(tf.fill([3], 7.0 + step))  # while it is being written
    checkpointer.finish()
    assert checkpointer.steps() == [1, 2]
    for step, value in ((1, 1.0), (2, 8.0)):
        found = state()
        found["again"] = found["net"][:1]
        TFCheckpointer(str(tmp_path), found).restore(step)
        np.testing.assert_array_equal(found["net"][0], np.full(3, value, np.float32))
        assert int(found["step"][0]) == 1


def test_restore_waits_for_what_is_being_written(tmp_path) -> None:
    variables = state(3.0)
    checkpointer = TFCheckpointer(str(tmp_path), variables, asynchronous=True)
    checkpointer.save(4)
    variables["net"][0].assign(tf.zeros([3]))
    assert checkpointer.restore_latest() == 4
    np.testing.assert_array_equal(variables["net"][0], np.full(3, 3.0, np.float32))


@pytest.mark.parametrize("then", ["finish", "save"])
def test_asynchronous_save_without_room_is_told_at_the_next_occasion(then, tmp_path, monkeypatch) -> None:
    checkpointer = TFCheckpointer(str(tmp_path), state(1.0), asynchronous=True)
    checkpointer.save(1)
    checkpointer.finish()

    def full(folder, step):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checksums, "seal", full)
    checkpointer.save(2)
    with pytest.raises(UserError, match="That of step 2 was not saved.*The newest whole one is of step 1"):
        checkpointer.finish() if then == "finish" else checkpointer.save(3)
    assert checkpointer.steps() == [1] and not list(tmp_path.glob("writing-*"))
