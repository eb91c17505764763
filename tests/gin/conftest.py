"""A whole configuration of toy parts, and a way to break it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TOYS = Path(__file__).parent / "toys"


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gin files import the toy parts."""
    monkeypatch.syspath_prepend(str(TOYS))


@pytest.fixture
def good_text() -> str:
    """Return the text of a configuration without a fault."""
    return (TOYS / "good.gin").read_text()


@pytest.fixture(scope="session", autouse=True)
def forget_toys() -> Iterator[None]:
    """Leave no toy module behind for other tests."""
    yield
    for name in [name for name in sys.modules if name.startswith("toy_")]:
        del sys.modules[name]
