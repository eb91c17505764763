"""Self-attention between the places of a map."""

from collections.abc import Sequence

import keras
from keras import layers, ops

from components.interfaces import UserError
from components.model_zoo.spectral_norm import constrained

_REDUCTION = 8  # channels of the map for one of the attention, k of the paper


@keras.saving.register_keras_serializable("gantry")
class Attend(layers.Layer):
    """o_j = sum over i of softmax over i of (f_i . g_j) times h_i, for the places i and j of a map.

    Reference: Zhang et al., 2018, arXiv:1805.08318, equations 1 and 2, without the last product with W_v.
    """

    def call(self, inputs):
        """Return float[B, H, W, C] of keys f, queries g and values h, each float[B, H, W, C]."""
        keys, queries, values = (ops.reshape(x, (-1, x.shape[1] * x.shape[2], x.shape[3])) for x in inputs)
        scores = ops.cast(ops.matmul(queries, ops.transpose(keys, (0, 2, 1))), "float32")
        shares = ops.cast(ops.softmax(scores, axis=-1), values.dtype)
        return ops.reshape(ops.matmul(shares, values), (-1, *inputs[2].shape[1:]))

    def compute_output_shape(self, input_shape):
        """Return the values' shape."""
        return input_shape[2]


@keras.saving.register_keras_serializable("gantry")
class GatedSum(layers.Layer):
    """x + gamma * o with a learnt number gamma, 0 at first.

    Reference: Zhang et al., 2018, arXiv:1805.08318, equation 3.
    """

    def build(self, input_shape) -> None:
        """Make gamma."""
        self.gamma = self.add_weight(shape=(), initializer="zeros", name="gamma")

    def call(self, inputs):
        """Return float[B, H, W, C] of [x, o], both float[B, H, W, C]."""
        x, addition = inputs
        return x + self.gamma * addition

    def as_plain(self, inputs):
        """Return the same with gamma as a constant; see `interfaces.Portable`."""
        x, addition = inputs
        return x + float(self.gamma) * addition

    def compute_output_shape(self, input_shape):
        """Return the shape of x."""
        return input_shape[0]


def self_attention(x: keras.KerasTensor, *, spectral_norm: bool = False) -> keras.KerasTensor:
    """Return maps float[B, H, W, C] in which each place has looked at all others; at first they are `x` itself.

    Memory grows with (H * W)^2.

    Args:
      x: float[B, H, W, C].
      spectral_norm: whether the four 1x1 convolutions are spectrally normalised.

    Reference: Zhang et al., 2018, arXiv:1805.08318, section 3 and figure 2.
    """
    channels = x.shape[-1]
    narrow = max(1, channels // _REDUCTION)
    keys, queries, values = (constrained(layers.Conv2D(narrow, 1, use_bias=False), spectral_norm)(x) for _ in range(3))
    attended = constrained(layers.Conv2D(channels, 1, use_bias=False), spectral_norm)(Attend()([keys, queries, values]))
    return GatedSum()([x, attended])


class AttentionPlan:
    """At which maps of a network self-attention stands; remembers the maps that it has seen.

    Args:
      heights: H of those maps.
      spectral_norm: of the attention's convolutions.
      network: its name, for the refusal.
    """

    def __init__(self, heights: Sequence[int], *, spectral_norm: bool, network: str) -> None:
        """Hold the plan."""
        self._heights, self._spectral_norm, self._network = tuple(heights), spectral_norm, network
        self._seen: list[int] = []

    def __call__(self, x: keras.KerasTensor) -> keras.KerasTensor:
        """Return float[B, H, W, C] of float[B, H, W, C]: `x` itself where nothing is planned for H."""
        height = x.shape[1]
        self._seen.append(height)
        return self_attention(x, spectral_norm=self._spectral_norm) if height in self._heights else x

    def require_complete(self) -> None:
        """Raise UserError where a height was planned that no map had."""
        if missed := sorted(set(self._heights) - set(self._seen)):
            raise UserError(
                f"`attention_at` names heights of maps of the network. Received {missed[0]} for `{self._network}`, "
                f"whose maps have the heights {', '.join(map(str, dict.fromkeys(self._seen)))}. Use some of them."
            )
