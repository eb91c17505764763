"""Adversarial losses: each function is a whole game and says what both players minimise.

All take logits (no sigmoid at the end of the discriminator) and return one number per example, in nats where there is
a likelihood. Write a function of this form, here or in any module that your gin file imports, and bind it:

    gan.alternating.loss = @adversarial.hinge
"""

import tensorflow as tf

from components.interfaces import PlayerLosses


def non_saturating(real_logits: tf.Tensor, fake_logits: tf.Tensor) -> PlayerLosses:
    """Binary cross-entropy for the discriminator, -log D(fake) for the generator.

    With D = sigmoid(logits): discriminator -log D(real) - log(1 - D(fake)), generator -log D(fake).

    Args:
      real_logits: float32[B], of real images; positive says real.
      fake_logits: float32[B], of generated images.

    Returns:
      float32[B] for each player, in nats; 2 log 2 and log 2 where every logit is 0.

    Reference: Goodfellow et al., 2014, arXiv:1406.2661, equation 1 and the last paragraph of section 3.
    """
    return PlayerLosses(
        generator=tf.nn.softplus(-fake_logits),
        discriminator=tf.nn.softplus(-real_logits) + tf.nn.softplus(fake_logits),
    )


def hinge(real_logits: tf.Tensor, fake_logits: tf.Tensor) -> PlayerLosses:
    """Hinge loss: the discriminator stops caring beyond a margin of 1, the generator raises its logits.

    discriminator max(0, 1 - real) + max(0, 1 + fake), generator -fake.

    Args:
      real_logits: float32[B], of real images.
      fake_logits: float32[B], of generated images.

    Returns:
      float32[B] for each player.

    Reference: Lim and Ye, 2017, arXiv:1705.02894, equations 9 and 10; Miyato et al., 2018, arXiv:1802.05957,
    equations 16 and 17.
    """
    return PlayerLosses(
        generator=-fake_logits,
        discriminator=tf.nn.relu(1.0 - real_logits) + tf.nn.relu(1.0 + fake_logits),
    )


def least_squares(real_logits: tf.Tensor, fake_logits: tf.Tensor) -> PlayerLosses:
    """Least squares with targets 1 for real, 0 for fake, and 1 for the generator.

    discriminator (real - 1)^2 / 2 + fake^2 / 2, generator (fake - 1)^2 / 2.

    Args:
      real_logits: float32[B], of real images.
      fake_logits: float32[B], of generated images.

    Returns:
      float32[B] for each player.

    Reference: Mao et al., 2017, arXiv:1611.04076, equation 9.
    """
    return PlayerLosses(
        generator=0.5 * tf.square(fake_logits - 1.0),
        discriminator=0.5 * (tf.square(real_logits - 1.0) + tf.square(fake_logits)),
    )
