"""Likelihoods of variational autoencoders: sums over pixels, in nats per example, as the divergence is over latents.

A mean over pixels beside a sum over latents would weigh the divergence hundreds of times too much, and the posterior
collapses.
"""

import math
from typing import Annotated

import tensorflow as tf
from annotated_types import Gt


def bernoulli(logits: tf.Tensor, pixels: tf.Tensor) -> tf.Tensor:
    """Return the negative log-likelihood of pixels under independent Bernoulli variables.

    sum over pixels of -x log p - (1 - x) log(1 - p), with p = sigmoid(logit).

    Args:
      logits: float32[B, D].
      pixels: float32[B, D] in [0, 1].

    Returns:
      float32[B], nats per example; D log 2 where every logit is 0.

    Reference: Kingma and Welling, 2013, arXiv:1312.6114, appendix C.1.
    """
    return tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=pixels, logits=logits), axis=-1)


def gaussian(logits: tf.Tensor, pixels: tf.Tensor, *, standard_deviation: Annotated[float, Gt(0)] = 0.1) -> tf.Tensor:
    """Return the negative log-likelihood of pixels under independent normal variables of one standard deviation.

    sum over pixels of (x - p)^2 / (2 s^2) + log(s sqrt(2 pi)), with the mean p = sigmoid(logit).

    Args:
      logits: float32[B, D].
      pixels: float32[B, D] in [0, 1].
      standard_deviation: s, above 0, in units of the pixels.

    Returns:
      float32[B], nats per example; may be negative, being a density.

    Reference: Kingma and Welling, 2013, arXiv:1312.6114, appendix C.2, with a constant variance.
    """
    error = tf.reduce_sum(tf.square(pixels - tf.sigmoid(logits)), axis=-1)
    constant = math.log(standard_deviation * math.sqrt(2 * math.pi)) * pixels.shape[-1]
    return error / (2 * standard_deviation**2) + constant
