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
    Augmentation,
    Batch,
    Losses,
    Networks,
    Penalty,
    Player,
    Positive,
    Random,
    Share,
    Update,
    UserError,
    Weight,
)
from components.objectives.classification import classification, names_classes
from components.objectives.judging import Judge, accuracy, generate, generator_loss, penalise, play, told


def alternating(
    *,
    loss: AdversarialLoss,
    generator: Player,
    discriminator: Player,
    discriminator_repeats: Positive = 1,
    first: Literal["discriminator", "generator"] = "discriminator",
    penalties: Sequence[Penalty] = (),
    penalty_every: Positive = 1,
    augmentations: Sequence[Augmentation] = (),
    class_weight: Weight = 0.0,
    noisy_labels: Share = 0.0,
    same_latents: bool = False,
    accumulate: Positive = 1,
) -> list[Update]:
    """Return [discriminator x n, generator], or the generator first: each move draws fakes of its own.

    Args:
      loss: the game, for both players.
      generator: trains the network "generator".
      discriminator: trains the network "discriminator".
      discriminator_repeats: moves of the discriminator in a step, each on a fresh real batch.
      first: "discriminator" or "generator": who moves first in a step.
      penalties: terms of the discriminator's loss.
      penalty_every: above 1 the penalties are a move of their own in every so many steps, their loss scaled by the
        number of the discriminator's other moves in between (Karras et al., 2019, arXiv:1912.04958, section 3.1).
      augmentations: change every image that the discriminator sees, in both players' moves.
      class_weight: of the auxiliary classifier's losses, for a discriminator that has one: the discriminator's on real
        and on generated images, the generator's on generated ones (Odena et al., 2016, arXiv:1610.09585).
      noisy_labels: share of pairs in which the discriminator is told that real is fake and fake is real.
      same_latents: both players' moves use the same latents and fake labels, instead of fresh ones each.
      accumulate: fresh batches whose gradients are averaged for one move, of either player.
    """
    _require_penalties(penalties, penalty_every)
    changes, is_lazy = tuple(augmentations), penalty_every > 1
    judging = Update(
        objective=DiscriminatorObjective(
            loss, () if is_lazy else tuple(penalties), changes, class_weight, noisy_labels, same_latents
        ),
        players={"discriminator": discriminator},
        repeats=discriminator_repeats,
        accumulate=accumulate,
    )
    smoothing = Update(
        objective=PenaltyObjective(tuple(penalties), penalty_every * discriminator_repeats, changes),
        players={"discriminator": discriminator},
        every=penalty_every,
        accumulate=accumulate,
        loss_name="lazy_penalty",
    )
    generating = Update(
        objective=GeneratorObjective(loss, augmentations=changes, class_weight=class_weight, same_latents=same_latents),
        players={"generator": generator},
        accumulate=accumulate,
    )
    of_discriminator = [judging, smoothing] if is_lazy else [judging]
    return [generating, *of_discriminator] if first == "generator" else [*of_discriminator, generating]


def _require_penalties(penalties: Sequence[Penalty], penalty_every: int) -> None:
    if penalty_every > 1 and not penalties:
        raise UserError(
            f"`gan.alternating.penalty_every` is how often penalties are taken. Received {penalty_every} without any. "
            "Bind `gan.alternating.penalties` too, or leave it out."
        )


def simultaneous(
    *,
    loss: AdversarialLoss,
    generator: Player,
    discriminator: Player,
    penalties: Sequence[Penalty] = (),
    augmentations: Sequence[Augmentation] = (),
    class_weight: Weight = 0.0,
    noisy_labels: Share = 0.0,
    accumulate: Positive = 1,
) -> list[Update]:
    """Return one update in which both players share one set of fakes and one forward pass: the fast scheme.

    The generator's gradient passes through the discriminator as it was before the step.

    Args:
      loss: the game, for both players.
      generator: trains the network "generator".
      discriminator: trains the network "discriminator".
      penalties: terms of the discriminator's loss.
      augmentations: change every image that the discriminator sees.
      class_weight: of the auxiliary classifier's losses, for a discriminator that has one: the discriminator's on real
        and on generated images, the generator's on generated ones (Odena et al., 2016, arXiv:1610.09585).
      noisy_labels: share of pairs in which the discriminator is told that real is fake and fake is real.
      accumulate: fresh batches whose gradients are averaged for one move.
    """
    objective = SimultaneousObjective(loss, tuple(penalties), tuple(augmentations), class_weight, noisy_labels)
    players = {"generator": generator, "discriminator": discriminator}
    return [Update(objective=objective, players=players, accumulate=accumulate)]


