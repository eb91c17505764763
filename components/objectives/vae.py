"""The variational autoencoder: one update, one player.

Reference: Kingma and Welling, 2013, arXiv:1312.6114; weight of the divergence: Higgins et al., 2017 (beta-VAE); free
bits: Kingma et al., 2016, arXiv:1606.04934, appendix C.8, with one group of all latents.
"""

from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf

from components.interfaces import Batch, Losses, Networks, Player, Random, Update, Weight

Likelihood = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]  # (logits float32[B, D], pixels float32[B, D]) -> float32[B]


def negative_elbo(*, likelihood: Likelihood, vae: Player, beta: Weight = 1.0, free_nats: Weight = 0.0) -> list[Update]:
    """Return one update that trains the network "vae" on the negative evidence lower bound.

    Args:
      likelihood: of the pixels given the latents.
      vae: trains the network "vae".
      beta: weight of the divergence; 1 is the bound itself.
      free_nats: divergence per example that costs nothing.
    """
    return [Update(objective=NegativeElbo(likelihood, beta, free_nats), players={"vae": vae})]


@dataclass(frozen=True)
class NegativeElbo:
    """Reconstruction plus beta times divergence, in nats per example."""

    likelihood: Likelihood
    beta: float
    free_nats: float

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"vae": float32[B]} and both terms as metrics."""
        images = 0.5 * (batch["image"] + 1.0)
        noise = random.normal("posterior", [networks["vae"].latent_dim])
        logits, divergence = networks["vae"].logits_and_divergence(images, noise, training=True)
        pixels = tf.reshape(images, [images.shape[0], -1])
        reconstruction = self.likelihood(logits, pixels)
        loss = reconstruction + self.beta * tf.maximum(divergence, self.free_nats)
        return Losses({"vae": loss}, {"vae/reconstruction": reconstruction, "vae/kl_divergence": divergence})
