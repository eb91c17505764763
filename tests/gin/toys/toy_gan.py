"""An objective, and the updates of a two-player game."""

from collections.abc import Callable
from typing import Annotated, Literal, Protocol

import tensorflow as tf
from annotated_types import Ge

from components.interfaces import AdversarialLoss, Batch, Losses, Networks, Player, Random, Update


class Penalty(Protocol):
    def __call__(
        self, critic: Callable[[tf.Tensor], tf.Tensor], real: tf.Tensor, fake: tf.Tensor, *, seed: int
    ) -> tf.Tensor: ...


class Objective:
    def __init__(self, loss: AdversarialLoss, penalty: Penalty | None, weight: float) -> None:
        self.loss, self.penalty, self.weight = loss, penalty, weight

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        raise NotImplementedError


def alternating(
    *,
    loss: AdversarialLoss,
    generator: Player,
    discriminator: Player,
    penalty: Penalty | None = None,
    gradient_penalty_weight: Annotated[float, Ge(0)] = 10.0,
    discriminator_repeats: Annotated[int, Ge(1)] = 1,
    order: Literal["first", "last"] = "first",
) -> list[Update]:
    objective = Objective(loss, penalty, gradient_penalty_weight)
    return [
        Update(objective=objective, players={"discriminator": discriminator}, repeats=discriminator_repeats),
        Update(objective=objective, players={"generator": generator}),
    ]
