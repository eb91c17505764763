"""Generative adversarial networks as lists of updates.

`alternating` is the textbook order, `simultaneous` shares one forward pass between the players. Both are conditional
where the networks are: labels always travel with the images, and a network that has no use for them ignores them.

Reference: Goodfellow et al., 2014, arXiv:1406.2661, algorithm 1; Mirza and Osindero, 2014, arXiv:1411.1784.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import tensorflow as tf

from components.interfaces import (
    AdversarialLoss,
    Batch,
    Losses,
    Networks,
    Penalty,
    Player,
    Positive,
    Random,
    Share,
    Update,
    latent_dim,
)


def alternating(
    *,
    loss: AdversarialLoss,
    generator: Player,
    discriminator: Player,
    discriminator_repeats: Positive = 1,
    first: Literal["discriminator", "generator"] = "discriminator",
    penalties: Sequence[Penalty] = (),
    penalty_every: Positive = 1,
    noisy_labels: Share = 0.0,
    same_latents: bool = False,
) -> list[Update]:
    """Return [discriminator x n, generator], or the generator first: each move draws fakes of its own.

    Args:
      loss: the game, for both players.
      generator: trains the network "generator".
      discriminator: trains the network "discriminator".
      discriminator_repeats: moves of the discriminator in a step, each on a fresh real batch.
      first: "discriminator" or "generator": who moves first in a step.
      penalties: terms of the discriminator's loss.
      penalty_every: above 1 the penalties are a move of their own in every so many steps, their loss scaled by that
        number (Karras et al., 2019, arXiv:1912.04958, section 3.1).
      noisy_labels: share of pairs in which the discriminator is told that real is fake and fake is real.
      same_latents: both players' moves use the same latents and fake labels, instead of fresh ones each.
    """
    is_lazy = bool(penalties) and penalty_every > 1
    judging = Update(
        objective=DiscriminatorObjective(loss, () if is_lazy else tuple(penalties), noisy_labels, same_latents),
        players={"discriminator": discriminator},
        repeats=discriminator_repeats,
    )
    smoothing = Update(
        objective=PenaltyObjective(tuple(penalties), penalty_every),
        players={"discriminator": discriminator},
        every=penalty_every,
        loss_name="lazy_penalty",
    )
    generating = Update(objective=GeneratorObjective(loss, same_latents), players={"generator": generator})
    of_discriminator = [judging, smoothing] if is_lazy else [judging]
    return [generating, *of_discriminator] if first == "generator" else [*of_discriminator, generating]


def simultaneous(
    *,
    loss: AdversarialLoss,
    generator: Player,
    discriminator: Player,
    penalties: Sequence[Penalty] = (),
    noisy_labels: Share = 0.0,
) -> list[Update]:
    """Return one update in which both players share one set of fakes and one forward pass: the fast scheme.

    The generator's gradient passes through the discriminator as it was before the step.

    Args:
      loss: the game, for both players.
      generator: trains the network "generator".
      discriminator: trains the network "discriminator".
      penalties: terms of the discriminator's loss.
      noisy_labels: share of pairs in which the discriminator is told that real is fake and fake is real.
    """
    players = {"generator": generator, "discriminator": discriminator}
    return [Update(objective=SimultaneousObjective(loss, tuple(penalties), noisy_labels), players=players)]


@dataclass(frozen=True)
class DiscriminatorObjective:
    """The discriminator's loss on a real batch and on fakes of uniform labels."""

    loss: AdversarialLoss
    penalties: tuple[Penalty, ...] = ()
    noisy_labels: float = 0.0
    same_latents: bool = False

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"discriminator": float32[B]}; no gradient reaches the generator."""
        fakes, labels = generate(networks, random.shared if self.same_latents else random)
        fakes = tf.stop_gradient(fakes)
        real_logits = judge(networks, batch["image"], batch["label"])
        fake_logits = judge(networks, fakes, labels)
        told = _told(real_logits, fake_logits, self.noisy_labels, random)
        penalty = penalise(self.penalties, networks, batch, fakes, random)
        metrics = accuracy(real_logits, fake_logits) | penalty
        return Losses({"discriminator": self.loss(*told).discriminator + sum(penalty.values())}, metrics)


@dataclass(frozen=True)
class PenaltyObjective:
    """The penalties alone, scaled for a move that is made in every so many steps only."""

    penalties: tuple[Penalty, ...]
    scale: float

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"discriminator": float32[B]}, the sum of the penalties times `scale`."""
        fakes, _ = generate(networks, random)
        penalty = penalise(self.penalties, networks, batch, tf.stop_gradient(fakes), random)
        return Losses({"discriminator": self.scale * sum(penalty.values())}, penalty)


