"""What the C library is asked to keep."""

import ctypes
import platform

import pytest

from components.stepper.heap import keep_freed_memory


@pytest.fixture
def asked(monkeypatch) -> list:
    """Return what glibc would have been asked."""
    found: list = []

    class Library:
        def mallopt(self, parameter, value):
            found.append((parameter, value))

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    monkeypatch.setattr("sys.platform", "linux")
    return found


def test_freed_memory_is_kept_up_to_a_bound(asked) -> None:
    keep_freed_memory()
    assert dict(asked) == {-1: 2**30, -2: 2**26, -3: 2**25}


@pytest.mark.parametrize("name", ["MALLOC_TOP_PAD_", "GLIBC_TUNABLES"])
def test_what_the_environment_says_holds(asked, name, monkeypatch) -> None:
    monkeypatch.setenv(name, "1")
    keep_freed_memory()
    assert not asked


def test_other_systems_and_libraries_are_left_alone(asked, monkeypatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    keep_freed_memory()
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("it was loaded"))
    keep_freed_memory()
    assert not asked


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_glibc_takes_every_setting(monkeypatch) -> None:
    library, answers = ctypes.CDLL(None), []

    class Listening:
        def mallopt(self, parameter, value):
            answers.append(library.mallopt(parameter, value))

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Listening())
    keep_freed_memory()
    assert answers == [1, 1, 1]
