"""Penalties on what a discriminator says rather than on its slope: one number per example, added to its loss.

They are bound where those of penalties.py are, and go together with them:

    gan.alternating.penalties = [@regularizers.lecam, @penalties.r1]
"""

from collections.abc import Sequence

import tensorflow as tf

from components.interfaces import Augmentation, Critic, Random, Share, Weight, current_memory


def lecam(
    critic: Critic, real: tf.Tensor, fake: tf.Tensor, *, random: Random, weight: Weight = 0.3, decay: Share = 0.99
) -> tf.Tensor:
    """Hold logits near what the discriminator used to say of the other kind of images: for few data.

    weight * ((D(real) - a_fake)^2 + (D(fake) - a_real)^2) with a_real and a_fake the moving averages of the logits of
    real and of generated images as they stood before this move.

    Args:
      critic: knows the logits of both.
      real: not used.
      fake: not used.
      random: tells the step: the first averages follow with min(decay, (1 + step) / (10 + step)).
      weight: of the penalty, lambda of the paper.
      decay: of the averages, gamma of the paper.

    Returns:
      float32[B].

    Reference: Tseng et al., 2021, arXiv:2104.03310, equations 4 and 5. The warm-up of the averages, which start at 0,
    is not in the paper.
    """
    step = tf.cast(random.step, tf.float32)
    following = tf.minimum(decay, (1.0 + step) / (10.0 + step))
    of_real = current_memory().average("lecam/real_logits", critic.real_logits, decay=following)
    of_fake = current_memory().average("lecam/fake_logits", critic.fake_logits, decay=following)
    return weight * (tf.square(critic.real_logits - of_fake) + tf.square(critic.fake_logits - of_real))


def balanced_consistency(
    critic: Critic,
    real: tf.Tensor,
    fake: tf.Tensor,
    *,
    random: Random,
    augmentations: Sequence[Augmentation],
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
      augmentations: T, applied in order.
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
