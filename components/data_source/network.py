"""Whether a download can succeed, asked within seconds, and downloads that end when a host falls silent."""

import socket
import threading
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import requests

_CONNECT_SECONDS = 10.0
_SILENCE_SECONDS = 30.0
_RETRIES = 2


def unreachable(urls: Iterable[str], *, seconds: float = 3.0) -> str:
    """Ask each host for the headers of one of its files, all at once.

    The question goes the way that the download would go, proxies included, and the answer does not matter: a host
    that refuses one file may still give another.

    Args:
      urls: what is to be downloaded.
      seconds: how long to wait, in all.

    Returns:
      Which host cannot be reached and why; empty: all of them can.
    """
    hosts = {urllib.parse.urlsplit(url).netloc: url for url in urls}
    answers: dict[str, str] = {}
    # Looking up a name knows no time-out, so the question is left behind in a daemon thread when time is up.
    threads = [
        threading.Thread(target=_ask, args=(host, url, answers, seconds), daemon=True) for host, url in hosts.items()
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    failed = {host: answers.get(host, f"no answer within {seconds:g} seconds") for host in hosts}
    return "; ".join(f"{host} cannot be reached ({why})" for host, why in failed.items() if why)


def _ask(host: str, url: str, answers: dict[str, str], seconds: float) -> None:
    """Write down why a host cannot be reached; empty: it answered."""
    try:
        if url.startswith("http"):
            requests.head(url, timeout=seconds, allow_redirects=False).close()
        else:
            name, _, port = host.rpartition("@")[2].partition(":")
            socket.create_connection((name, int(port or 21)), timeout=seconds).close()
    except requests.exceptions.ProxyError:
        answers[host] = "the proxy refuses or cannot be reached"
    except (OSError, ValueError) as error:
        answers[host] = type(error).__name__
    else:
        answers[host] = ""


@contextmanager
def bounded_requests() -> Iterator[None]:
    """Make every HTTP request that states no limit give up: 10 s to connect, 30 s of silence, 2 retries.

    TFDS asks without a time-out and retries ten times, which takes 205 s on a dead network and for ever with a host
    that accepts and then says nothing.
    """
    send = requests.adapters.HTTPAdapter.send

    def bounded(adapter: Any, request: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = kwargs.get("timeout") or (_CONNECT_SECONDS, _SILENCE_SECONDS)
        adapter.max_retries = requests.adapters.Retry(total=_RETRIES, backoff_factor=0.2)
        return send(adapter, request, **kwargs)

    requests.adapters.HTTPAdapter.send = bounded  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        requests.adapters.HTTPAdapter.send = send  # type: ignore[method-assign]
