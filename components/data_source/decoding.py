"""From a stored record to one image of bytes and its label: which features, of which form, at which size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from components.interfaces import UserError

_CHANNELS = (1, 3, 4)


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """Reads the image and the label of a TFDS record, and nothing else of it.

    Attributes:
      features: the features read: one image and at most one label.
      image_key: name of the image.
      label_key: name of the label; None: every label is 0.
      num_classes: K; 0 where there are no labels.
      image_shape: H, W, C as the decoded image has them; None where the data set does not say.
      image_size: H, W to crop and resize to; None: images stay as they are.
    """

    features: Any
    image_key: str
    label_key: str | None
    num_classes: int
    image_shape: tuple[int | None, int | None, int | None]
    image_size: tuple[int, int] | None

    def __call__(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return (image uint8[H, W, C], label int32[]) of a record string[]."""
        example = self.features.deserialize_example(record)
        image = example[self.image_key]
        if self.image_size is not None:
            image = crop_and_resize(image, self.image_size)
        image = tf.ensure_shape(image, self.image_shape)
        label = tf.zeros([], tf.int32) if self.label_key is None else tf.cast(example[self.label_key], tf.int32)
        return image, label


def crop_and_resize(image: tf.Tensor, size: Sequence[int]) -> tf.Tensor:
    """Cut the largest centred part of the wanted aspect ratio, then resize it, bilinear and antialiased.

    Args:
      image: uint8[h, w, C].
      size: H, W in pixels.

    Returns:
      uint8[H, W, C], rounded to the nearest; the image itself where it has this size.
    """
    height, width = size
    old_height, old_width = tf.unstack(tf.shape(image)[:2])
    new_height = tf.clip_by_value((old_width * height + width // 2) // width, 1, old_height)
    new_width = tf.clip_by_value((old_height * width + height // 2) // height, 1, old_width)
    top, left = (old_height - new_height) // 2, (old_width - new_width) // 2
    part = image[top : top + new_height, left : left + new_width]
    resized = tf.image.resize(part, (height, width), method="bilinear", antialias=True)
    return tf.cast(tf.clip_by_value(tf.round(resized), 0, 255), tf.uint8)


def decoder(
    features: Any, *, name: str, image_key: str, label_key: str | None, image_size: Sequence[int] | None
) -> Decoder:
    """Choose what to read of a data set.

    Args:
      features: TFDS features of the data set.
      name: of the data set, for messages.
      image_key: which feature is the image.
      label_key: which feature is the label; "label", the default name, may be absent. None: no labels.
      image_size: H, W to crop and resize to; None: images stay as they are.

    Raises:
      UserError: there is no such feature, or it is not one that can be trained on.
    """
    size = _image_size(image_size)
    keys = dict(features) if isinstance(features, tfds.features.FeaturesDict) else {}
    height, width, channels = _image_shape(keys, name=name, image_key=image_key)
    if label_key == "label" and label_key not in keys:
        label_key = None
    wanted = [image_key] if label_key is None else [image_key, label_key]
    num_classes = 0 if label_key is None else _num_classes(keys, name=name, label_key=label_key)
    return Decoder(
        features=tfds.features.FeaturesDict({key: keys[key] for key in wanted}),
        image_key=image_key,
        label_key=label_key,
        num_classes=num_classes,
        image_shape=(height, width, channels) if size is None else (*size, channels),
        image_size=size,
    )


def _image_size(size: Sequence[int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    if len(tuple(size)) != 2 or not all(isinstance(side, (int, np.integer)) and side >= 1 for side in size):
        raise UserError(f"`image_size` must be (height, width), in pixels. Received {size!r}. Use, say, (64, 64).")
    return int(size[0]), int(size[1])


def _image_shape(keys: dict[str, Any], *, name: str, image_key: str) -> tuple[int | None, ...]:
    """Return H, W, C of the feature, None where undeclared, after checking that it is an image of bytes."""
    feature = keys.get(image_key)
    if feature is None:
        images = [key for key, value in keys.items() if isinstance(value, tfds.features.Image)]
        remedy = f"Bind `image_key` to one of {images}." if images else "Use a data set of images."
        raise UserError(f"The data set `{name}` must have an image named `{image_key}`. It has {[*keys]}. {remedy}")
    shape = tuple(getattr(feature, "shape", ()))
    if getattr(feature, "np_dtype", None) != np.uint8 or len(shape) != 3:
        raise UserError(
            "Images must be uint8[H, W, C], 8 bits a channel. "
            f"Received {feature!r} as `{image_key}` of `{name}`. Convert the data set to 8 bits."
        )
    check_channels(shape[2], name=name)
    return shape


def check_channels(channels: int | None, *, name: str) -> None:
    """Raise UserError unless images have 1, 3 or 4 channels, or the number is not known yet."""
    if channels is not None and channels not in _CHANNELS:
        raise UserError(
            f"Images must have 1, 3 or 4 channels. Received {channels} in the data set `{name}`. "
            "Convert the data set, or use another."
        )


def _num_classes(keys: dict[str, Any], *, name: str, label_key: str) -> int:
    feature = keys.get(label_key)
    count = feature.num_classes if isinstance(feature, tfds.features.ClassLabel) else None
    if not count:
        labels = [key for key, value in keys.items() if isinstance(value, tfds.features.ClassLabel)]
        choice = f"one of {labels}, or to None to train without labels" if labels else "None: it has no class labels"
        raise UserError(
            f"`label_key` must name class labels of known number. Received {label_key!r}, which is "
            f"{feature!r} in the data set `{name}`. Bind it to {choice}."
        )
    return int(count)
