"""Bounds, reconstructions and latents of variational autoencoders, on real images; in nats per example."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import tensorflow as tf
from annotated_types import Gt

from components.evaluator.metric import Better, Trained
from components.evaluator.vae_model import VAE, noise
from components.interfaces import Positive


@dataclass(frozen=True, kw_only=True)
class NegativeElbo:
    """`negative_elbo` and its terms `reconstruction` and `kl_divergence`, in nats per example.

    Of one draw of the latents for an image.

    The bound itself, whatever weight or free nats the training gave the divergence, under the likelihood of the
    training.

    Reference: Kingma and Welling, 2013, arXiv:1312.6114, equation 10.
    """

    better: ClassVar[Mapping[str, Better]] = {"negative_elbo": "lower", "reconstruction": None, "kl_divergence": None}

    def measure_model(self, trained: Trained, seed: int) -> dict[str, float]:
        """Return the means over the images."""
        vae = VAE(trained)
        terms: list[np.ndarray] = []
        for number, (images, labels) in enumerate(vae.batches()):
            mean, log_variance = vae.posterior(images, labels)
            latents = mean + tf.exp(0.5 * log_variance) * noise(tuple(mean.shape), seed, number)
            mean, log_variance = (part.numpy().astype(np.float64) for part in (mean, log_variance))
            divergence = -0.5 * (1.0 + log_variance - mean**2 - np.exp(log_variance)).sum(axis=1)
            terms.append(np.stack([vae.negative_log_likelihood(latents, images, labels).numpy(), divergence]))
        reconstruction, divergence = (float(mean) for mean in np.concatenate(terms, axis=1).mean(axis=1))
        return {
            "negative_elbo": reconstruction + divergence,
            "reconstruction": reconstruction,
            "kl_divergence": divergence,
        }


@dataclass(frozen=True, kw_only=True)
class ImportanceWeightedBound:
    """`importance_weighted_bound`: -log of the mean importance weight of several draws, in nats per example.

    -log 1/k sum_i p(x, z_i) / q(z_i | x): an upper bound on the negative log-likelihood that tightens with k, and
    is the negative ELBO for k = 1.

    Attributes:
      num_samples: k draws for an image.
      most: the first so many images are used.

    Reference: Burda et al., 2016, arXiv:1509.00519, equation 8.
    """

    better: ClassVar[Mapping[str, Better]] = {"importance_weighted_bound": "lower"}
    num_samples: Positive = 50
    most: Positive = 1000

    def measure_model(self, trained: Trained, seed: int) -> dict[str, float]:
        """Return the mean over the images."""
        vae = VAE(trained)

        @tf.function(autograph=False)
        def log_weight(
            drawn: tf.Tensor, mean: tf.Tensor, log_variance: tf.Tensor, images: tf.Tensor, labels: tf.Tensor
        ) -> tf.Tensor:
            latents = mean + tf.exp(0.5 * log_variance) * drawn
            # log p(z) - log q(z | x); the constants of the two normal densities cancel.
            prior = 0.5 * tf.reduce_sum(log_variance + drawn**2 - latents**2, axis=1)
            return prior - vae.negative_log_likelihood(latents, images, labels)

        bounds: list[np.ndarray] = []
        for number, (images, labels) in enumerate(vae.batches(self.most)):
            mean, log_variance = vae.posterior(images, labels)
            draws = (
                noise(tuple(mean.shape), seed, number * self.num_samples + draw) for draw in range(self.num_samples)
            )
            log_weights = [
                log_weight(drawn, mean, log_variance, images, labels).numpy().astype(np.float64) for drawn in draws
            ]
            highest = np.max(log_weights, axis=0)
            bounds.append(-(highest + np.log(np.exp(np.stack(log_weights) - highest).mean(axis=0))))
        return {"importance_weighted_bound": float(np.concatenate(bounds).mean())}


@dataclass(frozen=True, kw_only=True)
class ReconstructionError:
    """`reconstruction_error`: mean squared error a pixel and channel, of pixels in [0, 1].

    Reconstructions are of the posteriors' means.
    """

    better: ClassVar[Mapping[str, Better]] = {"reconstruction_error": "lower"}

    def measure_model(self, trained: Trained, seed: int) -> dict[str, float]:
        """Return the mean over the images; nothing is drawn."""
        vae = VAE(trained)
        errors = [
            ((vae.reconstructions(images, labels) - images.numpy().reshape(len(images), -1)) ** 2).mean(axis=1)
            for images, labels in vae.batches()
        ]
        return {"reconstruction_error": float(np.concatenate(errors).mean())}


@dataclass(frozen=True, kw_only=True)
class ActiveUnits:
    """`active_units`: how many latents' posterior means vary over the images; the rest tell nothing.

    Attributes:
      threshold: a unit is active where the variance of its mean is above it.

    Reference: Burda et al., 2016, arXiv:1509.00519, section 5.
    """

    better: ClassVar[Mapping[str, Better]] = {"active_units": "higher"}
    threshold: Annotated[float, Gt(0)] = 0.01

    def measure_model(self, trained: Trained, seed: int) -> dict[str, float]:
        """Return the count; nothing is drawn."""
        vae = VAE(trained)
        means = np.concatenate([vae.posterior(*batch)[0].numpy() for batch in vae.batches()]).astype(np.float64)
        return {"active_units": float((means.var(axis=0) > self.threshold).sum())}
