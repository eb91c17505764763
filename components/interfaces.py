"""What the parts of a run promise each other.

All areas share this module: a part imports it, the few beside it, and its own area, never a sibling. Read it from top
to bottom and you have read the architecture: data come as `Batch`, networks are made from a `DataSpec`, an `Objective`
turns networks and a batch into one loss per example and player, a training step is an ordered list of `Update`s, and
the `Stepper` runs it.

Shape letters: B examples of one replica, H W C image, Z latent, K classes, N images.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypedDict, runtime_checkable

import keras
import tensorflow as tf
from annotated_types import Ge, Gt, Lt

from components.errors import UserError as UserError

# The draws and the memory of one move: a text of their own, imported from here.
from components.moment import Memory as Memory
from components.moment import Moment as Moment
from components.moment import Random as Random
from components.moment import current_memory as current_memory
from components.moment import current_random as current_random
from components.moment import happening_at as happening_at

# Annotations carry ranges: a configuration is checked against them before anything is built.
Positive = Annotated[int, Gt(0)]
Share = Annotated[float, Ge(0), Lt(1)]
Weight = Annotated[float, Ge(0)]


# --- data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """What a network must know of the data, and what a result must say of them."""

    image_shape: tuple[int, int, int]  # H, W, C
    num_classes: int  # 0 where there are no labels
    num_examples: int
    name: str
    split: str
    fingerprint: str  # changes whenever an example, or the order in which they are stored, does
    notice: str = ""  # what the user must know of these data, such as a substitution; empty: nothing


@dataclass(frozen=True, kw_only=True)
class HostShard:
    """This host builds rows [index * B / count, (index + 1) * B / count) of every global batch of B rows."""

    index: int = 0
    count: int = 1


class Batch(TypedDict):
    """One replica's rows of a global batch."""

    image: tf.Tensor  # float32[B, H, W, C] in [-1, 1]
    label: tf.Tensor  # int32[B] in [0, K), zeros where there are no labels


@runtime_checkable
class DataSource(Protocol):
    """Real examples, addressed by (seed, index of the batch)."""

    @property
    def spec(self) -> DataSpec:
        """Shape, size and identity of the data; opens them if need be."""
        ...

    def batches(
        self, *, global_batch_size: int, seed: int, start_batch: int, host: HostShard = HostShard()
    ) -> tf.data.Dataset:
        """Return an endless dataset of `Batch`: element i is this host's part of global batch start_batch + i.

        The element depends on nothing but (seed, start_batch + i, global_batch_size, host), so that a run which starts
        at batch s sees what an uninterrupted one would have seen. Every shape is static.
        """
        ...


@runtime_checkable
class Foreseeable(Protocol):
    """What a data source may offer beside: an answer to what opening its data would do, for a dry run."""

    def foresee(self) -> DataSpec | None:
        """Return what the data will be and, in `notice`, what opening them would write or fetch first.

        None where they are ready. Writes nothing and uses no network. `num_examples` is 0 and `fingerprint` empty where
        only the data themselves could tell.
        """
        ...


@runtime_checkable
class Holdable(Protocol):
    """What a data source may offer beside: all its examples on the devices, so that no image is fed from the host."""

    def numbers(
        self, *, global_batch_size: int, seed: int, start_batch: int, host: HostShard = HostShard()
    ) -> tf.data.Dataset:
        """Return int64[B / count], the numbers of the examples of which `batches` makes its element i."""
        ...

    def on_devices(self) -> Callable[[tf.Tensor], Batch] | None:
        """Copy all examples to every device of the strategy in whose scope this is called.

        Returns:
          What makes a `Batch` of numbers int64[B] on a device; None where the data are too large to be held there.
        """
        ...


# --- networks --------------------------------------------------------------------------------------------------------

# generator([latents float32[B, Z], labels int32[B]], training=...) -> images float32[B, H, W, C] in [-1, 1]
# discriminator([images, labels], training=...) -> {"logits": float32[B], ...}
# A factory makes new variables at every call; it is called inside strategy.scope(), never by gin.
NetworkFactory = Callable[[DataSpec], keras.Model]


