"""The networks of a run as functions with named inputs and outputs, in the form in which each is exported."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from components.interfaces import Composed, DataSpec, Networks, UserError

RANGES = {
    "latents": "standard normal",
    "labels": "classes, from 0",
    "images": "-1 to 1",
    "reconstruction": "-1 to 1",
}


@dataclass(frozen=True, kw_only=True)
class Exported:
    """One network to export.

    Attributes:
      name: of its files.
      model: the run's own.
      weights: which they are, for a person.
      spec: of the run's data.
    """

    name: str
    model: keras.Model
    weights: str
    spec: DataSpec

    @property
    def inputs(self) -> dict[str, tf.TensorSpec]:
        """{name: spec with an open first axis}, in the order of the model; names say the role, see `_role`."""
        found: dict[str, tf.TensorSpec] = {}
        for one in self.model.inputs:
            shape, dtype = tuple(one.shape[1:]), tf.as_dtype(one.dtype)
            name = _role(shape, dtype, self.spec) or one.name
            found[name] = tf.TensorSpec((None, *shape), dtype, name)
        if len(found) != len(self.model.inputs):  # two of a role
            return {one.name: tf.TensorSpec(one.shape, one.dtype, one.name) for one in self.model.inputs}
        return found

    def named(self, outputs: Any) -> dict[str, Any]:
        """Return the model's outputs by name, names in order.

        A single image is "images", and "reconstruction" where images are also taken: names are unique in a graph.
        """
        if isinstance(outputs, Mapping):
            return {name: outputs[name] for name in sorted(outputs)}
        if isinstance(outputs, list | tuple):
            return {f"output_{index}": one for index, one in enumerate(outputs)}
        if tuple(outputs.shape[1:]) != self.spec.image_shape:
            return {"outputs": outputs}
        return {"reconstruction" if "images" in self.inputs else "images": outputs}

    def function(self, model: keras.Model) -> Callable[..., dict[str, Any]]:
        """Return `model`, this one or its equal, as a function from inputs in their order to named outputs."""
        return lambda *inputs: self.named(model(list(inputs) if len(inputs) > 1 else inputs[0], training=False))

    def examples(self, rows: int) -> dict[str, np.ndarray]:
        """Return inputs of `rows` rows: classes in turn, images of noise, normal numbers; always the same."""
        random = np.random.default_rng(0)
        classes = np.arange(rows) % max(1, self.spec.num_classes)
        found = {}
        for name, one in self.inputs.items():
            shape, dtype = (rows, *one.shape[1:]), one.dtype.as_numpy_dtype
            if one.dtype.is_integer:
                found[name] = np.broadcast_to(classes.reshape(rows, *(1,) * (len(shape) - 1)), shape).astype(dtype)
            else:
                draw = random.uniform(-1.0, 1.0, shape) if name == "images" else random.normal(size=shape)
                found[name] = draw.astype(dtype)
        return found

    def answers(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return what the run's own model makes of `inputs`, on this host's processor."""
        with tf.device("CPU:0"):
            outputs = self.function(self.model)(*map(tf.constant, inputs.values()))
            return {name: np.asarray(tf.convert_to_tensor(one)) for name, one in outputs.items()}


def networks_of(networks: Networks, averages: Mapping[str, keras.Model]) -> list[Exported]:
    """Return every network of a run; in place of one with a moving average, that.

    A model that is several networks in one (`interfaces.Composed`) gives its parts, named after it and them.

    Raises:
      UserError: a network that says neither its inputs nor its parts.
    """
    found = []
    for name, network in {**networks, **averages}.items():
        weights = "the moving average of its weights" if name in averages else "its weights as trained"
        parts = (
            {f"{name}_{part}": one for part, one in network.parts().items()} if isinstance(network, Composed) else {}
        )
        for called, model in (parts or {name: network}).items():
            if not getattr(model, "inputs", None):
                raise UserError(
                    f"An exported network has known inputs. Received {name!r}, a {type(network).__name__} that names "
                    "none. Build it as keras.Model(inputs, outputs), or give it the method of "
                    "components.interfaces.Composed."
                )
            found.append(Exported(name=called, model=model, weights=weights, spec=networks.spec))
    return found


def as_uint8(images: tf.Tensor) -> tf.Tensor:
    """Return uint8 of images in [-1, 1], as the samplers do it, for graphs that leave the project."""
    return tf.cast(tf.round(tf.clip_by_value(images * 127.5 + 127.5, 0.0, 255.0)), tf.uint8)


def _role(shape: tuple[int, ...], dtype: tf.DType, spec: DataSpec) -> str | None:
    """Return which of the inputs of `interfaces.NetworkFactory` this is; None for another."""
    if dtype.is_integer:
        return "labels" if shape == () else None
    return "images" if shape == spec.image_shape else "latents" if len(shape) == 1 else None
