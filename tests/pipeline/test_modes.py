"""The table of modes against the functions it names."""

import inspect

import pytest

from pipeline import main, modes


@pytest.mark.parametrize("name", modes.USING_A_RUN)
def test_mode_takes_exactly_the_flags_of_its_line(name) -> None:
    mode = modes.USING_A_RUN[name]
    place, *rest = inspect.signature(mode.function()).parameters.values()
    assert place.name == "workdir"
    assert tuple(one.name for one in rest) == mode.flags
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in rest)


def test_every_flag_is_of_some_mode_or_of_all() -> None:
    for flag in main.defined_flags():
        assert modes.with_flag(flag) or flag in main._OF_ALL
    for mode in modes.NAMES:
        assert set(modes.flags_of(mode)) <= set(main.defined_flags())
