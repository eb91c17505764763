"""Generative adversarial networks as lists of updates.

`alternating` is the textbook order, `simultaneous` shares one forward pass between the players. Both are conditional
where the networks are: labels always travel with the images, and a network that has no use for them ignores them.

Reference: Goodfellow et al., 2014, arXiv:1406.2661, algorithm 1; Mirza and Osindero, 2014, arXiv:1411.1784.
"""

from dataclasses import dataclass
from typing import Literal

import tensorflow as tf

from components.interfaces import (
    AdversarialLoss,
    Batch,
    Losses,
    Networks,
    Player,
    Positive,
    Random,
    Update,
    UserError,
    latent_dim,
)


def alternating(
    *,
    loss: AdversarialLoss,
    generator: Player,
    discriminator: Player,
    discriminator_repeats: Positive = 1,
    first: Literal["discriminator", "generator"] = "discriminator",
) -> list[Update]:
    """Return [discriminator x n, generator], or the generator first: each move draws fakes of its own.

    Args:
      loss: the game, for both players.
      generator: trains the network "generator".
      discriminator: trains the network "discriminator".
      discriminator_repeats: moves of the discriminator in a step, each on a fresh real batch.
      first: "discriminator" or "generator": who moves first in a step.
    """
    updates = {
        "discriminator": Update(
            objective=DiscriminatorObjective(loss),
            players={"discriminator": discriminator},
            repeats=discriminator_repeats,
        ),
        "generator": Update(objective=GeneratorObjective(loss), players={"generator": generator}),
    }
    if first not in updates:
        raise UserError(f"`gan.alternating.first` must be 'discriminator' or 'generator'. Received {first!r}.")
    second = "generator" if first == "discriminator" else "discriminator"
    return [updates[first], updates[second]]


def simultaneous(*, loss: AdversarialLoss, generator: Player, discriminator: Player) -> list[Update]:
    """Return one update in which both players share one set of fakes and one forward pass: the fast scheme.

    The generator's gradient passes through the discriminator as it was before the step.

    Args:
      loss: the game, for both players.
      generator: trains the network "generator".
      discriminator: trains the network "discriminator".
    """
    players = {"generator": generator, "discriminator": discriminator}
    return [Update(objective=SimultaneousObjective(loss), players=players)]


@dataclass(frozen=True)
class DiscriminatorObjective:
    """The discriminator's loss on a real batch and on fakes of uniform labels."""

    loss: AdversarialLoss

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"discriminator": float32[B]}; no gradient reaches the generator."""
        fakes, labels = generate(networks, random)
        real_logits = judge(networks, batch["image"], batch["label"])
        fake_logits = judge(networks, tf.stop_gradient(fakes), labels)
        losses = self.loss(real_logits, fake_logits)
        return Losses({"discriminator": losses.discriminator}, _accuracy(real_logits, fake_logits))


@dataclass(frozen=True)
class GeneratorObjective:
    """The generator's loss on fakes of uniform labels."""

    loss: AdversarialLoss

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"generator": float32[B]}; real images are judged only for a loss that compares with them."""
        fakes, labels = generate(networks, random)
        fake_logits = judge(networks, fakes, labels)
        if _generator_sees_real(self.loss):
            real_logits = judge(networks, batch["image"], batch["label"])
        else:
            real_logits = tf.zeros_like(fake_logits)
        return Losses({"generator": self.loss(real_logits, fake_logits).generator})


@dataclass(frozen=True)
class SimultaneousObjective:
    """Both players' losses on the same real batch and the same fakes."""

    loss: AdversarialLoss

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"generator": float32[B], "discriminator": float32[B]}."""
        fakes, labels = generate(networks, random)
        real_logits = judge(networks, batch["image"], batch["label"])
        fake_logits = judge(networks, fakes, labels)
        return Losses(self.loss(real_logits, fake_logits)._asdict(), _accuracy(real_logits, fake_logits))


def generate(networks: Networks, random: Random) -> tuple[tf.Tensor, tf.Tensor]:
    """Return fakes float32[B, H, W, C] in training mode and their labels int32[B], uniform over the classes."""
    generator = networks["generator"]
    latents = random.normal("latents", [latent_dim(generator)])
    labels = random.integers("fake_labels", max(1, networks.spec.num_classes))
    return generator([latents, labels], training=True), labels


def judge(networks: Networks, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the discriminator's logits float32[B] in training mode."""
    return networks["discriminator"]([images, labels], training=True)["logits"]


def _accuracy(real_logits: tf.Tensor, fake_logits: tf.Tensor) -> dict[str, tf.Tensor]:
    """Return the share of logits on the right side of 0, real and fake apart."""
    return {
        "discriminator/accuracy_real": tf.cast(real_logits > 0, tf.float32),
        "discriminator/accuracy_fake": tf.cast(fake_logits < 0, tf.float32),
    }


def _generator_sees_real(loss: AdversarialLoss) -> bool:
    """Say whether the generator's loss depends on real logits, as relativistic ones do, by asking its gradient."""
    with tf.init_scope():
        real, fake = tf.constant([0.1, 0.2]), tf.constant([0.3, 0.4])
        with tf.GradientTape() as tape:
            tape.watch(real)
            generator_loss = loss(real, fake).generator
        return tape.gradient(generator_loss, real) is not None
