"""The end of a run of several processes when one of them is gone."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

# What TensorFlow says, in errors of several kinds, to those who wait for a worker that has ended or is out of reach.
_SIGNS = re.compile(
    r"Collective ops is aborted|stopped sending heartbeats|heartbeat timeout|CoordinationService|"
    r"RPC error information from remote target|Failed to connect to remote"
)
_WORKER = re.compile(r"/job:(chief|worker)(?:/replica:\d+)?/task:(\d+)")


class LostWorker(SystemExit):
    """Ends this process with status 1 and one line: TensorFlow can do nothing more in it, so no caller could go on."""


@contextmanager
def ending_with_the_others() -> Iterator[None]:
    """Turn TensorFlow's failure to reach another worker into the end of this process, at any stage of a run.

    Raises:
      LostWorker: one has ended or cannot be reached; TensorFlow notices it within half a minute.
    """
    try:
        yield
    except Exception as error:
        found = _lost(error)
        if found is None:
            raise
        raise LostWorker(
            f"Error: A run needs all of its workers, and {found} has ended or cannot be reached (its own output says "
            "why). What was saved is kept: start the same command on all workers, and the run goes on."
        ) from error


def _lost(error: BaseException | None) -> str | None:
    """Return which worker an error, or what led to it, tells to be gone; None where it tells of no such thing."""
    while error is not None:
        text = str(error)
        if isinstance(error, tf.errors.OpError) and _SIGNS.search(text):
            named = _WORKER.search(text)
            return f"{named[1]} {named[2]}" if named else "one of them"
        error = error.__cause__ or error.__context__
    return None