class Networks(dict[str, keras.Model]):
    """{name: network}, and `spec`, the data that they were made for."""

    def __init__(self, networks: Mapping[str, keras.Model], spec: DataSpec) -> None:
        """Hold `networks`, made for data of `spec`."""
        super().__init__(networks)
        self.spec = spec


def latent_dim(generator: keras.Model) -> int:
    """Return Z of a generator: the width of its first input; raises UserError for a network that is none."""
    shapes = [tuple(one.shape[1:]) for one in generator.inputs]
    if len(shapes) != 2 or len(shapes[0]) != 1:
        raise UserError(
            "A generator takes latents float32[B, Z] and labels int32[B]. Received the network "
            f"{generator.name!r}, which takes inputs of shape {', '.join(map(str, shapes))}. Bind a generator as "
            "`Experiment.networks['generator']`."
        )
    return int(shapes[0][0])


@runtime_checkable
class Portable(Protocol):
    """What a layer that is not Keras's own offers, so that a network with it is exported as a file that others load.

    A layer without weights whose `call` is written with keras.ops needs no such method: its call is taken.
    """

    def as_plain(self, inputs: Any) -> Any:
        """Return what the layer makes of symbolic `inputs` in inference, by means of Keras's layers and ops alone.

        Layers made for it get this one's `dtype_policy`, and its weights as they are now.
        """
        ...


@runtime_checkable
class Composed(Protocol):
    """What a model that is several networks in one offers beside, so that each of them is exported."""

    def parts(self) -> Mapping[str, keras.Model]:
        """Return {name: functional model over the same variables}, as NetworkFactory says; images are in [-1, 1]."""
        ...


# --- losses ----------------------------------------------------------------------------------------------------------


class PlayerLosses(NamedTuple):
    """What an adversarial loss says of each player, one number per example, to be minimised."""

    generator: tf.Tensor  # float32[B]
    discriminator: tf.Tensor  # float32[B]


# One function is the whole game: it serves both players, and relativistic losses fit.
AdversarialLoss = Callable[[tf.Tensor, tf.Tensor], PlayerLosses]  # (real_logits float32[B], fake_logits float32[B])


class Augmentation(Protocol):
    """Changes images at random, each on its own, in a way that lets gradients pass."""

    def __call__(self, images: tf.Tensor, *, random: Random) -> tf.Tensor:
        """Return float32[B, H, W, C] from float32[B, H, W, C]; what two calls draw differs."""
        ...


class Critic(Protocol):
    """The discriminator as a function of images alone: the labels, and augmentations if any, are inside it."""

    def __call__(self, images: tf.Tensor, *, labels_of: Literal["real", "fake"] = "real") -> tf.Tensor:
        """Return logits float32[B] for images float32[B, H, W, C], judged with the labels of one of both batches."""
        ...

    @property
    def real_logits(self) -> tf.Tensor:
        """The logits float32[B] of the real images, as the loss sees them."""
        ...

    @property
    def fake_logits(self) -> tf.Tensor:
        """The logits float32[B] of the generated images, as the loss sees them."""
        ...


class Penalty(Protocol):
    """A term of the discriminator's loss beside the game; knows no model class."""

    def __call__(self, critic: Critic, real: tf.Tensor, fake: tf.Tensor, *, random: Random) -> tf.Tensor:
        """Return float32[B] for images float32[B, H, W, C]."""
        ...


class Losses(NamedTuple):
    """What an objective returns: one number per example, never a mean (the stepper alone reduces)."""

    players: Mapping[str, tf.Tensor]  # {player: float32[B]}
    metrics: Mapping[str, tf.Tensor] = {}  # {name: float32[B]}


class Objective(Protocol):
    """How networks, a batch and losses make the loss of one or more players."""

    def __call__(self, networks: Networks, batch: Batch, *, random: Random) -> Losses:
        """Return the losses of exactly those players that the update names."""
        ...


