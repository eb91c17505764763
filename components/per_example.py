"""What the losses, terms, metrics and logits of a move must be: float32, one number per example; for all areas."""

import tensorflow as tf


def other_form(value: object, size: int | None) -> str | None:
    """Return what a value is where it is no float32[size], as an error tells it; None where it is."""
    if not tf.is_tensor(value):
        return repr(value)
    if value.dtype == tf.float32 and value.shape.as_list() == [size]:
        return None
    return f"{value.dtype.name}{value.shape.as_list()}"