@dataclass(frozen=True)
class DiscriminatorObjective:
    """The discriminator's loss on a real batch and on fakes of uniform labels."""

    loss: AdversarialLoss
    penalties: tuple[Penalty, ...] = ()
    augmentations: tuple[Augmentation, ...] = ()
    class_weight: float = 0.0
    noisy_labels: float = 0.0
    same_latents: bool = False

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"discriminator": float32[B]}; no gradient reaches the generator."""
        fakes, labels = generate(networks, random.shared if self.same_latents else random)
        judge = Judge(networks, batch, tf.stop_gradient(fakes), labels, self.augmentations, random)
        logits = judge.real_logits, judge.fake_logits
        penalty = penalise(self.penalties, judge, random)
        loss = play(self.loss, *told(*logits, self.noisy_labels, random)).discriminator + sum(penalty.values())
        metrics = accuracy(*logits) | penalty
        if names_classes(judge, self.class_weight):
            naming, accuracies = classification(judge, of_real=True)
            loss, metrics = loss + self.class_weight * naming, metrics | accuracies
        return Losses({"discriminator": loss}, metrics)


@dataclass(frozen=True)
class PenaltyObjective:
    """The penalties alone, scaled for a move that is made in every so many steps only."""

    penalties: tuple[Penalty, ...]
    scale: float
    augmentations: tuple[Augmentation, ...] = ()

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"discriminator": float32[B]}, the sum of the penalties times `scale`."""
        fakes, labels = generate(networks, random)
        judge = Judge(networks, batch, tf.stop_gradient(fakes), labels, self.augmentations, random)
        penalty = penalise(self.penalties, judge, random)
        return Losses({"discriminator": self.scale * sum(penalty.values())}, penalty)


@dataclass(frozen=True)
class GeneratorObjective:
    """The generator's loss on fakes of uniform labels."""

    loss: AdversarialLoss
    augmentations: tuple[Augmentation, ...] = ()
    class_weight: float = 0.0
    same_latents: bool = False

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"generator": float32[B]}; real images are judged only for a loss that compares with them."""
        fakes, labels = generate(networks, random.shared if self.same_latents else random)
        judge = Judge(networks, batch, fakes, labels, self.augmentations, random)
        loss = generator_loss(self.loss, judge)
        metrics = {"generator/accuracy": tf.cast(judge.fake_logits > 0, tf.float32)}
        if names_classes(judge, self.class_weight):
            naming, accuracies = classification(judge, of_real=False)
            loss, metrics = loss + self.class_weight * naming, metrics | accuracies
        return Losses({"generator": loss}, metrics)


@dataclass(frozen=True)
class SimultaneousObjective:
    """Both players' losses on the same real batch and the same fakes."""

    loss: AdversarialLoss
    penalties: tuple[Penalty, ...] = ()
    augmentations: tuple[Augmentation, ...] = ()
    class_weight: float = 0.0
    noisy_labels: float = 0.0

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"generator": float32[B], "discriminator": float32[B]}."""
        fakes, labels = generate(networks, random)
        judge = Judge(networks, batch, fakes, labels, self.augmentations, random)
        logits = judge.real_logits, judge.fake_logits
        penalty = penalise(self.penalties, judge.of_discriminator, random)
        of_generator = play(self.loss, *logits).generator
        of_discriminator = play(self.loss, *told(*logits, self.noisy_labels, random)).discriminator + sum(
            penalty.values()
        )
        metrics = accuracy(*logits) | {"generator/accuracy": tf.cast(logits[1] > 0, tf.float32)} | penalty
        if names_classes(judge, self.class_weight):
            naming, accuracies = classification(judge, of_real=True)
            on_fake, of_fakes = classification(judge, of_real=False)
            of_generator += self.class_weight * on_fake
            of_discriminator += self.class_weight * naming
            metrics |= accuracies | of_fakes
        return Losses({"generator": of_generator, "discriminator": of_discriminator}, metrics)
