"""What a feature extractor is, and how any number of images goes through one."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from components.evaluator.conversion import Conversion
from components.evaluator.metric import Need, SampleSet
from components.interfaces import DataSource, UserError

Function = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor | None]]  # images -> features [B, D], logits [B, K] or None


class Extractor(Protocol):
    """Where features come from.

    Attributes:
      gives: "logits" where it has any, "classes" where they are of the classes of the data.
    """

    gives: frozenset[Need]

    def load(self, data: DataSource) -> "FeatureNetwork":
        """Return what computes features, loaded or trained; raises UserError where it cannot be had.

        `data` are those that the run is trained on.
        """
        ...


class FeatureNetwork:
    """Turns images into a `SampleSet`.

    Args:
      function: takes what `conversion` gives.
      conversion: of the bytes.
      certificate: {name: value}: what it is, and its hash.
      classes: whether the logits are of the classes of the data.
      batch_size: images at a time; the last batch is filled up, so that one graph serves all.
    """

    def __init__(
        self,
        function: Function,
        conversion: Conversion,
        *,
        certificate: Mapping[str, Any],
        classes: bool = False,
        batch_size: int = 250,
    ) -> None:
        """Hold the parts; nothing is computed yet."""
        self.certificate = {**certificate, "resizer": conversion.description}
        self._conversion = conversion
        self._classes = classes
        self._batch_size = batch_size
        self._compute = tf.function(lambda images: function(conversion(images)), autograph=False)

    def __call__(self, images: np.ndarray, labels: np.ndarray) -> SampleSet:
        """Return images uint8[N, H, W, C] and labels int32[N] with their features.

        Raises:
          UserError: images of another type or shape, or features that are not finite.
        """
        self._conversion.require(images)
        parts = [self._of_batch(images[start : start + self._batch_size]) for start in self._starts(len(images))]
        features = np.concatenate([features for features, _ in parts]).astype(np.float64)
        if not np.isfinite(features).all():
            raise UserError(
                f"Features must be finite. {self.certificate['extractor']} gave NaN or infinity for some of "
                f"{len(images)} images. Use another extractor, or check the range of values that it takes."
            )
        logits = None if parts[0][1] is None else np.concatenate([one for _, one in parts]).astype(np.float64)
        return SampleSet(images=images, labels=labels, features=features, logits=logits, classes=self._classes)

    def _starts(self, count: int) -> range:
        return range(0, count, self._batch_size)

    def _of_batch(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        full = np.zeros((self._batch_size, *images.shape[1:]), np.uint8)
        full[: len(images)] = images
        features, logits = self._compute(full)
        return features.numpy()[: len(images)], None if logits is None else logits.numpy()[: len(images)]
