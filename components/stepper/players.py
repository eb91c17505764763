"""The live side of a player: its variables, its optimizer, its average."""

from collections.abc import Callable, Mapping, Sequence

import keras
import tensorflow as tf

from components.interfaces import Networks, Player, Update, UserError
from components.stepper.fused_adam import fuse


class LivePlayer:
    """What a `Player` became inside strategy.scope().

    Attributes:
      name: as in the updates.
      network_names: the networks trained.
      trainable: their trainable variables.
      optimizer: built for those.
      averages: {network name: a copy that follows its average}.
    """

    def __init__(
        self,
        name: str,
        player: Player,
        networks: Networks,
        copy_network: Callable[[str], keras.Model],
        images_per_move: int,
    ) -> None:
        """Make the optimizer and the averages; raises UserError for what does not fit."""
        self.name = name
        self.network_names = (name,) if player.networks is None else tuple(player.networks)
        self._networks = [_network(networks, network, name) for network in self.network_names]
        self.trainable = [v for network in self._networks for v in network.trainable_variables]
        self._out_of_reach = {v.path for v in self.trainable}
        self.optimizer = player.optimizer()
        fuse(self.optimizer)
        if keras.config.dtype_policy().name == "mixed_float16":
            # A scale for each player: a gradient too small or too large for float16 is one player's own affair.
            self.optimizer = keras.optimizers.LossScaleOptimizer(self.optimizer)
        self._clips_gradients = clips_gradients(self.optimizer, name)
        is_scaled = isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer)
        is_shared = tf.distribute.get_strategy().num_replicas_in_sync > 1
        self._looks_at_all = self._clips_gradients or (is_scaled and is_shared)
        self.optimizer.build(self.trainable)
        self._player = player
        self._decay = player.ema_decay
        if player.ema_half_life_images is not None:
            self._decay = 0.5 ** (images_per_move / player.ema_half_life_images)
        self.averages = {network: copy_network(network) for network in self.network_names if player.keeps_average}

    def move(self, gradients: Sequence[tf.Tensor | None], step: tf.Tensor) -> None:
        """Apply this replica's share of the gradients (Keras sums them over replicas) and move the averages.

        Args:
          gradients: one a variable of `trainable`; None, where this update's loss does not know it, counts as 0.
          step: int64[], the step being run.
        """
        self._out_of_reach -= {v.path for v, g in zip(self.trainable, gradients, strict=True) if g is not None}
        # Dense: of a table's look-ups Keras squares each, where a row's gradient is the sum of its look-ups.
        filled = [
            tf.zeros_like(v) if g is None else tf.convert_to_tensor(g)
            for v, g in zip(self.trainable, gradients, strict=True)
        ]
        self.optimizer.apply(self._of_the_batch(filled) if self._looks_at_all else filled, self.trainable)
        if (limit := self._player.weight_clip) is not None:
            for variable in self.trainable:
                variable.assign(tf.clip_by_value(variable, -limit, limit))
        if self.averages:
            self._follow(step)

    def _of_the_batch(self, gradients: Sequence[tf.Tensor]) -> Sequence[tf.Tensor]:
        """Return this replica's share of the gradient of the global batch, clipped where the optimizer clips.

        Keras would clip each replica's share, so that N replicas would take another step than one, and look for an
        overflow of float16 in the first replica's share alone. Clipping is the optimizer's own, and does nothing to a
        share of what it has clipped.
        """
        replica, whole = tf.distribute.get_replica_context(), gradients
        if replica.num_replicas_in_sync > 1:
            whole = replica.all_reduce(tf.distribute.ReduceOp.SUM, whole)
        clipped = self.optimizer._clip_gradients(whole) if self._clips_gradients else whole
        return [gradient / replica.num_replicas_in_sync for gradient in clipped]

    def require_reached(self) -> None:
        """Raise UserError where a variable has no gradient from any update; all must have been traced."""
        if self._out_of_reach:
            raise UserError(
                f"Every variable of player {self.name!r} must influence a loss of its own. No gradient reaches: "
                f"{', '.join(sorted(self._out_of_reach))}. Give them to the player whose loss uses them, or leave them "
                "out of the network."
            )

    def _follow(self, step: tf.Tensor) -> None:
        """Move each average; every replica computes the same numbers from the same weights."""
        moves = tf.cast(self.optimizer.iterations, tf.float32)
        decay = tf.minimum(self._decay, (1.0 + moves) / (10.0 + moves))
        if self._player.ema_start_step:
            decay = tf.where(step < self._player.ema_start_step, 0.0, decay)
        for name, network in zip(self.network_names, self._networks, strict=True):
            averages = {id(v): a for v, a in zip(network.variables, self.averages[name].variables, strict=True)}
            for variable in network.trainable_variables:
                average = averages[id(variable)]
                average.assign(average + (1.0 - decay) * (variable - average))
            for variable in network.non_trainable_variables:  # statistics are averages already
                averages[id(variable)].assign(variable)


