"""What the moves of a GAN have in common: fakes, how the discriminator judges, and what is counted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import keras
import tensorflow as tf

from components.interfaces import (
    AdversarialLoss,
    Augmentation,
    Batch,
    Networks,
    Penalty,
    PlayerLosses,
    Random,
    UserError,
    latent_dim,
)
from components.objectives.loss_inputs import depends_on_first
from components.per_example import other_form


def generate(networks: Networks, random: Random) -> tuple[tf.Tensor, tf.Tensor]:
    """Return fakes float32[B, H, W, C] in training mode and their labels int32[B], uniform over the classes."""
    generator = networks["generator"]
    latents = random.normal("latents", [latent_dim(generator)])
    labels = random.integers("fake_labels", max(1, networks.spec.num_classes))
    fakes = generator([latents, labels], training=True)
    if tuple(fakes.shape[1:]) != networks.spec.image_shape:
        raise UserError(
            f"A generator makes images of the data's shape {networks.spec.image_shape}. Received "
            f"{tuple(fakes.shape[1:])} from {generator.name!r}. Bind another as `Experiment.networks['generator']`, or "
            "the data's `image_size`."
        )
    return fakes, labels


@dataclass(frozen=True)
class Judge:
    """The discriminator in training mode on the images of one move; a `Critic` for penalties.

    Attributes:
      networks: hold the discriminator.
      batch: the real images and their labels.
      fakes: float32[B, H, W, C].
      fake_labels: int32[B].
      augmentations: applied in order to whatever is judged; each time they draw anew.
      random: of the move.
    """

    networks: Networks
    batch: Batch
    fakes: tf.Tensor
    fake_labels: tf.Tensor
    augmentations: Sequence[Augmentation]
    random: Random
    _said: dict[str, Mapping[str, tf.Tensor]] = field(default_factory=dict, repr=False)

    def __call__(self, images: tf.Tensor, *, labels_of: Literal["real", "fake"] = "real") -> tf.Tensor:
        """Return logits float32[B]."""
        return self._outputs(images, labels_of)["logits"]

    @property
    def real(self) -> Mapping[str, tf.Tensor]:
        """All that the discriminator says of the real images."""
        return self._once("real", self.batch["image"])

    @property
    def fake(self) -> Mapping[str, tf.Tensor]:
        """All that the discriminator says of the fakes."""
        return self._once("fake", self.fakes)

    @property
    def real_logits(self) -> tf.Tensor:
        """float32[B]."""
        return self.real["logits"]

    @property
    def fake_logits(self) -> tf.Tensor:
        """float32[B]."""
        return self.fake["logits"]

    @property
    def of_discriminator(self) -> "Judge":
        """The same, on fakes that no gradient leaves: what shapes the discriminator's loss alone."""
        return replace(self, fakes=tf.stop_gradient(self.fakes))  # what has been said is shared

    def _once(self, kind: Literal["real", "fake"], images: tf.Tensor) -> Mapping[str, tf.Tensor]:
        # Not functools.cached_property: before Python 3.12 it holds a lock, and replicas, which are threads that wait
        # for each other at every synchronised layer, would wait for ever.
        if kind not in self._said:
            self._said[kind] = self._outputs(images, kind)
        return self._said[kind]

    def _outputs(self, images: tf.Tensor, labels_of: Literal["real", "fake"]) -> Mapping[str, tf.Tensor]:
        labels = self.batch["label"] if labels_of == "real" else self.fake_labels
        for augmentation in self.augmentations:
            images = augmentation(images, random=self.random)
        return judgement(self.networks["discriminator"], images, labels)


