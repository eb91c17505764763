"""Which moves a step makes and which are one call, by hand."""

from components.interfaces import Player, Update
from components.stepper.schedule import Call, Schedule


def _update(**how) -> Update:
    return Update(objective=lambda *_, **__: None, players={"p": Player(optimizer=lambda: None)}, **how)


def test_moves_that_are_always_made_once_are_one_call_and_each_takes_its_own_batches() -> None:
    schedule = Schedule([_update(accumulate=3), _update(), _update(accumulate=2)])
    assert schedule.batches_per_step == 3
    assert list(schedule.calls()) == [Call((0, 1, 2), 0, 3)]
    assert list(schedule.moves()) == [Call((0,), 0, 3), Call((1,), 0, 1), Call((2,), 0, 2)]


def test_repeated_move_is_a_call_for_each_repeat_on_fresh_batches() -> None:
    schedule = Schedule([_update(repeats=2, accumulate=2), _update(), _update()])
    assert schedule.batches_per_step == 4
    assert list(schedule.calls()) == [Call((0,), 0, 2), Call((0,), 2, 2), Call((1, 2), 0, 1)]


def test_move_that_is_not_always_due_is_a_call_of_its_own_and_parts_the_others() -> None:
    schedule = Schedule([_update(), _update(every=2), _update()])
    assert [schedule.due(step) for step in (0, 1, 2)] == [(True, True, True), (True, False, True), (True, True, True)]
    assert list(schedule.calls(schedule.due(0))) == [Call((0,), 0, 1), Call((1,), 0, 1), Call((2,), 0, 1)]
    assert list(schedule.calls(schedule.due(1))) == [Call((0,), 0, 1), Call((2,), 0, 1)]  # none that was not rehearsed
    assert list(schedule.calls()) == list(schedule.calls(schedule.due(0)))
