"""The variational autoencoder: one update, one player, conditional where its network is.

Reference: Kingma and Welling, 2013, arXiv:1312.6114; conditional: Kingma et al., 2014, arXiv:1406.5298, equation 6,
without the constant log p(label).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import tensorflow as tf
from annotated_types import Ge

from components.interfaces import Batch, Losses, Networks, Player, Random, Update, UserError, Weight

Likelihood = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]  # (logits float32[B, D], pixels float32[B, D]) -> float32[B]


def negative_elbo(
    *,
    likelihood: Likelihood,
    vae: Player,
    beta: Weight = 1.0,
    free_nats: Weight = 0.0,
    warm_up_steps: Annotated[int, Ge(0)] = 0,
) -> list[Update]:
    """Return one update that trains the network "vae" on the negative evidence lower bound.

    reconstruction + weight * max(divergence, free_nats), with weight = beta * min(1, step / warm_up_steps).

    Args:
      likelihood: of the pixels given the latents.
      vae: trains the network "vae".
      beta: weight of the divergence; 1 is the bound itself, more asks for latents that are used sparingly (Higgins et
        al., 2017, ICLR, equation 4).
      free_nats: divergence per example, in nats, that costs nothing (free bits: Kingma et al., 2016, arXiv:1606.04934,
        appendix C.8, with one group of all latents, and each example by itself).
      warm_up_steps: the weight grows linearly from 0 at step 0 to beta at this step, so that the latents are of use
        before they cost (Bowman et al., 2015, arXiv:1511.06349, section 3.1; linear: Sonderby et al., 2016,
        arXiv:1602.02282). 0: it is beta from the start.
    """
    return [Update(objective=NegativeElbo(likelihood, beta, free_nats, warm_up_steps), players={"vae": vae})]


@dataclass(frozen=True)
class NegativeElbo:
    """Reconstruction plus weighted divergence, in nats per example; see `negative_elbo`."""

    likelihood: Likelihood
    beta: float = 1.0
    free_nats: float = 0.0
    warm_up_steps: int = 0

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"vae": float32[B]}, both terms without their weight, and the weight while it may change."""
        model = networks["vae"]
        if not hasattr(model, "logits_and_divergence"):
            raise UserError(
                f"A variational autoencoder has an encoder and a decoder. Received the network {model.name!r}, which "
                "is none. Bind one of vae_networks as `Experiment.networks['vae']`."
            )
        images = 0.5 * (batch["image"] + 1.0)
        noise = random.normal("posterior", [model.latent_dim])
        labels = batch["label"] if model.conditional else None
        logits, divergence = model.logits_and_divergence(images, noise, labels, training=True)
        reconstruction = self.likelihood(logits, tf.reshape(images, [images.shape[0], -1]))
        weight = self.weight(random.step)
        loss = reconstruction + weight * tf.maximum(divergence, self.free_nats)
        metrics = {"vae/reconstruction": reconstruction, "vae/kl_divergence": divergence}
        if self.warm_up_steps:
            metrics["vae/beta"] = tf.fill(tf.shape(divergence), weight)
        return Losses({"vae": loss}, metrics)

    def weight(self, step: tf.Tensor) -> tf.Tensor:
        """Return the weight of the divergence, float32[], at `step` int64[]."""
        if not self.warm_up_steps:
            return tf.constant(self.beta, tf.float32)
        return self.beta * tf.minimum(1.0, tf.cast(step, tf.float32) / self.warm_up_steps)
