"""A transposed convolution of stride 1 by way of a discrete Fourier transform: faster on small maps of a CPU."""

from functools import cached_property

import keras
import numpy as np
import tensorflow as tf

from components.interfaces import UserError


@keras.saving.register_keras_serializable("gantry")
class FourierConv2DTranspose(keras.layers.Conv2DTranspose):
    """keras.layers.Conv2DTranspose of stride 1 and padding "same", computed as a product of spectra.

        y = F^-1 (F x . F k), cut to the map

    with F the transform of a period of L = H + k - 1 - (k - 1) // 2 pixels or one more, an odd number. That is shorter
    than a whole convolution, H + k - 1: the border that "same" cuts off takes up what a period so short would wrap
    around. A map of 7 x 7 and a kernel of 5 x 5 need 41 complex products of a pair of channels, in place of 841 to 1225
    real ones. The three transforms are products with small constant matrices, float32 whatever the precision.

    Its weights are those of Keras's layer, and so is the result, up to rounding (1e-5 of outputs of deviation 1). A GPU
    or a TPU does better with Keras's layer.

    Reference: Mathieu et al., 2013, arXiv:1312.5851, section 2. Deviation: the short period, and matrices in place of
    a fast transform, which on so few pixels is slower.
    """

    def __init__(self, filters: int, kernel_size, *, strides=1, padding="same", dtype="float32", **kwargs) -> None:
        """Make the layer; raises UserError where strides, padding or dilation ask for another convolution."""
        super().__init__(filters, kernel_size, strides=strides, padding=padding, dtype=dtype, **kwargs)
        asked = {"strides": self.strides, "padding": self.padding, "dilation_rate": self.dilation_rate}
        if asked != {"strides": (1, 1), "padding": "same", "dilation_rate": (1, 1)} or self.data_format[-1] != "t":
            raise UserError(
                "A FourierConv2DTranspose has strides 1, padding 'same', no dilation and channels last. Received "
                f"{asked}, data_format {self.data_format!r}. Use keras.layers.Conv2DTranspose."
            )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return float32[B, H, W, filters] of `inputs` float32[B, H, W, C]."""
        spectra = _Spectra(inputs.shape[1:3], self.kernel_size)
        kernel = tf.transpose(self.kernel, [0, 1, 3, 2])  # Keras holds [height, width, filters, C]
        outputs = spectra.to_map(spectra.of_map(inputs), *spectra.of_kernel(kernel))
        if self.use_bias:
            outputs = tf.nn.bias_add(outputs, self.bias)
        return self.activation(outputs)

    def as_plain(self, inputs):
        """Return what Keras's layer of the same weights makes of `inputs`; see `interfaces.Portable`."""
        layer = keras.layers.Conv2DTranspose.from_config(self.get_config())
        outputs = layer(inputs)
        layer.set_weights(self.get_weights())
        return outputs


class _Spectra:
    """The transforms for maps and kernels of one size; F frequencies, half of them, since all else is real.

    A spectrum of a map lies as float32[F, 2 B, C], the rows of its real part above those of its imaginary part: every
    product is then one of plain matrices, and no large tensor is cut or joined.
    """

    def __init__(self, size: tuple[int, int], kernel: tuple[int, int]) -> None:
        self._size, self._kernel = size, kernel
        self._cropped = tuple((k - 1) // 2 for k in kernel)
        self._period = tuple((n + k - 1 - c) | 1 for n, k, c in zip(size, kernel, self._cropped, strict=True))

    def of_map(self, images: tf.Tensor) -> tf.Tensor:
        """Return the spectrum float32[F, 2 B, C] of images float32[B, H, W, C]."""
        pixels = tf.reshape(tf.transpose(images, [1, 2, 0, 3]), [self._size[0] * self._size[1], -1])
        spectrum = _pairs(*self._waves(self._size)) @ pixels
        return tf.reshape(spectrum, [len(self._frequencies), -1, images.shape[-1]])

    def of_kernel(self, kernel: tf.Tensor) -> list[tf.Tensor]:
        """Return real and imaginary part, each float32[F, C, filters], of a kernel float32[h, w, C, filters]."""
        taps = tf.reshape(kernel, [kernel.shape[0] * kernel.shape[1], -1])
        return [tf.reshape(_matrix(wave) @ taps, [-1, *kernel.shape[2:]]) for wave in self._waves(self._kernel)]

    def to_map(self, spectrum: tf.Tensor, real: tf.Tensor, imaginary: tf.Tensor) -> tf.Tensor:
        """Return the images float32[B, H, W, filters] that a map's and a kernel's spectrum multiply to."""
        weights = np.where(np.any(self._frequencies, axis=1), 2.0, 1.0) / (self._period[0] * self._period[1])
        cosine, sine = (wave * weights[:, None] for wave in self._waves(self._size, self._cropped))

        def back(product: tf.Tensor, waves: tf.Tensor) -> tf.Tensor:
            return tf.matmul(waves, tf.reshape(product, [waves.shape[0], -1]), transpose_a=True)

        # (a + ib)(k + il) = (ak - bl) + i(al + bk): with k its parts meet cosine and sine, with l sine and -cosine.
        pixels = back(spectrum @ real, _pairs(cosine, sine)) + back(spectrum @ imaginary, _pairs(sine, -cosine))
        return tf.transpose(tf.reshape(pixels, [*self._size, -1, real.shape[-1]]), [2, 0, 1, 3])

    @cached_property
    def _frequencies(self) -> np.ndarray:
        """int[F, 2]: of each pair that is another's complex conjugate, one."""
        down, across = (each.ravel() for each in np.meshgrid(*map(np.arange, self._period), indexing="ij"))
        half = [period // 2 for period in self._period]
        chosen = ((0 < down) & (down <= half[0])) | ((down == 0) & (across <= half[1]))
        return np.stack([down, across], axis=1)[chosen]

    def _waves(self, size: tuple[int, int], start: tuple[int, ...] = (0, 0)) -> tuple[np.ndarray, np.ndarray]:
        """Return cosine and minus sine float64[F, pixels] of every frequency at every pixel from `start` on."""
        places = [first + np.arange(count) for first, count in zip(start, size, strict=True)]
        down, across = (self._frequencies[:, i, None] * places[i] / self._period[i] for i in (0, 1))
        angles = 2 * np.pi * (down[:, :, None] + across[:, None, :]).reshape(len(self._frequencies), -1)
        return np.cos(angles), -np.sin(angles)


def _pairs(one: np.ndarray, other: np.ndarray) -> tf.Tensor:
    """Return float32[2 F, pixels], the rows of two matrices in turn."""
    return _matrix(np.stack([one, other], axis=1).reshape(-1, one.shape[-1]))


def _matrix(values: np.ndarray) -> tf.Tensor:
    return tf.constant(values, tf.float32)
