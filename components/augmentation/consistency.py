"""Consistency: a discriminator that says the same of an image and of its augmented self.

It is bound among the penalties of the discriminator's loss:

    gan.alternating.penalties = [@consistency.balanced_consistency]
"""

from collections.abc import Sequence

import tensorflow as tf

from components.augmentation.diff_augment import translation
from components.interfaces import Augmentation, Critic, Random, Weight


def balanced_consistency(
    critic: Critic,
    real: tf.Tensor,
    fake: tf.Tensor,
    *,
    random: Random,
    augmentations: Sequence[Augmentation] = (translation,),
    real_weight: Weight = 10.0,
    fake_weight: Weight = 10.0,
) -> tf.Tensor:
    """Let the discriminator say the same of an image and of its augmented self (bCR).

    real_weight * (D(x) - D(T(x)))^2 + fake_weight * (D(G(z)) - D(T(G(z))))^2.

    Args:
      critic: float32[B, H, W, C] -> float32[B]; knows the logits of the images themselves.
      real: float32[B, H, W, C].
      fake: float32[B, H, W, C].
      random: draws what T needs.
      augmentations: T, applied in order; the paper shifts and, where a mirrored image is as good, flips.
      real_weight: lambda_real of the paper; with a fake_weight of 0 this is CR-GAN (Zhang et al., 2019,
        arXiv:1910.12027, equation 2).
      fake_weight: lambda_fake of the paper.

    Returns:
      float32[B].

    Reference: Zhao et al., 2020, arXiv:2002.04724, section 3.1 and algorithm 1.
    """
    for augmentation in augmentations:
        real, fake = augmentation(real, random=random), augmentation(fake, random=random)
    on_real = tf.square(critic.real_logits - critic(real))
    on_fake = tf.square(critic.fake_logits - critic(fake, labels_of="fake"))
    return real_weight * on_real + fake_weight * on_fake
