"""The one place where images become the input of a feature extractor: one check, one resize, one change of range."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from components.interfaces import UserError

Resize = Literal["bicubic", "bilinear"]


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """uint8[N, H, W, C] -> float32[N, height, width, channels] in [low, high].

    A resize is antialiased, with pixel centres at halves, and is left out where the size is right; bicubic is that of
    Keys with a = -0.5, as Pillow's (Parmar et al., 2022, arXiv:2104.11222). What it overshoots is clipped. Values stay
    unrounded. One channel is repeated where three are wanted.

    Attributes:
      size: (height, width).
      channels: 1, 3 or 4.
      low, high: what the bytes 0 and 255 become.
      resize: the filter.
    """

    size: tuple[int, int]
    channels: int
    low: float
    high: float
    resize: Resize = "bicubic"

    @property
    def description(self) -> str:
        """One line for the certificate."""
        height, width = self.size
        return f"antialiased {self.resize} to {height} x {width} where the size differs, then [{self.low}, {self.high}]"

    def require(self, images: Any) -> None:
        """Raise UserError for anything but uint8[N, H, W, C] of channels that fit."""
        found = np.asarray(images)
        channels = (1, 3) if self.channels == 3 else (self.channels,)
        if found.dtype != np.uint8 or found.ndim != 4 or found.shape[-1] not in channels or not found.size:
            wanted = " or ".join(f"uint8[N, H, W, {number}]" for number in channels)
            scale = f" in [{found.min():g}, {found.max():g}]" if found.size and found.dtype.kind in "fiu" else ""
            raise UserError(
                f"Images to be scored must be {wanted}, from 0 to 255. Received "
                f"{found.dtype}{list(found.shape)}{scale}. "
                "Convert images in [-1, 1] by round(127.5 * image + 127.5); bind an extractor for their channels."
            )

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        """Return float32[N, height, width, channels] of images uint8[N, H, W, C] that `require` lets pass."""
        x = tf.cast(images, tf.float32)
        if tuple(x.shape[1:3]) != self.size:
            x = tf.clip_by_value(tf.image.resize(x, self.size, method=self.resize, antialias=True), 0.0, 255.0)
        if x.shape[-1] != self.channels:
            x = tf.repeat(x, self.channels, axis=-1)
        return x * ((self.high - self.low) / 255.0) + self.low
