"""What samplers share: latents are drawn, classes chosen, and both decoded a chunk at a time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from components import class_mixture
from components.interfaces import DataSpec, UserError
from components.sampler import class_labels
from components.sampler.chunks import in_chunks
from components.sampler.latent_draws import latents_of


class LatentDecoder:
    """Images of a network that takes latents and labels; see `interfaces.Sampler` and `interfaces.Decoder`.

    Args:
      images_of: (latents float32[chunk_size, Z], labels int32[chunk_size]) -> uint8[chunk_size, H, W, C].
      latent_dim: Z.
      spec: of the data.
      chunk_size: images made at once.
    """

    def __init__(
        self,
        images_of: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
        *,
        latent_dim: int,
        spec: DataSpec,
        chunk_size: int,
    ) -> None:
        """Hold the network; nothing is drawn yet."""
        self.latent_dim = latent_dim
        self._spec = spec
        self._chunk_size = chunk_size
        self._images = tf.function(images_of, autograph=False)

        def mixed(latents: tf.Tensor, labels: tf.Tensor, shares: tf.Tensor) -> tf.Tensor:
            with class_mixture.mixing(shares):
                return images_of(latents, labels)

        self._mixed_images = tf.function(mixed, autograph=False)

    def sample(self, num_images: int, *, seed: int, labels: Sequence[int] | None = None) -> np.ndarray:
        """Return uint8[N, H, W, C], decoded from draws of the prior.

        Args:
          num_images: N, at least 1.
          seed: of the latents.
          labels: N classes; None: classes in turn, 0 1 2 ... 0 1 2 ... They play no part where the network is not
            conditional.

        Raises:
          UserError: labels that are not N classes of the data.
        """
        classes = class_labels.chosen(num_images, labels, self._spec)
        return self.decode(self.latents(num_images, seed=seed), classes)

    def latents(self, num_images: int, *, seed: int, truncation: float | None = None) -> np.ndarray:
        """Return float32[N, Z], row i from (seed, i) alone; see `latent_draws.latents_of`."""
        return latents_of(num_images, self.latent_dim, seed=seed, truncation=truncation)

    def decode(self, latents: Any, labels: Any) -> np.ndarray:
        """Return uint8[N, H, W, C].

        Args:
          latents: float32[N, Z].
          labels: N classes, integers; or float32[N, K], the share of every class, each row a sum of 1.

        Raises:
          UserError: latents or labels that do not fit, or a network that cannot mix classes.
        """
        latents, labels = np.asarray(latents, np.float32), np.asarray(labels)
        if latents.ndim != 2 or latents.shape[1] != self.latent_dim:
            raise UserError(f"Latents are float32[N, {self.latent_dim}]. Received {list(latents.shape)}.")
        if labels.ndim == 2:
            return self._decode_mixtures(latents, labels.astype(np.float32))
        classes = class_labels.chosen(len(latents), labels.tolist(), self._spec)
        return in_chunks(self._images, latents, classes.astype(np.int32), chunk_size=self._chunk_size)

    def _decode_mixtures(self, latents: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return uint8[N, H, W, C] of shares float32[N, K]; refused where labels beside them make a change."""
        wanted = (len(latents), max(1, self._spec.num_classes))
        if shares.shape != wanted or (shares < 0).any() or not np.allclose(shares.sum(axis=1), 1.0, atol=1e-4):
            raise UserError(
                f"Shares of classes are float32{list(wanted)}, at least 0, and each row sums to 1. Received "
                f"float32{list(shares.shape)} from {shares.min()} to {shares.max()}."
            )
        labels = shares.argmax(axis=1).astype(np.int32)
        images, others = (
            in_chunks(self._mixed_images, latents, told, shares, chunk_size=self._chunk_size)
            for told in (labels, (labels + 1) % wanted[1])
        )
        if np.abs(images.astype(np.int16) - others).max() > 1:  # beyond a rounding, which a device may do in two ways
            raise UserError(
                "Classes are mixed where they enter a network, through the layers `OneHot`, `ClassEmbedding` and "
                "`ConditionalBatchNorm` of model_zoo, or `class_mixture.rows` in one of your own. This network reads "
                "its labels in another way, so nothing lies between two classes. Change the class halfway "
                "(--class_change=halfway), or use one of those layers."
            )
        return images
