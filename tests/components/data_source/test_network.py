import http.server
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import requests

from components.data_source import network


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def silent() -> Iterator[str]:
    """A host that accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/file"


@pytest.fixture
def talking() -> Iterator[str]:
    """A host that answers, if only that it has no such file."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):  # noqa: N802
            self.send_response(404)
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def closed() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/file"


def test_unreachable_host_that_answers_is_reached(talking):
    assert network.unreachable([f"{talking}/a", f"{talking}/b"]) == ""


def test_unreachable_nothing_to_download_is_reached(no_network):
    assert network.unreachable([]) == ""
    assert not no_network


def test_unreachable_closed_port_says_so_at_once():
    start = time.monotonic()
    assert "cannot be reached (ConnectionError)" in network.unreachable([closed()])
    assert time.monotonic() - start < 1


def test_unreachable_silent_host_is_left_when_time_is_up(silent):
    start = time.monotonic()
    assert "127.0.0.1" in network.unreachable([silent, closed()], seconds=0.3)
    assert time.monotonic() - start < 1


def test_unreachable_name_lookup_that_hangs_is_left_when_time_is_up(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: time.sleep(1) or [])
    start = time.monotonic()
    assert "no answer within 0.2 seconds" in network.unreachable(["http://host.invalid/a"], seconds=0.2)
    assert time.monotonic() - start < 0.9


def test_unreachable_behind_a_proxy_asks_the_proxy(talking, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", talking)
    assert network.unreachable(["http://host.invalid/a"]) == ""


def test_unreachable_dead_proxy_is_named(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", closed())
    assert "proxy" in network.unreachable(["http://host.invalid/a"])


def test_unreachable_ftp_host_is_asked_for_a_connection(talking):
    assert network.unreachable([talking.replace("http", "ftp") + "/a"]) == ""
    assert "cannot be reached" in network.unreachable([closed().replace("http", "ftp")])


def test_bounded_requests_silent_host_gives_up(silent, monkeypatch):
    monkeypatch.setattr(network, "_SILENCE_SECONDS", 0.1)
    send = requests.adapters.HTTPAdapter.send
    start = time.monotonic()
    with network.bounded_requests(), pytest.raises(requests.RequestException):
        requests.get(silent)
    assert time.monotonic() - start < 3
    assert requests.adapters.HTTPAdapter.send is send