# --- a training step -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Player:
    """Who moves: networks that one optimizer trains.

    Attributes:
      optimizer: makes a new optimizer; each player gets an instance of its own.
      networks: names of the networks trained; None: the one that bears the player's name.
      ema_decay: in [0, 1); keeps an exponential moving average of the networks' weights, which samples are drawn from.
        The first moves use min(ema_decay, (1 + n) / (10 + n)) after n moves. None: no average, unless a half-life is
        given.
      ema_half_life_images: the same, said by the number of real images after which a weight counts half:
        ema_decay = 2^(-images of a move / half-life), whatever the batch is (Karras et al., 2019, arXiv:1912.04958).
      ema_start_step: until this step the average is the weights themselves.
      weight_clip: c > 0; after every move each weight is clipped to [-c, c] (Arjovsky et al., 2017, arXiv:1701.07875,
        algorithm 1). None: no clipping. To clip gradients, bind the optimizer's `global_clipnorm` or `clipvalue`.
    """

    optimizer: Callable[[], keras.optimizers.Optimizer]
    networks: tuple[str, ...] | None = None
    ema_decay: Share | None = None
    ema_half_life_images: Positive | None = None
    ema_start_step: Annotated[int, Ge(0)] = 0
    weight_clip: Annotated[float, Gt(0)] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        if self.networks is not None and len(set(self.networks)) != len(self.networks):
            raise UserError(f"`Player.networks` names each network once. Received {tuple(self.networks)}.")
        if isinstance(self.optimizer, keras.optimizers.Optimizer):
            raise UserError(
                "`Player.optimizer` must be something that makes an optimizer, since two players never share one. "
                f"Received the optimizer {type(self.optimizer).__name__}. In gin, leave off the parentheses: "
                "`Player.optimizer = @keras.optimizers.Adam`."
            )
        if self.ema_decay is not None and not 0 <= self.ema_decay < 1:
            raise UserError(f"`Player.ema_decay` must be in [0, 1), or None. Received {self.ema_decay}.")
        if self.ema_decay is not None and self.ema_half_life_images is not None:
            raise UserError(
                "An average has one decay. Received `Player.ema_decay` and `Player.ema_half_life_images`. Bind one of "
                "them."
            )
        if self.ema_start_step and not self.keeps_average:
            raise UserError(
                f"`Player.ema_start_step` delays an average. Received {self.ema_start_step} without one. Bind "
                "`Player.ema_decay` or `Player.ema_half_life_images` too."
            )

    @property
    def keeps_average(self) -> bool:
        """Whether the networks' weights are averaged."""
        return self.ema_decay is not None or self.ema_half_life_images is not None


@dataclass(frozen=True, kw_only=True)
class Update:
    """One move of a training step: an objective and the players that descend on it together.

    Attributes:
      objective: gives the loss of every player named, and of no other.
      players: {name: player}; the gradients of all are taken before any of them moves.
      repeats: how often the move is made in a step, each time on fresh batches.
      every: the move is made in the steps that this number divides.
      accumulate: fresh batches whose gradients are averaged for one move: a batch so many times as large as memory
        allows. What looks across a batch (BatchNorm, the relativistic average) sees one of them at a time.
      loss_name: the losses are reported as PLAYER/loss_name; two updates never report under one name.
    """

    objective: Objective
    players: Mapping[str, Player]
    repeats: Positive = 1
    every: Positive = 1
    accumulate: Positive = 1
    loss_name: str = "loss"

    def __post_init__(self) -> None:
        """Refuse counts that make no move."""
        for name in ("repeats", "every", "accumulate"):
            if getattr(self, name) < 1:
                raise UserError(f"`Update.{name}` must be at least 1. Received {getattr(self, name)}.")


@runtime_checkable
class Stepper(Protocol):
    """Runs an ordered list of updates; knows no algorithm by name."""

    step: tf.Variable  # int64, +1 per full list of updates
    batches_per_step: int  # fresh global batches that one step draws
    averages: Mapping[str, keras.Model]  # {network: its exponential moving average}, for players that keep one

    def state(self) -> Mapping[str, Sequence[tf.Variable]]:
        """Return {name: variables}: all that the next step depends on, for the checkpointer."""
        ...

    def rehearse(self) -> None:
        """Trace every objective without running it: faults in shapes, names and players show before step 0."""
        ...

    def run(self, iterator: Iterator[Batch], num_steps: int) -> Mapping[str, float]:
        """Run `num_steps` steps in one call and return {metric: its mean over the steps run}."""
        ...


