"""The features of any Keras model in a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import keras
import tensorflow as tf

from components.evaluator import cached_files
from components.evaluator.conversion import Conversion, Resize
from components.evaluator.extractor import FeatureNetwork
from components.evaluator.metric import Need
from components.interfaces import DataSource, UserError


@dataclass(frozen=True, kw_only=True)
class KerasModel:
    """The output of a layer of a model float32[B, H, W, C] -> anything, flattened to float[B, D].

    Attributes:
      path: a .keras or .h5 file.
      layer: its name; None: the model's output.
      value_range: what the bytes 0 and 255 become.
      resize: the filter, where images are not of the model's size.
    """

    gives: ClassVar[frozenset[Need]] = frozenset()
    path: str
    layer: str | None = None
    value_range: tuple[float, float] = (0.0, 1.0)
    resize: Resize = "bicubic"

    def load(self, data: DataSource) -> FeatureNetwork:
        """Return it; raises UserError for a file that is no such model, or a layer that it has not."""
        try:
            model = keras.saving.load_model(self.path, compile=False)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UserError(
                f"`KerasModel.path` must be a file that Keras can load. Received {self.path!r}: "
                f"{' '.join(str(error).split())[:300]} Write one by model.save('NAME.keras')."
            ) from error
        features = self._cut(model)
        height, width, channels = (*data.spec.image_shape,)
        shape = features.inputs[0].shape
        if len(features.inputs) != 1 or len(shape) != 4:
            raise UserError(
                "`KerasModel.path` must be a model of images float32[B, H, W, C]. Received one of inputs "
                f"{', '.join(str(one.shape) for one in features.inputs)}. Save the part of it that takes images."
            )
        conversion = Conversion(
            size=(shape[1] or height, shape[2] or width),
            channels=shape[3] or channels,
            low=self.value_range[0],
            high=self.value_range[1],
            resize=self.resize,
        )
        certificate: dict[str, Any] = {
            "extractor": f"{Path(self.path).name}, {self.layer or 'output'}",
            "extractor_hash": cached_files.sha256(Path(self.path))[:16],
        }
        return FeatureNetwork(lambda images: (_flat(features, images), None), conversion, certificate=certificate)

    def _cut(self, model: keras.Model) -> keras.Model:
        """Return the model up to the layer."""
        if not getattr(model, "inputs", None):
            raise UserError(
                f"`KerasModel.path` must be a model whose input is known. Received {self.path!r}, which was saved "
                "before it was called. Call it once on images, or begin it with keras.Input, and save it again."
            )
        if self.layer is None:
            return model
        names = [one.name for one in model.layers]
        if self.layer not in names:
            raise UserError(
                f"`KerasModel.layer` must be a layer of the model. Received {self.layer!r}; there are "
                f"{', '.join(names)}. Name one of those, or none for the output."
            )
        try:
            return keras.Model(model.inputs, model.get_layer(self.layer).output)
        except (ValueError, AttributeError) as error:  # a nested model has tensors of its own
            raise UserError(
                f"`KerasModel.layer` must be a layer whose output the model itself computes once. Received "
                f"{self.layer!r}: {' '.join(str(error).split())[:200]} Name another, or save the part up to it."
            ) from error


def _flat(model: keras.Model, images: tf.Tensor) -> tf.Tensor:
    output = model(images, training=False)
    if not tf.is_tensor(output):
        raise UserError(
            f"`KerasModel` takes features from one tensor. Received a {type(output).__name__} from {model.name!r}. "
            "Name a layer of one output by `KerasModel.layer`."
        )
    return tf.reshape(output, [output.shape[0], -1])
