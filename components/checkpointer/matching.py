"""What a checkpoint holds against what a run has, by name, type and shape."""

import re
from collections.abc import Mapping, Sequence

import tensorflow as tf

_SHOWN = 8  # names of one list; a network of another kind would else fill the screen
_KEY = re.compile(r"state/(.+)/(\d+)/\.ATTRIBUTES/VARIABLE_VALUE")
_MEANING = {".S": "/", "..": "."}
_ESCAPED = re.compile(r"\.[S.]")
_BOOKKEEPING = "_CHECKPOINTABLE_OBJECT_GRAPH"


def mismatch(prefix: str, state: Mapping[str, Sequence[tf.Variable]]) -> str:
    """Return what does not fit, in lists of names; "" where all does.

    Args:
      prefix: of the files of the checkpoint.
      state: {name: variables} of the run.

    Raises:
      tf.errors.OpError: the files cannot be read.
    """
    stored = {_name(key): kind for key, kind in _kinds(prefix).items() if key != _BOOKKEEPING}
    own = _named(state, stored)
    lists = {
        "without a stored value": sorted(own.keys() - stored.keys()),
        "stored without a variable": sorted(stored.keys() - own.keys()),
        "of another type or shape": [
            f"{name} {stored[name]} -> {own[name]}" for name in own if stored.get(name, own[name]) != own[name]
        ],
    }
    return "; ".join(f"{what}: {_listed(names)}" for what, names in lists.items() if names)


def _named(state: Mapping[str, Sequence[tf.Variable]], stored: Mapping[str, str]) -> dict[str, str]:
    """Return {name: type and shape}, each variable once: one that is listed twice is stored under one of its names."""
    names: dict[int, list[str]] = {}
    kinds: dict[int, str] = {}
    for name, listed in state.items():
        for place, variable in enumerate(listed):
            names.setdefault(id(variable), []).append(f"{name}[{place}]")
            kinds[id(variable)] = _kind(variable.dtype, variable.shape)
    return {next((name for name in names[key] if name in stored), names[key][0]): kinds[key] for key in names}


def _kinds(prefix: str) -> dict[str, str]:
    reader = tf.train.load_checkpoint(prefix)
    types = reader.get_variable_to_dtype_map()
    return {key: _kind(types[key], shape) for key, shape in reader.get_variable_to_shape_map().items()}


def _kind(dtype: tf.DType | str, shape: Sequence[int]) -> str:
    return f"{tf.as_dtype(dtype).name}{list(shape)}"


def _name(key: str) -> str:
    """Return "generator/network[3]" for TensorFlow's name of that variable, in which a slash is written ".S"."""
    match = _KEY.fullmatch(key)
    return f"{_ESCAPED.sub(lambda found: _MEANING[found[0]], match[1])}[{match[2]}]" if match else key


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
