"""A network in layers and ops of Keras alone, for inference: what loads where this project is not installed."""

import inspect
from collections.abc import Iterator
from typing import Any

import keras

from components.interfaces import Portable, UserError

_MOST_PASSES = 16  # each opens one level of layers within layers


class NotPlainError(UserError):
    """A layer that is not Keras's own has no plain form."""


def plain(network: keras.Model) -> keras.Model:
    """Return a functional model that computes in inference what `network` does, with copies of its weights.

    Every layer that is not Keras's own is replaced by its plain form (`interfaces.Portable`).

    Args:
      network: a functional model; layers may be models in turn.

    Raises:
      NotPlainError: a layer without a plain form, or something else of Python's that a file would refer to.
    """
    if not hasattr(network, "inputs") or not network.inputs or not is_of_keras(network):
        raise NotPlainError(
            f"A Keras file must hold a functional model. The network {network.name!r} is a "
            f"{_name_of(network)}. Give it a method `parts` (components.interfaces.Composed)."
        )
    for _ in range(_MOST_PASSES):
        was_plain = all(is_of_keras(operation) for operation in operations(network))
        network = _one_pass(network)
        if was_plain:  # and so this pass only made copies of layers that belonged to an opened one
            break
    return network


def is_of_keras(thing: Any) -> bool:
    """Say whether the class of a layer, an op or a model is Keras's own."""
    return type(thing).__module__.partition(".")[0] == "keras"


def _one_pass(network: keras.Model) -> keras.Model:
    """Return a copy in which every layer that is not Keras's own is opened once."""
    copies: dict[int, Any] = {}

    def called(operation: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_of_keras(operation):
            return _opened(operation, args, kwargs)
        if id(operation) in copies:
            return copies[id(operation)](*args, **kwargs)
        if isinstance(operation, keras.Model):
            copies[id(operation)] = _one_pass(operation)
            return copies[id(operation)](*args, **kwargs)
        copy = copies[id(operation)] = _copy(operation)
        outputs = copy(*args, **kwargs)
        if getattr(operation, "weights", ()):
            copy.set_weights(operation.get_weights())
        return outputs

    if isinstance(network, keras.Sequential):
        x = first = keras.Input(batch_shape=network.inputs[0].shape, dtype=network.inputs[0].dtype)
        for layer in network.layers:
            x = called(layer, x)
        return keras.Model(first, x, name=network.name)
    return keras.models.clone_model(network, clone_function=lambda layer: layer, call_function=called)


def _copy(operation: Any) -> Any:
    """Return a new layer or op like one of Keras's own, without weights yet."""
    config = operation.get_config()
    strangers = sorted(set(_foreign(config)))
    try:
        if not strangers:
            return type(operation).from_config(config)
    except (TypeError, ValueError):  # a function without a name
        strangers = ["something that has no name"]
    raise NotPlainError(
        f"A Keras file must refer to Keras alone. The layer {operation.name!r}, a {type(operation).__name__}, refers "
        f"to {', '.join(strangers)}. Use something of Keras's in its place."
    )


def _opened(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a layer that is not Keras's own makes of symbolic inputs, in inference."""
    try:
        args = _cast_as_on_a_call(layer, args)
        if isinstance(layer, Portable):
            return layer.as_plain(*args)
        if getattr(layer, "weights", ()):
            raise TypeError("it has weights and no method `as_plain`")
        told = {name: value for name, value in kwargs.items() if name != "training"}
        if "training" in inspect.signature(layer.call).parameters:
            told["training"] = False
        return layer.call(*args, **told)
    except Exception as error:
        raise NotPlainError(
            f"A Keras file must hold layers of Keras alone. The layer {layer.name!r}, a {_name_of(layer)}, has no "
            f"plain form: {error}. Give it the method of components.interfaces.Portable."
        ) from error


def _cast_as_on_a_call(layer: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `args` in the precision in which a call of `layer` would see them."""
    if not getattr(layer, "autocast", False):
        return args
    wanted = layer.compute_dtype

    def cast(x: Any) -> Any:
        floating = isinstance(x, keras.KerasTensor) and "float" in x.dtype and x.dtype != wanted
        return keras.ops.cast(x, wanted) if floating else x

    return keras.tree.map_structure(cast, args)


def operations(network: keras.Model) -> Iterator[Any]:
    """Yield the layers and ops of a model and of the models in it."""
    for operation in getattr(network, "operations", network.layers):
        yield operation
        if isinstance(operation, keras.Model):
            yield from operations(operation)


def _foreign(config: Any) -> Iterator[str]:
    """Yield what a layer's config refers to outside of Keras."""
    if isinstance(config, dict):
        module, registered = config.get("module"), str(config.get("registered_name") or "")
        of_keras = module is None or str(module).partition(".")[0] == "keras"
        if "class_name" in config and (">" in registered or not of_keras or config["class_name"] == "__lambda__"):
            name = registered or config["class_name"]
            yield f"{config['config']} ({name})" if isinstance(config.get("config"), str) else f"{module}.{name}"
        for value in config.values():
            yield from _foreign(value)
    elif isinstance(config, list | tuple):
        for value in config:
            yield from _foreign(value)


def _name_of(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