@runtime_checkable
class Auditing(Protocol):
    """What a stepper may offer beside, to find numbers that are no longer finite, and where they arose."""

    metrics: Sequence[str]  # the names of all that `run` returns, known after `rehearse`

    def lost(self) -> Sequence[str]:
        """Return the names of the variables that hold NaN or infinity; it looks at every one."""
        ...

    def inspect(self, iterator: Iterator[Batch]) -> str:
        """Run one step with a look at every layer; return where the first such number arose, "" where none did."""
        ...


class StepperFactory(Protocol):
    """Makes a stepper inside strategy.scope()."""

    def __call__(
        self,
        *,
        networks: Networks,
        copy_network: Callable[[str], keras.Model],
        updates: Sequence[Update],
        global_batch_size: int,
        seed: int,
    ) -> Stepper:
        """`copy_network(name)` makes another network of that name with the same weights, for averages."""
        ...


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What was chosen to run on, and why."""

    strategy: tf.distribute.Strategy
    accelerator: str  # "tpu", "gpu" or "cpu"
    description: str  # one line for a person
    shortfall: str = ""  # what was asked for and not found; empty: nothing
    meant_for_tpu: bool = False  # a TPU, or what stands in for the one that was asked for
    is_remote: bool = False  # the devices belong to another machine, which reads no file of this one
    is_chief: bool = True  # the one process that writes, where several hosts share a run
    wait_for_all: Callable[[], None] = lambda: None  # returns when all processes of the run have called it
    agree: Callable[[int], int] = lambda number: number  # the largest of what all processes give, each 0 to 64


StrategyFactory = Callable[[], Hardware]


# --- state and results -----------------------------------------------------------------------------------------------


class Checkpointer(Protocol):
    """Saves and restores everything that shapes the next step."""

    def restore_latest(self) -> int:
        """Restore the newest whole checkpoint and return its step; 0 where there is none yet."""
        ...

    def restore(self, step: int) -> None:
        """Restore the checkpoint of one step."""
        ...

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints there are, oldest first."""
        ...

    def save(self, step: int) -> None:
        """Save all state as that of `step`; either the whole checkpoint is there afterwards, or nothing is."""
        ...


class BestCheckpoint(NamedTuple):
    """The best checkpoint of a run so far."""

    step: int
    metric: str
    value: float


@runtime_checkable
class Remembering(Protocol):
    """What keeps numbers on the host that decisions depend on; a checkpoint holds them: a resume decides alike."""

    def state(self) -> Mapping[str, Any]:
        """Return the numbers, as JSON can say them."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; {} is that of a run that has just begun."""
        ...


@runtime_checkable
class Curating(Protocol):
    """What a checkpointer may offer beside: it knows the best checkpoint, and what the host remembers."""

    metrics: Sequence[str]  # without which it knows no best; empty: none was asked for
    best: BestCheckpoint | None

    def observe(self, step: int, metrics: Mapping[str, float]) -> None:
        """Note whether `metrics` make `step` the best so far: it is then to be saved. Other metrics are passed over."""
        ...

    def restore_best(self) -> int:
        """Restore the best checkpoint and return its step; raises UserError where none is known."""
        ...

    def remember(self, name: str, part: Remembering) -> None:
        """Save and restore the numbers of `part` with every checkpoint from now on."""
        ...

    def finish(self) -> None:
        """Return when nothing is being written any more; raises UserError where something could not be written."""
        ...


class CheckpointerFactory(Protocol):
    """Makes a checkpointer over named lists of variables."""

    def __call__(self, directory: str, state: Mapping[str, Sequence[tf.Variable]]) -> Checkpointer:
        """`state` is {name: variables}; a restore must match each of them."""
        ...


class Sampler(Protocol):
    """Draws images from a trained network."""

    def sample(self, num_images: int, *, seed: int, labels: Sequence[int] | None = None) -> Any:
        """Return uint8[N, H, W, C], image i from (seed, i, labels[i]) alone; labels None: classes in turn."""
        ...


@runtime_checkable
class Reconstructor(Protocol):
    """What the sampler of an autoencoder may offer beside."""

    def reconstruct(self, images: Any, *, labels: Sequence[int] | None = None) -> Any:
        """Return uint8[N, H, W, C]: what the networks make of images uint8[N, H, W, C]."""
        ...


