"""Whether what a function makes depends on one of its inputs, told by its graph; for all areas."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def depends(function: Callable[..., Any], inputs: Sequence[tf.TensorSpec], which: int) -> bool:
    """Say whether a path of operations leads from input `which` to an output of a function of tensors.

    Its values would not tell: those of a new network may be alike for all classes, and differ after a step.
    """
    graph = tf.function(function, autograph=False).get_concrete_function(*inputs)
    source, waiting, seen = graph.inputs[which].op, [tensor.op for tensor in graph.outputs], set()
    while waiting:
        operation = waiting.pop()
        if operation is source:
            return True
        if operation.name not in seen:
            seen.add(operation.name)
            waiting += [tensor.op for tensor in operation.inputs]
    return False
