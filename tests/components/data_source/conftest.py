import contextlib
import io
import socket
from collections.abc import Callable

import numpy as np
import pytest

from components.data_source.tfds_source import TFDSSource


@pytest.fixture(scope="session")
def digits_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A data folder in which the embedded digits are prepared."""
    folder = str(tmp_path_factory.mktemp("digits"))
    with contextlib.redirect_stderr(io.StringIO()):
        assert TFDSSource(name="mnist_5k", data_dir=folder).spec.num_examples == 5000
    return folder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Refuse every connection; returns the list of those tried."""
    tried: list[str] = []

    def refuse(*args: object, **kwargs: object) -> None:
        tried.append(repr(args))
        raise OSError("the network is off")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tried


@pytest.fixture
def noise() -> Callable[..., list[np.ndarray]]:
    """Return a function that draws images of given shapes."""

    def draw(*shapes: tuple[int, ...], dtype: type = np.uint8) -> list[np.ndarray]:
        generator = np.random.default_rng(0)
        return [generator.integers(0, 256, shape).astype(dtype) for shape in shapes]

    return draw
