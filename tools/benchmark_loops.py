"""Hand-written training loops: what someone would write for one model, without this project's stepper.

They take the networks, losses and optimizers of an experiment and nothing else of it. Each loop is made by a function
that returns `advance(n)`, which makes n steps and returns the losses of the last one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from components.interfaces import Moment, Update, UserError, happening_at

Advance = Callable[[int], dict[str, float]]
Draw = Callable[[], tuple[tf.Tensor, tf.Tensor]]  # () -> latents float32[B, Z], labels int32[B]


@dataclass(frozen=True, kw_only=True)
class Game:
    """What a hand-written loop trains.

    Attributes:
      networks: {name: network}, new ones.
      optimizers: {player: optimizer}, built; a player trains the network of its name.
      moves: the players of each move of a step, in order.
      loss: an adversarial loss, or a likelihood where the one player is "vae".
      same_latents: the moves of a step share latents and fake labels.
      num_classes: fake labels are in [0, this).
      global_batch_size: B.
      images: float32[N, H, W, C], held in memory.
      labels: int32[N].
    """

    networks: dict[str, keras.Model]
    optimizers: dict[str, keras.optimizers.Optimizer]
    moves: tuple[tuple[str, ...], ...]
    loss: Callable
    same_latents: bool
    num_classes: int
    global_batch_size: int
    images: np.ndarray
    labels: np.ndarray

    @property
    def latent_dim(self) -> int:
        """Z."""
        vae = self.networks.get("vae")
        return vae.latent_dim if vae is not None else int(self.networks["generator"].inputs[0].shape[1])

    def dataset(self) -> tf.data.Dataset:
        """Return endless shuffled batches (images, labels)."""
        data = tf.data.Dataset.from_tensor_slices((self.images, self.labels)).shuffle(len(self.labels), seed=0).repeat()
        return data.batch(self.global_batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

    def draw(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Return latents and fake labels, as a program without replicas or resumption draws them."""
        latents = tf.random.normal([self.global_batch_size, self.latent_dim])
        return latents, tf.random.uniform([self.global_batch_size], 0, max(1, self.num_classes), tf.int32)

    def descend(self, tape: tf.GradientTape, loss: tf.Tensor, player: str) -> None:
        """Take the gradient of a loss and move a player."""
        variables = self.networks[player].trainable_variables
        self.optimizers[player].apply(tape.gradient(loss, variables), variables)


def moves_of(updates: list[Update]) -> tuple[tuple[str, ...], ...]:
    """Return the players of each move; raises UserError for a step that no loop here is written for."""
    moves = tuple(tuple(sorted(update.players)) for update in updates)
    known = (("discriminator",), ("generator",)), (("generator",), ("discriminator",))
    if moves not in (*known, (("discriminator", "generator"),), (("vae",),)):
        raise UserError(f"The hand-written loops know two players or a VAE. Received the moves {moves}.")
    for update in updates:
        objective = update.objective
        extras = {name: getattr(objective, name, 0) for name in ("penalties", "augmentations", "class_weight")}
        extras |= {name: getattr(objective, name, 0) for name in ("noisy_labels", "free_nats", "warm_up_steps")}
        extras |= {"repeats": update.repeats - 1, "every": update.every - 1, "accumulate": update.accumulate - 1}
        extras |= {"averages": any(p.keeps_average or p.weight_clip for p in update.players.values())}
        if more := [name for name, value in extras.items() if value]:
            raise UserError(
                f"The hand-written loops make plain steps. Received a configuration with {', '.join(more)}. Benchmark "
                "dcgan_tpu.gin, dcgan_distributed.gin, cgan.gin or vae_tpu.gin."
            )
    return moves


def step_of(game: Game, draw: Draw) -> Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]]:
    """Return the step as a plain function of real images and labels."""
    make = _vae_step if "vae" in game.networks else _shared_step if len(game.moves) == 1 else _turns

    def step(images: tf.Tensor, labels: tf.Tensor) -> dict[str, tf.Tensor]:
        with _dropping(game):
            return make(game, images, labels, draw)

    return step


def lean(game: Game) -> Advance:
    """One tf.function of the whole step, data and draws inside TensorFlow."""
    step = tf.function(step_of(game, game.draw), autograph=False)
    batches = iter(game.dataset())

    def advance(steps: int) -> dict[str, float]:
        for _ in range(steps):
            losses = step(*next(batches))
        return {name: float(value) for name, value in losses.items()}

    return advance


def keras_fit(game: Game) -> Advance:
    """The same step as the `train_step` of a Model that Keras fits."""
    step = step_of(game, game.draw)

    class Trainer(keras.Model):
        def train_step(self, data):
            return step(*data)

    trainer = Trainer()
    trainer.built = True
    trainer.compile()
    data = game.dataset()

    def advance(steps: int) -> dict[str, float]:
        history = trainer.fit(data, steps_per_epoch=steps, epochs=1, verbose=0).history
        return {name: float(values[-1]) for name, values in history.items()}

    return advance