@dataclass(frozen=True)
class GeneratorObjective:
    """The generator's loss on fakes of uniform labels."""

    loss: AdversarialLoss
    same_latents: bool = False

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"generator": float32[B]}; real images are judged only for a loss that compares with them."""
        fakes, labels = generate(networks, random.shared if self.same_latents else random)
        fake_logits = judge(networks, fakes, labels)
        if _generator_sees_real(self.loss):
            real_logits = judge(networks, batch["image"], batch["label"])
        else:
            real_logits = tf.zeros_like(fake_logits)
        deceived = tf.cast(fake_logits > 0, tf.float32)
        return Losses({"generator": self.loss(real_logits, fake_logits).generator}, {"generator/accuracy": deceived})


@dataclass(frozen=True)
class SimultaneousObjective:
    """Both players' losses on the same real batch and the same fakes."""

    loss: AdversarialLoss
    penalties: tuple[Penalty, ...] = ()
    noisy_labels: float = 0.0

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"generator": float32[B], "discriminator": float32[B]}."""
        fakes, labels = generate(networks, random)
        real_logits = judge(networks, batch["image"], batch["label"])
        fake_logits = judge(networks, fakes, labels)
        told = _told(real_logits, fake_logits, self.noisy_labels, random)
        penalty = penalise(self.penalties, networks, batch, tf.stop_gradient(fakes), random)
        losses = {
            "generator": self.loss(real_logits, fake_logits).generator,
            "discriminator": self.loss(*told).discriminator + sum(penalty.values()),
        }
        return Losses(losses, accuracy(real_logits, fake_logits) | penalty)


def generate(networks: Networks, random: Random) -> tuple[tf.Tensor, tf.Tensor]:
    """Return fakes float32[B, H, W, C] in training mode and their labels int32[B], uniform over the classes."""
    generator = networks["generator"]
    latents = random.normal("latents", [latent_dim(generator)])
    labels = random.integers("fake_labels", max(1, networks.spec.num_classes))
    return generator([latents, labels], training=True), labels


def judge(networks: Networks, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the discriminator's logits float32[B] in training mode."""
    return networks["discriminator"]([images, labels], training=True)["logits"]


def penalise(
    penalties: Sequence[Penalty], networks: Networks, batch: Batch, fakes: tf.Tensor, random: Random
) -> dict[str, tf.Tensor]:
    """Return {"discriminator/penalty_i": float32[B]}; images are judged with the labels of the real batch."""

    def critic(images: tf.Tensor) -> tf.Tensor:
        return judge(networks, images, batch["label"])

    return {
        f"discriminator/penalty_{index}": penalty(critic, batch["image"], fakes, random=random)
        for index, penalty in enumerate(penalties)
    }


def _told(
    real_logits: tf.Tensor, fake_logits: tf.Tensor, noisy_labels: float, random: Random
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return real and fake logits, exchanged in a share of the pairs.

    Reference: Chintala et al., 2016, "How to train a GAN", item 6.
    """
    if not noisy_labels:
        return real_logits, fake_logits
    lied = random.uniform("noisy_labels") < noisy_labels
    return tf.where(lied, fake_logits, real_logits), tf.where(lied, real_logits, fake_logits)


def accuracy(real_logits: tf.Tensor, fake_logits: tf.Tensor) -> dict[str, tf.Tensor]:
    """Return whether each logit is on the right side of 0: real, fake, and half the sum of both, float32[B] each."""
    real, fake = tf.cast(real_logits > 0, tf.float32), tf.cast(fake_logits < 0, tf.float32)
    return {
        "discriminator/accuracy": 0.5 * (real + fake),
        "discriminator/accuracy_real": real,
        "discriminator/accuracy_fake": fake,
    }


def _generator_sees_real(loss: AdversarialLoss) -> bool:
    """Say whether the generator's loss depends on real logits, as relativistic ones do, by asking its gradient."""
    with tf.init_scope():
        real, fake = tf.constant([0.1, 0.2]), tf.constant([0.3, 0.4])
        with tf.GradientTape() as tape:
            tape.watch(real)
            generator_loss = loss(real, fake).generator
        return tape.gradient(generator_loss, real) is not None
