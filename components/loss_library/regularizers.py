"""Penalties on what a discriminator says rather than on its slope: one number per example, added to its loss.

They are bound where those of penalties.py are, and go together with them:

    gan.alternating.penalties = [@regularizers.lecam, @penalties.r1]
"""

import tensorflow as tf

from components.interfaces import Critic, Random, Share, Weight, current_memory


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