def judgement(discriminator: keras.Model, images: tf.Tensor, labels: tf.Tensor) -> Mapping[str, tf.Tensor]:
    """Return what a discriminator says in training mode; raises UserError for a network that is none."""
    wanted = [tuple(images.shape[1:]), ()]
    taken = [tuple(one.shape[1:]) for one in getattr(discriminator, "inputs", None) or ()] or wanted
    outputs = discriminator([images, labels], training=True) if taken == wanted else None
    if not isinstance(outputs, Mapping) or "logits" not in outputs:
        given = (
            "" if outputs is None else f" and returns {sorted(outputs) if isinstance(outputs, Mapping) else 'a tensor'}"
        )
        raise UserError(
            f"A discriminator takes images of shape {wanted[0]} and labels, and returns 'logits'. Received the network "
            f"{discriminator.name!r}, which takes {' and '.join(map(str, taken))}{given}. Bind a discriminator as "
            "`Experiment.networks['discriminator']`."
        )
    size = images.shape[0]
    received = other_form(outputs["logits"], size)
    if received is not None:
        raise UserError(
            f"A discriminator's 'logits' are float32, one number per image, whatever the precision. Received "
            f"{received} from {discriminator.name!r} where float32[{size}] is due. "
            "Let its last layer have dtype='float32' and one unit, and take [:, 0] of it."
        )
    return outputs


def play(loss: AdversarialLoss, real_logits: tf.Tensor, fake_logits: tf.Tensor) -> PlayerLosses:
    """Return what an adversarial loss says; raises UserError for a function that is none."""
    losses = loss(real_logits, fake_logits)
    if not isinstance(losses, PlayerLosses):
        raise UserError(
            "An adversarial `loss` returns PlayerLosses(generator, discriminator). Received "
            f"{type(losses).__name__} from {getattr(loss, '__name__', type(loss).__name__)!r}. Bind a function of "
            "components.loss_library.adversarial, or return that from yours."
        )
    for player, value in losses._asdict().items():
        _require_term(f"The {player}'s part of the adversarial `loss`", loss, value, fake_logits.shape[0])
    return losses


def generator_loss(loss: AdversarialLoss, judge: Judge) -> tf.Tensor:
    """Return what the generator minimises, float32[B]; real images are judged only where the loss compares."""
    fake_logits = judge.fake_logits

    def of_generator(real: tf.Tensor, fake: tf.Tensor) -> tf.Tensor:
        return play(loss, real, fake).generator

    compares = depends_on_first(of_generator, fake_logits.shape[0])
    real_logits = judge.real_logits if compares else tf.zeros_like(fake_logits)
    return of_generator(real_logits, fake_logits)


def penalise(penalties: Sequence[Penalty], judge: Judge, random: Random) -> dict[str, tf.Tensor]:
    """Return {"discriminator/penalty_i": float32[B]}."""
    real, fake = judge.batch["image"], judge.fakes
    terms = {}
    for index, penalty in enumerate(penalties):
        term = penalty(judge, real, fake, random=random)
        _require_term("A penalty", penalty, term, real.shape[0])
        terms[f"discriminator/penalty_{index}"] = term
    return terms


def told(
    real_logits: tf.Tensor, fake_logits: tf.Tensor, noisy_labels: float, random: Random
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return real and fake logits, exchanged in a share of the pairs.

    Reference: Chintala et al., 2016, "How to train a GAN", item 6.
    """
    if not noisy_labels:
        return real_logits, fake_logits
    lied = random.uniform("noisy_labels") < noisy_labels
    return tf.where(lied, fake_logits, real_logits), tf.where(lied, real_logits, fake_logits)


def accuracy(real_logits: tf.Tensor, fake_logits: tf.Tensor) -> dict[str, tf.Tensor]:
    """Return whether each logit is on the right side of 0: real, fake, and half the sum of both, float32[B] each."""
    real, fake = tf.cast(real_logits > 0, tf.float32), tf.cast(fake_logits < 0, tf.float32)
    return {
        "discriminator/accuracy": 0.5 * (real + fake),
        "discriminator/accuracy_real": real,
        "discriminator/accuracy_fake": fake,
    }


def _require_term(what: str, function: Callable[..., object], value: object, size: int | None) -> None:
    """Refuse what is no float32[B]; the step's own check would not know which function to name."""
    received = other_form(value, size)
    if received is None:
        return
    raise UserError(
        f"{what} is float32, one number per example, never a mean. Received {received} from "
        f"{getattr(function, '__name__', type(function).__name__)!r} where float32[{size}] is due. Return a tensor of "
        "that dtype, reduced over all axes but the first."
    )
