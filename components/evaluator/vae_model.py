"""What a variational autoencoder makes of real images, for metrics of it."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from components import draws
from components.evaluator.metric import Trained
from components.interfaces import UserError

_BATCH = 200


class VAE:
    """The single-graph model "vae" of a run, and the likelihood that it was trained with.

    Raises:
      UserError: the run is not that of such a model.
    """

    def __init__(self, trained: Trained) -> None:
        """Find the parts."""
        self.model: Any = trained.networks.get("vae")
        found = (getattr(update.objective, "likelihood", None) for update in trained.updates)
        self.likelihood: Callable[..., tf.Tensor] | None = next((one for one in found if one is not None), None)
        if not hasattr(self.model, "logits_and_divergence") or self.likelihood is None:
            raise UserError(
                "Bounds, reconstructions and latents are those of a network 'vae' that is trained on "
                f"`vae.negative_elbo`. Received the networks {', '.join(trained.networks)}. Leave them out: "
                "sample_evaluator.SampleEvaluator.model_metrics = []"
            )
        self._trained = trained

    def batches(self, most: int | None = None) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        """Yield images float32[B, H, W, C] in [0, 1] and labels int32[B]."""
        images, labels = self._trained.images[:most], self._trained.labels[:most]
        for start in range(0, len(images), _BATCH):
            rows = slice(start, start + _BATCH)
            yield tf.cast(images[rows], tf.float32) / 255.0, tf.constant(labels[rows])

    def posterior(self, images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return mean and log variance, each float32[B, Z]."""
        return self.model.encoder([images, labels] if self.model.conditional else images, training=False)

    def negative_log_likelihood(self, latents: tf.Tensor, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Return float32[B] in nats, of images given latents float32[B, Z]."""
        logits = self.model.decoder([latents, labels] if self.model.conditional else latents, training=False)
        return self.likelihood(logits, tf.reshape(images, [images.shape[0], -1]))

    def reconstructions(self, images: tf.Tensor, labels: tf.Tensor) -> np.ndarray:
        """Return pixels float64[B, H * W * C] in [0, 1], of the posteriors' means."""
        mean, _ = self.posterior(images, labels)
        logits = self.model.decoder([mean, labels] if self.model.conditional else mean, training=False)
        return tf.sigmoid(logits).numpy().astype(np.float64)


def noise(shape: tuple[int, ...], seed: int, number: int) -> tf.Tensor:
    """Return float32[shape], standard normal, of the draw of a number under a seed."""
    return draws.normal(shape, tf.constant([seed, number], tf.int64))