def clips_gradients(optimizer: keras.optimizers.Optimizer, player: str) -> bool:
    """Say whether an optimizer clips gradients; raises UserError for settings that have another place here.

    Keras accumulates inside a condition, which dies on several replicas, its own average is never sampled from, and its
    constant scale would be clipped with the gradient.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    elsewhere = {
        "gradient_accumulation_steps": "the objective's `accumulate`, such as gan.alternating.accumulate",
        "use_ema": "`Player.ema_decay`",
        "loss_scale_factor": "`Experiment.precision = 'mixed_float16'`, which finds its own",
    }
    for name, place in elsewhere.items():
        if getattr(inner, name, None):
            raise UserError(
                f"`{name}` of an optimizer is set elsewhere here. Received {getattr(inner, name)!r} in the "
                f"{type(inner).__name__} of player {player!r}. Use {place} instead."
            )
    clips = any(getattr(inner, name, None) for name in ("clipnorm", "global_clipnorm", "clipvalue"))
    if clips and inner is not optimizer and tf.distribute.get_strategy().num_replicas_in_sync > 1:
        raise UserError(
            "An optimizer with a scaled loss clips each replica's gradient on its own, which is another step than that "
            f"of one device. Received both for player {player!r} on several replicas. Leave out the clipping, or the "
            "scaling."
        )
    return clips


def seat_players(
    updates: Sequence[Update], networks: Networks, copy_network: Callable[[str], keras.Model], global_batch_size: int
) -> dict[str, LivePlayer]:
    """Return {name: live player} of all updates; every trainable variable has exactly one owner.

    Raises:
      UserError: one name for two different players, a network with two owners or none, hidden generator state.
    """
    players: dict[str, Player] = {}
    images: dict[str, int] = {}  # real images of a player's move
    for update in updates:
        for name, player in update.players.items():
            images[name] = global_batch_size * update.accumulate
            if players.setdefault(name, player) != player:
                raise UserError(
                    f"A player must be the same in every update. Received two different ones named {name!r}. "
                    "Bind the same Player in both, or name them differently."
                )
    live = {name: LivePlayer(name, player, networks, copy_network, images[name]) for name, player in players.items()}
    _check_owners(live, networks)
    for name, network in networks.items():
        _check_stateless(name, network)
    return live


def _network(networks: Mapping[str, keras.Model], name: str, player: str) -> keras.Model:
    if name not in networks:
        raise UserError(
            f"A player trains networks of the experiment. Player {player!r} names {name!r}; there are "
            f"{', '.join(networks)}. Set `Player.networks`, or rename the network in `Experiment.networks`."
        )
    return networks[name]


def _check_owners(players: Mapping[str, LivePlayer], networks: Networks) -> None:
    for network in networks:
        owners = [player.name for player in players.values() if network in player.network_names]
        if len(owners) != 1 and networks[network].trainable_variables:
            raise UserError(
                f"Every network must be trained by exactly one player. Network {network!r} is trained by "
                f"{' and '.join(owners) or 'none'}. Name it in one `Player.networks`, or take it out of "
                "`Experiment.networks`."
            )


def _check_stateless(name: str, network: keras.Model) -> None:
    """Refuse layers that hide generator state: it would repeat on every replica and be lost on resume."""
    hidden = [layer.name for layer in network._flatten_layers() if getattr(layer, "seed_generator", None) is not None]
    hidden += [v.path for v in network.non_trainable_variables if "seed_generator" in v.path]
    if hidden:
        raise UserError(
            f"Randomness in training must be stateless. Network {name!r} holds generator state in "
            f"{', '.join(sorted(set(hidden)))}. Use `components.model_zoo.layers.StatelessDropout` for dropout, and "
            "`components.interfaces.current_random()` in layers of your own."
        )
