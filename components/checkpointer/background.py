"""Saving beside the training: variables are copied to the host at once, and written while steps go on."""

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf


class Snapshot:
    """Copies of variables on the host, which a checkpoint holds under the names of the variables themselves.

    Args:
      state: {name: variables}; one that is listed twice is copied once.
    """

    def __init__(self, state: Mapping[str, Sequence[tf.Variable]]) -> None:
        """Make the copies; outside of strategy.scope(), so that each is one variable."""
        self._pairs: dict[int, tuple[tf.Variable, tf.Variable]] = {}
        with tf.device("/CPU:0"):
            copies = {name: [self._copy(variable) for variable in variables] for name, variables in state.items()}
        self.checkpoint = tf.train.Checkpoint(state=copies)

    def take(self) -> None:
        """Give each copy the value that its variable has now."""
        for variable, copy in self._pairs.values():
            copy.assign(np.asarray(variable.numpy()))

    def _copy(self, variable: tf.Variable) -> tf.Variable:
        if id(variable) not in self._pairs:
            self._pairs[id(variable)] = variable, tf.Variable(np.asarray(variable.numpy()), trainable=False)
        return self._pairs[id(variable)][1]


class Background:
    """Does one job at a time in a thread of its own; the process does not end before the job does."""

    def __init__(self) -> None:
        """There is no job."""
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Begin a job; the one before must have been waited for."""

        def work() -> None:
            try:
                job()
            except BaseException as error:  # it is raised again by `finish`, in the thread that knows what to do
                self._error = error

        self._thread = threading.Thread(target=work, name="saving")
        self._thread.start()

    def finish(self) -> None:
        """Return when the job is done; raise what it raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error
