"""InfoGAN: a GAN whose generator is asked to keep what it was told, so that codes come to mean something.

Beside the players of a GAN there is a third one, "recognition", which reads the codes from an image; the generator and
it move together on a bound of the mutual information. The labels of the data are not used.

Reference: Chen et al., 2016, arXiv:1606.03657, equations 5 and 6.
"""

from dataclasses import dataclass

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
    Weight,
    latent_dim,
)
from components.objectives.gan import DiscriminatorObjective
from components.objectives.judging import Judge, generate, generator_loss


def alternating(
    *,
    loss: AdversarialLoss,
    generator: Player,
    discriminator: Player,
    recognition: Player,
    discriminator_repeats: Positive = 1,
    information_weight: Weight = 1.0,
) -> list[Update]:
    """Return [discriminator x n, generator and recognition together].

    The categorical code is the generator's label, uniform over the classes; the continuous codes are the first latents,
    as many as the network "recognition" reads, standard normal as all latents are.

    Args:
      loss: the game, for generator and discriminator.
      generator: trains the network "generator", which looks at its labels.
      discriminator: trains the network "discriminator", which must not look at labels.
      recognition: trains the network "recognition": ([images, labels]) -> {"class_logits": float32[B, K], "code_mean":
        float32[B, codes]}, the mean of a normal distribution of unit variance.
      discriminator_repeats: moves of the discriminator in a step, each on a fresh real batch.
      information_weight: lambda of the paper.

    Deviation: in the paper the recognition network shares all layers but the last with the discriminator, and the
    continuous codes are uniform.
    """
    judging = Update(
        objective=DiscriminatorObjective(loss),
        players={"discriminator": discriminator},
        repeats=discriminator_repeats,
    )
    informing = Update(
        objective=InformedGenerator(loss, information_weight),
        players={"generator": generator, "recognition": recognition},
    )
    return [judging, informing]


@dataclass(frozen=True)
class InformedGenerator:
    """The generator's loss and what is lost of the codes, in nats up to a constant."""

    loss: AdversarialLoss
    information_weight: float

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return {"generator": float32[B], "recognition": float32[B]}."""
        fakes, labels = generate(networks, random)
        judge = Judge(networks, batch, fakes, labels, (), random)
        adversarial = generator_loss(self.loss, judge)
        read = networks["recognition"]([fakes, labels], training=True)
        latents = random.normal("latents", [latent_dim(networks["generator"])])  # those that `generate` drew
        of_class = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, read["class_logits"])
        of_codes = 0.5 * tf.reduce_sum(tf.square(_codes(latents, read["code_mean"]) - read["code_mean"]), axis=-1)
        lost = of_class + of_codes
        named = tf.argmax(read["class_logits"], axis=-1, output_type=tf.int32) == labels
        metrics = {
            "recognition/class_accuracy": tf.cast(named, tf.float32),
            "recognition/code_loss": of_codes,
            "generator/accuracy": tf.cast(judge.fake_logits > 0, tf.float32),
        }
        return Losses({"generator": adversarial + self.information_weight * lost, "recognition": lost}, metrics)


def _codes(latents: tf.Tensor, mean: tf.Tensor) -> tf.Tensor:
    """Return the latents that are codes, float32[B, codes]."""
    count = mean.shape[-1]
    if count > latents.shape[-1]:
        raise UserError(
            f"The continuous codes are the generator's first latents. Received {count} codes of the network "
            f"'recognition' for {latents.shape[-1]} latents. Raise the latent_dim, or read fewer codes."
        )
    return latents[:, :count]
