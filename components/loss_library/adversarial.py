"""Adversarial losses: each function is a whole game and says what both players minimise.

All take logits (no sigmoid at the end of the discriminator) and return one number per example, in nats where there is
a likelihood. Write a function of this form, here or in any module that your gin file imports, and bind it:

    gan.alternating.loss = @adversarial.hinge
"""

import tensorflow as tf

from components.interfaces import PlayerLosses, Share


def non_saturating(real_logits: tf.Tensor, fake_logits: tf.Tensor, *, label_smoothing: Share = 0.0) -> PlayerLosses:
    """Binary cross-entropy for the discriminator, -log D(fake) for the generator.

    With D = sigmoid(logits): discriminator -log D(real) - log(1 - D(fake)), generator -log D(fake).

    Args:
      real_logits: float32[B], of real images; positive says real.
      fake_logits: float32[B], of generated images.
      label_smoothing: s in [0, 1): the discriminator's target for real images is 1 - s instead of 1.

    Returns:
      float32[B] for each player, in nats; 2 log 2 and log 2 where every logit is 0.

    Reference: Goodfellow et al., 2014, arXiv:1406.2661, equation 1 and the last paragraph of section 3; one-sided
    smoothing: Salimans et al., 2016, arXiv:1606.03498, section 3.4.
    """
    return PlayerLosses(
        generator=tf.nn.softplus(-fake_logits),
        discriminator=_cross_entropy(real_logits, fake_logits, label_smoothing),
    )


def minimax(real_logits: tf.Tensor, fake_logits: tf.Tensor, *, label_smoothing: Share = 0.0) -> PlayerLosses:
    """The zero-sum game: the discriminator's cross-entropy, and for the generator log(1 - D(fake)).

    Args:
      real_logits: float32[B], of real images.
      fake_logits: float32[B], of generated images.
      label_smoothing: s in [0, 1): the discriminator's target for real images is 1 - s instead of 1.

    Returns:
      float32[B] for each player, in nats; 2 log 2 and -log 2 where every logit is 0.

    Reference: Goodfellow et al., 2014, arXiv:1406.2661, equation 1.
    """
    return PlayerLosses(
        generator=-tf.nn.softplus(fake_logits),
        discriminator=_cross_entropy(real_logits, fake_logits, label_smoothing),
    )


def wasserstein(real_logits: tf.Tensor, fake_logits: tf.Tensor) -> PlayerLosses:
    """Difference of the critic's scores: discriminator fake - real, generator -fake.

    The critic must be kept Lipschitz: by a gradient penalty or by clipping its weights.

    Args:
      real_logits: float32[B], scores of real images.
      fake_logits: float32[B], scores of generated images.

    Returns:
      float32[B] for each player, in units of the score.

    Reference: Arjovsky et al., 2017, arXiv:1701.07875, equations 2 and 3.
    """
    return PlayerLosses(generator=-fake_logits, discriminator=fake_logits - real_logits)


def relativistic_pairing(real_logits: tf.Tensor, fake_logits: tf.Tensor) -> PlayerLosses:
    """Cross-entropy of the difference within pairs: which of the two is the real one?

    discriminator softplus(-(real - fake)), generator softplus(-(fake - real)).

    Args:
      real_logits: float32[B], of real images.
      fake_logits: float32[B], of generated images, paired with the real ones by position.

    Returns:
      float32[B] for each player, in nats; log 2 for both where a pair is equal.

    Reference: Jolicoeur-Martineau, 2018, arXiv:1807.00734, section 4.1; Huang et al., 2024 (R3GAN), arXiv:2501.05441,
    equation 2.
    """
    difference = real_logits - fake_logits
    return PlayerLosses(generator=tf.nn.softplus(difference), discriminator=tf.nn.softplus(-difference))


def relativistic_average(real_logits: tf.Tensor, fake_logits: tf.Tensor) -> PlayerLosses:
    """Cross-entropy against the average opponent of the global batch.

    discriminator softplus(-(real - mean fake)) + softplus(fake - mean real), generator with real and fake exchanged.

    Args:
      real_logits: float32[B], of real images.
      fake_logits: float32[B], of generated images.

    Returns:
      float32[B] for each player, in nats; 2 log 2 for both where every logit is equal.

    Reference: Jolicoeur-Martineau, 2018, arXiv:1807.00734, equations 11 and 12, with the non-saturating cross-entropy.
    """
    real = real_logits - _global_mean(fake_logits)
    fake = fake_logits - _global_mean(real_logits)
    return PlayerLosses(
        generator=tf.nn.softplus(-fake) + tf.nn.softplus(real),
        discriminator=tf.nn.softplus(-real) + tf.nn.softplus(fake),
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


def _cross_entropy(real_logits: tf.Tensor, fake_logits: tf.Tensor, label_smoothing: float) -> tf.Tensor:
    """Return float32[B]: targets 1 - label_smoothing for real, 0 for fake."""
    return tf.nn.softplus(-real_logits) + label_smoothing * real_logits + tf.nn.softplus(fake_logits)


def _global_mean(logits: tf.Tensor) -> tf.Tensor:
    """Return the mean over the rows of all replicas."""
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.MEAN, tf.reduce_mean(logits))