@runtime_checkable
class Decoder(Protocol):
    """What a sampler may offer beside: images of given latents, for walks through the latent space."""

    latent_dim: int  # Z

    def latents(self, num_images: int, *, seed: int, truncation: float | None = None) -> Any:
        """Return float32[N, Z]: those that `sample` draws, row i from (seed, i) alone.

        They are standard normal; with a truncation, given that none is beyond [-truncation, truncation].
        """
        ...

    def decode(self, latents: Any, labels: Any) -> Any:
        """Return uint8[N, H, W, C] of latents float32[N, Z] and their classes, int[N] or float32[N, K].

        The latter are shares of every class, each row a sum of 1; raises UserError where the network cannot mix them.
        """
        ...


@runtime_checkable
class Encoder(Protocol):
    """What the sampler of an autoencoder may offer beside: the latents of given images."""

    def encode(self, images: Any, *, labels: Sequence[int] | None = None) -> Any:
        """Return float32[N, Z]: the means of the posteriors of images uint8[N, H, W, C]."""
        ...


@runtime_checkable
class Requestable(Protocol):
    """What a sampler may tell beside; one that does not is taken to draw the classes asked for."""

    conditional: bool  # whether the images depend on the labels


def draws_class_on_request(sampler: Sampler) -> bool:
    """Return whether the images depend on their labels, as far as the sampler tells."""
    return not isinstance(sampler, Requestable) or sampler.conditional


SamplerFactory = Callable[[Networks], Sampler]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One number of an evaluation, with all that it takes to know what it means.

    Attributes:
      value: the mean over the sampling seeds.
      spread: the standard deviation over them.
      real: the same of real images in the place of generated ones; None where that means nothing.
      better: which way is better; None: neither.
      certificate: {name: value}, as JSON can say them: data, counts, seeds, what features are of, which weights.
    """

    value: float
    spread: float
    real: float | None
    better: Literal["lower", "higher"] | None
    certificate: Mapping[str, Any]


class Evaluator(Protocol):
    """Scores the networks as they stand; neither they nor any random state change by it."""

    @property
    def metric_names(self) -> Sequence[str]:
        """The names of all that `evaluate` returns."""
        ...

    def prepare(self) -> None:
        """Open and measure what does not change in training: the faults of an evaluation show before step 0."""
        ...

    def evaluate(self, step: int) -> Mapping[str, Measurement]:
        """Return {metric: measurement} of the weights of `step`, the same for the same weights."""
        ...


class EvaluatorFactory(Protocol):
    """Makes an evaluator; opens no data."""

    def __call__(
        self,
        *,
        networks: Networks,
        averaged: Sequence[str],
        sampler: Sampler,
        data: DataSource,
        updates: Sequence[Update],
    ) -> Evaluator:
        """`networks` are those that images are drawn from; of the names in `averaged` they are moving averages."""
        ...


@runtime_checkable
class Watch(Remembering, Protocol):
    """Follows the quality of a run, warns where it falls, and may ask for the end."""

    metrics: Sequence[str]  # without which it sees nothing

    def observe(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take the metrics of a step; those that it does not follow are passed over."""
        ...

    def reason_to_stop(self) -> str:
        """Return why the run is over, in a few words; "": it goes on."""
        ...


WatchFactory = Callable[[Sampler], Watch]


class Grid(NamedTuple):
    """Images of one picture, row by row."""

    images: Any  # uint8[N, H, W, C]
    columns: int


Preview = Callable[[], Grid]  # the same latents and the same real examples at every call
PreviewFactory = Callable[[Sampler, DataSource, int], Preview]  # (the run's sampler, its data, its seed)


class Writer(Protocol):
    """Keeps what a run reports; touches no file before it is given something."""

    def rewind(self, step: int) -> None:
        """Forget what was written after `step`, where the run now goes on: it was cut off before its next save."""
        ...

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write one point of every curve named."""
        ...

    def images(self, step: int, name: str, images: Any) -> None:
        """Write one picture uint8[H, W, C]."""
        ...

    def close(self) -> None:
        """Leave nothing unwritten."""
        ...


@runtime_checkable
class Choosy(Protocol):
    """What a writer may offer beside: the names of the previews without which it has nothing to keep."""

    previews: Sequence[str]


WriterFactory = Callable[[str], Writer]  # (run folder)
Action = Callable[[int, Mapping[str, float]], None]
