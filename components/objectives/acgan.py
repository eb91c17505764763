"""The auxiliary classifier GAN: a GAN whose discriminator also names the class.

Reference: Odena et al., 2016, arXiv:1610.09585, equations 2 and 3.
"""

from collections.abc import Mapping
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
)
from components.objectives.gan import accuracy, generate


def simultaneous(
    *, loss: AdversarialLoss, generator: Player, discriminator: Player, class_weight: Weight = 1.0
) -> list[Update]:
    """Return one update in which both players share one set of fakes and one forward pass.

    Args:
      loss: the game, for both players.
      generator: trains the network "generator".
      discriminator: trains the network "discriminator", which must return "class_logits" too.
      class_weight: of the classification losses: the discriminator's on real and on generated images, the generator's
        on generated ones.
    """
    players = {"generator": generator, "discriminator": discriminator}
    return [Update(objective=AuxiliaryClassifierObjective(loss, class_weight), players=players)]


@dataclass(frozen=True)
class AuxiliaryClassifierObjective:
    """Both players' losses on the same real batch and the same fakes, classification included."""

    loss: AdversarialLoss
    class_weight: float

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"generator": float32[B], "discriminator": float32[B]}, in nats where the game's loss is."""
        fakes, labels = generate(networks, random)
        real, fake = _judge(networks, batch["image"], batch["label"]), _judge(networks, fakes, labels)
        losses = self.loss(real["logits"], fake["logits"])
        on_real = _cross_entropy(real["class_logits"], batch["label"])
        on_fake = _cross_entropy(fake["class_logits"], labels)
        metrics = accuracy(real["logits"], fake["logits"]) | {
            "discriminator/class_accuracy_real": _right(real["class_logits"], batch["label"]),
            "discriminator/class_accuracy_fake": _right(fake["class_logits"], labels),
        }
        players = {
            "generator": losses.generator + self.class_weight * on_fake,
            "discriminator": losses.discriminator + self.class_weight * (on_real + on_fake),
        }
        return Losses(players, metrics)


def _judge(networks: Networks, images: tf.Tensor, labels: tf.Tensor) -> Mapping[str, tf.Tensor]:
    outputs = networks["discriminator"]([images, labels], training=True)
    if "class_logits" not in outputs:
        raise UserError(
            f"An auxiliary classifier GAN needs a discriminator that returns 'class_logits'. Received "
            f"{sorted(outputs)}. "
            "Bind `mnist_dcgan.discriminator.auxiliary_classifier = True`, or another network that classifies."
        )
    return outputs


def _cross_entropy(class_logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return float32[B], in nats."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, class_logits)


def _right(class_logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.argmax(class_logits, axis=-1, output_type=tf.int32) == labels, tf.float32)
