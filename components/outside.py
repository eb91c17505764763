"""What must be computed or traced while something else is being traced, and apart from it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")


def outside(ask: Callable[[], Answer]) -> Answer:
    """Return what a function returns when it is called eagerly, outside of every graph, tape and replica.

    `tf.init_scope` leaves graphs as well, but it stops every tape of its thread, those opened within it too: gradients
    are None there, in what is traced there as in what is computed. A thread of its own has no such state.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(ask).result()
