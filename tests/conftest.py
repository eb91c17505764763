"""Eight logical CPUs, and a data folder of the tests' own."""

import atexit
import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Prepared once a session, never in the user's own folder.
os.environ["TFDS_DATA_DIR"] = tempfile.mkdtemp(prefix="gantry-tests-")
atexit.register(shutil.rmtree, os.environ["TFDS_DATA_DIR"], ignore_errors=True)


def pytest_configure() -> None:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
    tf.config.list_logical_devices()  # starts TensorFlow: no test can make them fewer for those after it


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a prepared data set, in the order given, and returns the data folder."""

    import tensorflow as tf
    import tensorflow_datasets as tfds

    def write(name: str, images: list[np.ndarray], *, shape: tuple, labels: list[int] | None = None, classes: int = 10):
        features: dict = {"image": tfds.features.Image(shape=shape, dtype=images[0].dtype, encoding_format="png")}
        if labels is not None:
            features["label"] = tfds.features.ClassLabel(num_classes=classes)

        def examples():
            for number, image in enumerate(images):
                yield {"image": image} | ({} if labels is None else {"label": labels[number]})

        signature: dict = {"image": tf.TensorSpec(shape, images[0].dtype)}
        if labels is not None:
            signature["label"] = tf.TensorSpec((), tf.int64)
        with contextlib.redirect_stderr(io.StringIO()):
            tfds.dataset_builders.store_as_tfds_dataset(
                name=name,
                version="1.0.0",
                data_dir=tmp_path / "data",
                split_datasets={"train": tf.data.Dataset.from_generator(examples, output_signature=signature)},
                features=tfds.features.FeaturesDict(features),
                disable_shuffling=True,
            )
        return str(tmp_path / "data")

    return write
