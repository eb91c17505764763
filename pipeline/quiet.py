"""A quiet start: TensorFlow's chatter is dropped, its warnings and errors pass."""

import atexit
import os
import shutil
import subprocess
import sys

from absl import logging

# Each is printed on any healthy machine, whatever log level is asked for: TensorFlow writes them before its log is set
# up, or calls a failed optimisation an error. Everything else passes.
_CHATTER = "|".join(
    [
        "^WARNING: All log messages before absl::InitializeLog",
        "^[IWE][0-9]{4} .*(port|cudart_stub|cpu_feature_guard|cuda_platform|generator_dataset_op|dataset)\\.cc:",
        "^[IWE][0-9]{4} .*remapper failed:",
        "^To enable the following instructions:",
        "^I[0-9]{4} ",
        "^/job:[a-z]+/replica:[0-9]+/task:[0-9]+$",  # the other lines of such a message: the workers that came
        "`FeatureConnector.dtype` is deprecated",
    ]
)


def start() -> None:
    """Filter what C++ writes to standard error; call it before TensorFlow is imported.

    The filter is a process of its own, so that the last words of a crash still come through. Python's own standard
    error does not pass it. Set TF_CPP_MIN_LOG_LEVEL to see everything.
    """
    logging.set_verbosity(logging.WARNING)
    grep = shutil.which("grep")
    if grep is None or "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        return
    real = os.dup(2)
    filtering = subprocess.Popen(
        [grep, "--line-buffered", "-v", "-E", _CHATTER],
        stdin=subprocess.PIPE,
        stdout=real,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the run, not for its filter
    )
    if filtering.stdin is None:
        raise RuntimeError("A process started with a pipe has none.")
    os.dup2(filtering.stdin.fileno(), 2)
    filtering.stdin.close()
    sys.stderr = os.fdopen(real, "w", buffering=1)
    atexit.register(_end, filtering, real)


def _end(filtering: "subprocess.Popen[bytes]", real: int) -> None:
    """Let the filter finish, so that nothing is printed after the process has ended."""
    os.dup2(real, 2)
    filtering.wait(timeout=5)
