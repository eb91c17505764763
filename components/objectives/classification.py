"""The auxiliary classifier: the discriminator also names the class, and the generator is held to it.

Reference: Odena et al., 2016, arXiv:1610.09585, equations 2 and 3.
"""

from collections.abc import Mapping

import tensorflow as tf

from components.interfaces import UserError
from components.objectives.judging import Judge


def classification(judge: Judge, *, of_real: bool) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Return the cross-entropy float32[B] of the classes of the fakes, and of the real images too, in nats.

    Args:
      judge: whose discriminator returns "class_logits" float32[B, K].
      of_real: whether real images count: they do in the discriminator's loss, not in the generator's.

    Returns:
      The loss, and the share of classes named rightly as metrics.
    """
    on_fake = _cross_entropy(judge.fake, judge.fake_labels)
    if not of_real:
        return on_fake, {"generator/class_accuracy": _right(judge.fake, judge.fake_labels)}
    labels = judge.batch["label"]
    accuracies = {
        "discriminator/class_accuracy_real": _right(judge.real, labels),
        "discriminator/class_accuracy_fake": _right(judge.fake, judge.fake_labels),
    }
    return _cross_entropy(judge.real, labels) + on_fake, accuracies


def names_classes(judge: Judge, class_weight: float) -> bool:
    """Say whether a game has an auxiliary classifier; raises UserError where it has one without a weight, or none."""
    has_classifier = "class_logits" in judge.fake
    if has_classifier == bool(class_weight):
        return has_classifier
    if has_classifier:
        raise UserError(
            "A discriminator that classifies learns to by `class_weight`. Received one that returns 'class_logits', "
            "with a weight of 0. Bind the objective's `class_weight = 1.0`, or another `conditioning`."
        )
    raise UserError(
        f"`class_weight` needs a discriminator that returns 'class_logits'. Received {sorted(judge.fake)}. Bind the "
        "discriminator's `conditioning = 'auxiliary_classifier'`, or another network that classifies."
    )


def _cross_entropy(outputs: Mapping[str, tf.Tensor], labels: tf.Tensor) -> tf.Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs["class_logits"])


def _right(outputs: Mapping[str, tf.Tensor], labels: tf.Tensor) -> tf.Tensor:
    named = tf.argmax(outputs["class_logits"], axis=-1, output_type=tf.int32)
    return tf.cast(named == labels, tf.float32)
