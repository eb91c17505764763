"""Five thousand real MNIST digits that come with the package: data for a first run without a network.

Importing this module makes the name `mnist_5k` known to TensorFlow Datasets. Source and licence of the digits are in
`mnist_5k.LICENSE.md`.
"""

from collections.abc import Iterator
from importlib import resources
from typing import Any

import numpy as np
import tensorflow_datasets as tfds


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return images uint8[5000, 28, 28, 1], 0 is background, and labels uint8[5000], sorted, 500 of each digit."""
    with resources.files("components.data_source").joinpath("mnist_5k.npz").open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        return archive["image"][..., None], archive["label"]


class Mnist5k(tfds.core.GeneratorBasedBuilder):
    """The embedded digits as a TFDS data set, with the features of TFDS's own `mnist` and one split, `train`."""

    name = "mnist_5k"
    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "500 digits of each class."}

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            description="5,000 handwritten digits of MNIST, 500 of each class.",
            homepage="http://yann.lecun.com/exdb/mnist/",
            license="CC BY-SA 3.0",
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(shape=(28, 28, 1)),
                    "label": tfds.features.ClassLabel(num_classes=10),
                }
            ),
            supervised_keys=("image", "label"),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Any]:
        del dl_manager  # nothing to download
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
        # TFDS stores examples in the order of a hash of their keys, so a slice of the split holds all digits.
        images, labels = load_digits()
        for key, (image, label) in enumerate(zip(images, labels, strict=True)):
            yield key, {"image": image, "label": int(label)}
