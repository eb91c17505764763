"""Latent consistency (zCR), added to any list of GAN updates.

Reference: Zhao et al., 2020, arXiv:2002.04724, section 3.2 and algorithm 2. With `consistency.balanced_consistency`
among the penalties it is ICR, section 3.3. The paper writes a norm over pixels where we take the mean, which makes the
weight one for all image sizes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tensorflow as tf

from components.interfaces import Batch, Losses, Networks, Objective, Random, Update, UserError, Weight, latent_dim
from components.objectives.judging import judgement


def latent_consistency(
    *,
    updates: Sequence[Update],
    noise: Weight = 0.03,
    discriminator_weight: Weight = 5.0,
    generator_weight: Weight = 0.5,
) -> list[Update]:
    """Return `updates` with latent consistency in each player's loss.

    With z' = z + noise * n, n standard normal: the discriminator's loss gets
    discriminator_weight * (D(G(z)) - D(G(z')))^2, the generator's -generator_weight * (G(z) - G(z'))^2, a mean over
    pixels: the images of near latents shall differ, and be judged alike.

    Args:
      updates: of players named "generator" and "discriminator"; the first update of each gets its term, so that lazy
        penalties stay what they are.
      noise: sigma of the paper.
      discriminator_weight: lambda_dis of the paper.
      generator_weight: lambda_gen of the paper.

    Raises:
      UserError: no update has one of these players.
    """
    players = {"generator", "discriminator"}
    if not any(players & set(update.players) for update in updates):
        raise UserError(
            "`latent_consistency` is of players named 'generator' and 'discriminator'. Received updates of "
            f"{sorted({name for update in updates for name in update.players})}. Bind the updates of a GAN."
        )
    weights = {"generator": generator_weight, "discriminator": discriminator_weight}
    added = []
    for update in updates:
        of_this = {name: weights.pop(name) for name in set(weights) & set(update.players)}
        added.append(replace(update, objective=_Consistent(update.objective, noise, of_this)) if of_this else update)
    return added


@dataclass(frozen=True)
class _Consistent:
    """An objective with the terms of the players in `weights`."""

    objective: Objective
    noise: float
    weights: dict[str, float]

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return the losses of the objective and the terms added; each term is a metric too."""
        losses = self.objective(networks, batch, random=random)
        terms = _terms(networks, random, self.noise, set(self.weights))
        players = {
            name: loss + self.weights[name] * terms[name] if name in terms else loss
            for name, loss in losses.players.items()
        }
        return Losses(players, {**losses.metrics, **{f"{name}/consistency": term for name, term in terms.items()}})


def _terms(networks: Networks, random: Random, noise: float, players: set[str]) -> dict[str, tf.Tensor]:
    generator, discriminator = networks["generator"], networks["discriminator"]
    width = [latent_dim(generator)]
    latents = random.normal("consistency/latents", width)
    moved = latents + noise * random.normal("consistency/noise", width)
    labels = random.integers("consistency/labels", max(1, networks.spec.num_classes))
    images = [generator([z, labels], training=True) for z in (latents, moved)]
    terms = {}
    if "generator" in players:
        terms["generator"] = -tf.reduce_mean(tf.square(images[0] - images[1]), axis=[1, 2, 3])
    if "discriminator" in players:
        said = [judgement(discriminator, tf.stop_gradient(x), labels)["logits"] for x in images]
        terms["discriminator"] = tf.square(said[0] - said[1])
    return terms