def host_fed(game: Game) -> Advance:
    """Three calls a step, each fed from the host: fakes, then the discriminator on them, then the generator."""
    generator = game.networks["generator"]
    generate = tf.function(lambda latents, labels: generator([latents, labels], training=True), autograph=False)
    judge = tf.function(lambda *batch: _move_discriminator(game, *batch), autograph=False)
    fool = tf.function(lambda *drawn: _move_generator(game, *drawn), autograph=False)
    batches, random = _host_batches(game), np.random.default_rng(0)

    def draw() -> tuple[np.ndarray, np.ndarray]:
        latents = random.standard_normal((game.global_batch_size, game.latent_dim), np.float32)
        return latents, random.integers(0, max(1, game.num_classes), game.global_batch_size, np.int32)

    def advance(steps: int) -> dict[str, float]:
        for _ in range(steps):
            with _dropping(game):
                drawn = draw()
                fakes = generate(*drawn).numpy()
                losses = {"discriminator": judge(*next(batches), fakes, drawn[1])}
                losses["generator"] = fool(*draw())
        return {name: float(value) for name, value in losses.items()}

    return advance


class _Plain:
    """What dropout draws from in a hand-written loop: TensorFlow's own generator."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def occasion(self, purpose: str) -> str:
        return purpose

    def uniform(self, purpose: str, shape: Sequence[int] = ()) -> tf.Tensor:
        return tf.random.uniform([self._rows, *shape])


def _dropping(game: Game) -> AbstractContextManager[None]:
    """Let dropout find what it draws from."""
    return happening_at(Moment(_Plain(game.global_batch_size), None))


LOOPS: dict[str, Callable[[Game], Advance]] = {"lean": lean, "fit": keras_fit, "host-fed": host_fed}


def _host_batches(game: Game) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    random, size = np.random.default_rng(1), game.global_batch_size
    while True:
        chosen = random.integers(0, len(game.labels), size)
        yield game.images[chosen], game.labels[chosen]


def _turns(game: Game, images: tf.Tensor, labels: tf.Tensor, draw: Draw) -> dict[str, tf.Tensor]:
    """Move in turn, each on fakes of its own."""
    losses, drawn = {}, draw()
    for number, (player,) in enumerate(game.moves):
        if number and not game.same_latents:
            drawn = draw()
        if player == "discriminator":
            fakes = game.networks["generator"](list(drawn), training=True)
            losses[player] = _move_discriminator(game, images, labels, fakes, drawn[1])
        else:
            losses[player] = _move_generator(game, *drawn)
    return losses


def _move_discriminator(game: Game, images, labels, fakes, fake_labels) -> tf.Tensor:
    discriminator = game.networks["discriminator"]
    with tf.GradientTape() as tape:
        real = discriminator([images, labels], training=True)["logits"]
        fake = discriminator([fakes, fake_labels], training=True)["logits"]
        loss = tf.reduce_mean(game.loss(real, fake).discriminator)
    game.descend(tape, loss, "discriminator")
    return loss


def _move_generator(game: Game, latents, labels) -> tf.Tensor:
    with tf.GradientTape() as tape:
        fakes = game.networks["generator"]([latents, labels], training=True)
        fake = game.networks["discriminator"]([fakes, labels], training=True)["logits"]
        loss = tf.reduce_mean(game.loss(tf.zeros_like(fake), fake).generator)
    game.descend(tape, loss, "generator")
    return loss


def _shared_step(game: Game, images: tf.Tensor, labels: tf.Tensor, draw: Draw) -> dict[str, tf.Tensor]:
    """Move both players after one shared forward pass."""
    latents, fake_labels = draw()
    with tf.GradientTape(persistent=True) as tape:
        fakes = game.networks["generator"]([latents, fake_labels], training=True)
        real = game.networks["discriminator"]([images, labels], training=True)["logits"]
        fake = game.networks["discriminator"]([fakes, fake_labels], training=True)["logits"]
        both = game.loss(real, fake)
        losses = {name: tf.reduce_mean(getattr(both, name)) for name in ("generator", "discriminator")}
    variables = {name: game.networks[name].trainable_variables for name in losses}
    gradients = {name: tape.gradient(loss, variables[name]) for name, loss in losses.items()}
    for name in losses:
        game.optimizers[name].apply(gradients[name], variables[name])
    return losses


def _vae_step(game: Game, images: tf.Tensor, labels: tf.Tensor, draw: Draw) -> dict[str, tf.Tensor]:
    vae, (noise, _) = game.networks["vae"], draw()
    pixels = 0.5 * (images + 1.0)
    with tf.GradientTape() as tape:
        logits, divergence = vae.logits_and_divergence(
            pixels, noise, labels if vae.conditional else None, training=True
        )
        flat = tf.reshape(pixels, [game.global_batch_size, -1])
        loss = tf.reduce_mean(game.loss(logits, flat) + divergence)
    game.descend(tape, loss, "vae")
    return {"vae": loss}
