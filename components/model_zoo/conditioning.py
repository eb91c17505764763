"""The inputs of networks, and labels in the shapes in which they enter: rows, stripes, planes."""

import keras
import numpy as np

from components import class_mixture
from components.interfaces import DataSpec, UserError


def network_inputs(first: str, shape: tuple[int, ...]) -> tuple[keras.KerasTensor, keras.KerasTensor]:
    """Return the two inputs of every network: (`first` float32[B, *shape], labels int32[B])."""
    return keras.Input(shape, name=first), keras.Input((), dtype="int32", name="labels")


def require_classes(spec: DataSpec, network: str) -> None:
    """Raise UserError where `network` needs labels and the data have none."""
    if spec.num_classes < 2:
        raise UserError(
            f"`{network}` is conditional and needs labelled data. Received {spec.name!r} with num_classes="
            f"{spec.num_classes}. Bind labelled data or an unconditional network."
        )


@keras.saving.register_keras_serializable("gantry")
class OneHot(keras.layers.Layer):
    """Labels int32[B] as float32[B, num_classes]."""

    def __init__(self, num_classes: int, **kwargs) -> None:
        """Hold the number of classes."""
        super().__init__(**kwargs)
        self.num_classes = num_classes

    def call(self, labels):
        """Return the one-hot rows."""
        return class_mixture.rows(labels, self.num_classes)

    def get_config(self) -> dict:
        """Return what makes an equal layer."""
        return {**super().get_config(), "num_classes": self.num_classes}


@keras.saving.register_keras_serializable("gantry")
class ClassEmbedding(keras.layers.Embedding):
    """Labels int32[B] as learnt vectors float[B, Z], that of a mixture of classes being the mean of theirs."""

    def call(self, labels):
        """Return the vectors."""
        if not class_mixture.is_mixing():
            return super().call(labels)
        vectors = keras.ops.cast(self.embeddings, self.compute_dtype)
        return keras.ops.matmul(class_mixture.rows(labels, self.input_dim, self.compute_dtype), vectors)

    def as_plain(self, labels):
        """Return the same by Keras's own look-up; see `interfaces.Portable`."""
        look_up = keras.layers.Embedding(self.input_dim, self.output_dim, dtype=self.dtype_policy)
        vectors = look_up(labels)
        look_up.set_weights([self.embeddings.numpy()])
        return vectors


@keras.saving.register_keras_serializable("gantry")
class LabelStripes(keras.layers.Layer):
    """Labels int32[B] as images float32[B, H, W, channels] with one stripe of ones.

    The H * W * channels numbers in row-major order are cut in num_classes equal stripes of
    floor(H * W * channels / num_classes); stripe y is 1, the rest, leftover numbers included, is 0.
    """

    def __init__(self, height: int, width: int, num_classes: int, channels: int = 1, **kwargs) -> None:
        """Hold the sizes; raises UserError where a stripe would be empty."""
        super().__init__(**kwargs)
        numbers = height * width * channels
        if numbers < num_classes:
            raise UserError(
                f"A label image needs at least one number a class. Received {height} x {width} x {channels} for "
                f"{num_classes} classes. Use channels={-(-num_classes // (height * width))}."
            )
        self.height, self.width, self.num_classes, self.channels = height, width, num_classes, channels
        self._class_at = (np.arange(numbers) // (numbers // num_classes)).reshape(1, height, width, channels)

    def call(self, labels):
        """Return the label images."""
        rows = keras.ops.reshape(labels, (-1, 1, 1, 1))
        return keras.ops.cast(keras.ops.equal(rows, self._class_at.astype("int32")), self.compute_dtype)

    def get_config(self) -> dict:
        """Return what makes an equal layer."""
        sizes = {name: getattr(self, name) for name in ("height", "width", "num_classes", "channels")}
        return {**super().get_config(), **sizes}


@keras.saving.register_keras_serializable("gantry")
class LabelPlanes(keras.layers.Layer):
    """Labels int32[B] as images float[B, H, W, num_classes]: plane y is 1, the others 0.

    Reference: Reed et al., 2016, arXiv:1605.05396, section 4.1, where a vector that conditions a convolution is
    repeated over all its places; here the vector is one-hot.
    """

    def __init__(self, height: int, width: int, num_classes: int, **kwargs) -> None:
        """Hold the sizes."""
        super().__init__(**kwargs)
        self.height, self.width, self.num_classes = height, width, num_classes

    def call(self, labels):
        """Return the label images."""
        rows = keras.ops.one_hot(labels, self.num_classes, dtype=self.compute_dtype)
        ones = keras.ops.ones((1, self.height, self.width, 1), self.compute_dtype)
        return ones * keras.ops.reshape(rows, (-1, 1, 1, self.num_classes))

    def get_config(self) -> dict:
        """Return what makes an equal layer."""
        sizes = {name: getattr(self, name) for name in ("height", "width", "num_classes")}
        return {**super().get_config(), **sizes}


def way_of_class(chosen: str | None, default: str, spec: DataSpec, network: str) -> str:
    """Return the conditioning that takes effect: where none is chosen, the default, or "none" without labels.

    Raises:
      UserError: a way for a class that the data do not have.
    """
    if chosen is None:
        return default if spec.num_classes >= 2 else "none"
    if chosen != "none" and spec.num_classes < 2:
        raise UserError(
            f"`{network}.conditioning = {chosen!r}` needs labelled data. Received {spec.name!r} with num_classes="
            f"{spec.num_classes}. Bind labelled data, or `conditioning = 'none'`."
        )
    return chosen
