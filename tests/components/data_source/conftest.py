import contextlib
import io
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

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
def store(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a prepared data set, in the order given, and returns the data folder."""

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


@pytest.fixture
def noise() -> Callable[..., list[np.ndarray]]:
    """Return a function that draws images of given shapes."""

    def draw(*shapes: tuple[int, ...], dtype: type = np.uint8) -> list[np.ndarray]:
        generator = np.random.default_rng(0)
        return [generator.integers(0, 256, shape).astype(dtype) for shape in shapes]

    return draw
