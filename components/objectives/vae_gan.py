"""VAE-GAN: an autoencoder whose error is measured in the features of a discriminator, which a GAN trains.

Three players share one forward pass: "encoder", "generator" (the decoder), "discriminator".

Reference: Larsen et al., 2015, arXiv:1512.09300, algorithm 1 and equations 7 to 9.
"""

from dataclasses import dataclass

import tensorflow as tf

from components.interfaces import (
    AdversarialLoss,
    Batch,
    Losses,
    Networks,
    Player,
    Random,
    Update,
    UserError,
    Weight,
    latent_dim,
)
from components.objectives.judging import Judge, accuracy, generate, play


def simultaneous(
    *,
    loss: AdversarialLoss,
    encoder: Player,
    generator: Player,
    discriminator: Player,
    beta: Weight = 1.0,
    reconstruction_weight: Weight = 0.01,
) -> list[Update]:
    """Return one update of all three players.

    Args:
      loss: the game between generator and discriminator.
      encoder: trains the network "encoder": ([images, labels]) -> {"mean": float32[B, Z], "log_variance":
        float32[B, Z]}, on the divergence and the reconstruction.
      generator: trains the network "generator", on the game and the reconstruction.
      discriminator: trains the network "discriminator", which must return "features" float32[B, F] too, on the game.
      beta: weight of the divergence.
      reconstruction_weight: of the reconstruction in the generator's loss, gamma of the paper.

    Deviation: real images count twice in the game, once against reconstructions and once against draws from the prior,
    and half of the sum is taken, so that any adversarial loss fits.
    """
    players = {"encoder": encoder, "generator": generator, "discriminator": discriminator}
    return [Update(objective=VaeGanObjective(loss, beta, reconstruction_weight), players=players)]


@dataclass(frozen=True)
class VaeGanObjective:
    """The losses of encoder, generator and discriminator on the same real batch."""

    loss: AdversarialLoss
    beta: float
    reconstruction_weight: float

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"encoder": float32[B], "generator": float32[B], "discriminator": float32[B]}, in nats."""
        images, labels = batch["image"], batch["label"]
        posterior = networks["encoder"]([images, labels], training=True)
        mean, log_variance = posterior["mean"], posterior["log_variance"]
        _require_same_latents(mean.shape[-1], latent_dim(networks["generator"]))
        noise = random.normal("posterior", mean.shape[1:])
        decoded = networks["generator"]([mean + tf.exp(0.5 * log_variance) * noise, labels], training=True)
        dreams, dream_labels = generate(networks, random)
        of_dreams = Judge(networks, batch, dreams, dream_labels, (), random)
        of_decoded = Judge(networks, batch, decoded, labels, (), random)
        real_logits = of_dreams.real_logits
        games = [play(self.loss, real_logits, judge.fake_logits) for judge in (of_dreams, of_decoded)]
        error = _features(of_dreams.real) - _features(of_decoded.fake)
        reconstruction = 0.5 * tf.reduce_sum(tf.square(error), axis=-1)
        divergence = -0.5 * tf.reduce_sum(1.0 + log_variance - mean**2 - tf.exp(log_variance), axis=-1)
        players = {
            "encoder": self.beta * divergence + reconstruction,
            "generator": 0.5 * (games[0].generator + games[1].generator) + self.reconstruction_weight * reconstruction,
            "discriminator": 0.5 * (games[0].discriminator + games[1].discriminator),
        }
        terms = {"encoder/kl_divergence": divergence, "encoder/feature_reconstruction": reconstruction}
        return Losses(players, accuracy(real_logits, of_dreams.fake_logits) | terms)


def _require_same_latents(encoded: int, decoded: int) -> None:
    if encoded != decoded:
        raise UserError(
            f"The generator of a VAE-GAN decodes what the encoder makes. Received {encoded} latents of the encoder and "
            f"{decoded} of the generator. Bind both to one number, such as `dcgan.encoder.latent_dim` and "
            "`dcgan.generator.latent_dim` to %LATENT_DIM."
        )


def _features(outputs) -> tf.Tensor:
    if "features" not in outputs:
        raise UserError(
            f"A VAE-GAN compares images in the discriminator's features. Received a discriminator that returns "
            f"{sorted(outputs)}. Bind one that returns 'features', such as dcgan.discriminator."
        )
    return outputs["features"]
