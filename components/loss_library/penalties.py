"""Penalties on a discriminator's slope: one number per example, added to its loss.

Each takes `critic`, a function from images float32[B, H, W, C] to logits float32[B] (labels, and augmentations if any,
are inside it), the real and the generated images, and the update's `Random`; its weight is a binding:

    gan.alternating.penalties = [@penalties.wgan_gp]
    penalties.wgan_gp.weight = 10.0

The slope of one example is meant, so the critic must not mix examples: no BatchNorm in it. Slopes are finite, and so
are their gradients, where the critic is flat.
"""

from collections.abc import Callable

import tensorflow as tf

from components.interfaces import Critic, Random, Weight

# Below this a norm counts as 0: the square root has no slope there.
_TINY = 1e-12


def wgan_gp(
    critic: Critic,
    real: tf.Tensor,
    fake: tf.Tensor,
    *,
    random: Random,
    weight: Weight = 10.0,
    target: Weight = 1.0,
    one_sided: bool = False,
) -> tf.Tensor:
    """Penalise slopes other than `target` on lines between real and generated images.

    weight * (|gradient at u real + (1 - u) fake| - target)^2 with u uniform in [0, 1) per example.

    Args:
      critic: float32[B, H, W, C] -> float32[B].
      real: float32[B, H, W, C].
      fake: float32[B, H, W, C].
      random: draws u.
      weight: of the penalty.
      target: the slope that costs nothing.
      one_sided: smaller slopes cost nothing either.

    Returns:
      float32[B].

    Reference: Gulrajani et al., 2017, arXiv:1704.00028, equation 3 and algorithm 1; one-sided: section 4. The paper has
    no labels: a conditional critic judges the points between with those of the real images, whatever class the
    generated ones, whose labels are drawn on their own, were made for.
    """
    u = random.uniform("penalty/interpolation", [1, 1, 1])
    excess = _norm(_slopes(critic, u * real + (1.0 - u) * fake)) - target
    return weight * tf.square(tf.nn.relu(excess) if one_sided else excess)


def dragan(
    critic: Critic, real: tf.Tensor, fake: tf.Tensor, *, random: Random, weight: Weight = 10.0, scale: Weight = 0.5
) -> tf.Tensor:
    """Penalise slopes other than 1 around real images.

    weight * (|gradient at real + scale * std(real) * n| - 1)^2 with n uniform in [0, 1) per pixel and the standard
    deviation that of each image.

    Args:
      critic: float32[B, H, W, C] -> float32[B].
      real: float32[B, H, W, C].
      fake: not used.
      random: draws n.
      weight: of the penalty.
      scale: of the noise, in standard deviations.

    Returns:
      float32[B].

    Reference: Kodali et al., 2017, arXiv:1705.07215, equation 4. There the standard deviation is that of the batch,
    which would make one example's penalty depend on the others.
    """
    noise = random.uniform("penalty/noise", real.shape[1:])
    spread = tf.math.reduce_std(real, axis=[1, 2, 3], keepdims=True)
    return weight * tf.square(_norm(_slopes(critic, real + scale * spread * noise)) - 1.0)


def r1(critic: Critic, real: tf.Tensor, fake: tf.Tensor, *, random: Random, weight: Weight = 10.0) -> tf.Tensor:
    """Penalise slopes at real images: weight / 2 * |gradient at real|^2.

    Args:
      critic: float32[B, H, W, C] -> float32[B].
      real: float32[B, H, W, C].
      fake: not used.
      random: not used.
      weight: gamma of the paper.

    Returns:
      float32[B].

    Reference: Mescheder et al., 2018, arXiv:1801.04406, equation 9.
    """
    return 0.5 * weight * _square(_slopes(critic, real))


def r2(critic: Critic, real: tf.Tensor, fake: tf.Tensor, *, random: Random, weight: Weight = 10.0) -> tf.Tensor:
    """Penalise slopes at generated images: weight / 2 * |gradient at fake|^2.

    Args:
      critic: float32[B, H, W, C] -> float32[B].
      real: not used.
      fake: float32[B, H, W, C].
      random: not used.
      weight: gamma of the paper.

    Returns:
      float32[B].

    Reference: Mescheder et al., 2018, arXiv:1801.04406, equation 10.
    """
    return 0.5 * weight * _square(_slopes(lambda images: critic(images, labels_of="fake"), fake))


def _slopes(critic: Callable[[tf.Tensor], tf.Tensor], images: tf.Tensor) -> tf.Tensor:
    """Return float32[B, H, W, C], the gradient of each image's logit with respect to it."""
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(images)
        logits = critic(images)
    slopes = tape.gradient(logits, images, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return tf.cast(slopes, tf.float32)


def _square(slopes: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.square(slopes), axis=[1, 2, 3])


def _norm(slopes: tf.Tensor) -> tf.Tensor:
    return tf.sqrt(tf.maximum(_square(slopes), _TINY))
