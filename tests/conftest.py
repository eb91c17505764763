"""Eight logical CPUs, and a data folder of the tests' own."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Prepared once a session, never in the user's own folder.
os.environ["TFDS_DATA_DIR"] = tempfile.mkdtemp(prefix="gantry-tests-")
atexit.register(shutil.rmtree, os.environ["TFDS_DATA_DIR"], ignore_errors=True)


def pytest_configure() -> None:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent
