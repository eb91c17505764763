"""Order, schedules, bystanders, metrics and refusals of the stepper."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_parts import TOYS, ToySource, numbers_of, sgd, toy_discriminator, toy_run

from components.interfaces import Losses, Player, Update, UserError

B = 4
ONLY = {"discriminator": toy_discriminator}


def player(rate=1e-3, **options):
    return Player(optimizer=sgd(rate), **options)


def made(updates, factories=TOYS, hardware="one_device", batch=B):
    """Return (stepper, networks, iterator)."""
    return toy_run(updates, factories, hardware=hardware, global_batch_size=batch)


class Weight(keras.Model):
    """One number, whatever the images are."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.weight = self.add_weight(shape=(), initializer=keras.initializers.Constant(value), name="weight")
        self.built = True

    def call(self, images):
        return self.weight * tf.ones([images.shape[0]])


PAIR = {"left": lambda spec: Weight(1.0), "right": lambda spec: Weight(2.0)}


def product(*players):
    """Return an objective: left descends on left * right, right climbs it."""

    def objective(networks, batch, *, random):
        value = networks["left"](batch["image"]) * networks["right"](batch["image"])
        return Losses({name: value if name == "left" else -value for name in players})

    return objective


def judged(networks, batch, *, random):
    return Losses(
        {"discriminator": networks["discriminator"]([batch["image"], batch["label"]], training=True)["logits"]}
    )


def generated(networks, batch, *, random):
    images = networks["generator"]([random.normal("latents", [3]), batch["label"]], training=True)
    return Losses({"generator": networks["discriminator"]([images, batch["label"]], training=True)["logits"]})


def moves(stepper, name):
    return int(stepper.state()[f"{name}/optimizer"][0].numpy())


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2"])
def test_repeats_and_every_make_the_moves_they_say(hardware) -> None:
    updates = [
        Update(objective=product("left"), players={"left": player()}, repeats=3),
        Update(objective=product("right"), players={"right": player()}, every=2),
    ]
    stepper, _, iterator = made(updates, PAIR, hardware)
    for count, left, right, step in (
        (5, 15, 3, 5),  # steps 0 to 4: right moves in 0, 2 and 4
        (1, 18, 3, 6),  # step 5
        (2, 24, 4, 8),  # steps 6 and 7
    ):
        stepper.run(iterator, count)
        assert (moves(stepper, "left"), moves(stepper, "right"), int(stepper.step.numpy())) == (left, right, step)


def with_brightness(objective, name):
    """Return an objective that also reports the mean pixel of each real image."""

    def brightness(networks, batch, *, random):
        seen = tf.reduce_mean(batch["image"], axis=[1, 2, 3])
        return Losses(objective(networks, batch, random=random).players, {name: seen})

    return brightness


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2"])
def test_each_repeat_sees_a_fresh_batch_and_metrics_are_means_over_the_moves_made(hardware) -> None:
    updates = [
        Update(objective=with_brightness(product("left"), "first"), players={"left": player()}, repeats=2),
        Update(objective=with_brightness(product("right"), "second"), players={"right": player()}, every=2),
    ]
    stepper, _, iterator = made(updates, PAIR, hardware)
    mean = [b["image"].numpy().mean() for b in ToySource().batches(global_batch_size=B, seed=0, start_batch=0).take(8)]
    metrics = stepper.run(iterator, 3)  # step s draws batches 2 s and 2 s + 1; the second update moves in 0 and 2
    np.testing.assert_allclose(metrics["first"], np.mean(mean[:6]), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(metrics["second"], np.mean([mean[0], mean[4]]), rtol=1e-4, atol=1e-6)
    metrics = stepper.run(iterator, 1)  # step 3: the second update is not due, and has nothing to report
    np.testing.assert_allclose(metrics["first"], np.mean(mean[6:8]), rtol=1e-4, atol=1e-6)
    assert set(metrics) == {"first", "left/loss"}


def test_many_steps_in_one_call_are_the_bits_of_one_step_in_many() -> None:
    updates = [Update(objective=judged, players={"discriminator": player(0.1, ema_decay=0.9)}, repeats=2)]
    numbers = []
    for steps in ([4], [1, 2, 1]):
        stepper, networks, iterator = made(updates, ONLY)
        for count in steps:
            stepper.run(iterator, count)
        numbers.append(numbers_of(stepper, networks))
    for name, value in numbers[0].items():
        np.testing.assert_array_equal(value, numbers[1][name], err_msg=name)
    assert numbers[0]["step/0"] == 4


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2"])
def test_players_of_one_update_move_together_and_updates_one_after_the_other(hardware) -> None:
    both = {"left": player(0.1), "right": player(0.1)}
    together = [Update(objective=product("left", "right"), players=both)]
    in_turn = [Update(objective=product(name), players={name: both[name]}) for name in both]
    reached = {}
    for name, updates in (("together", together), ("in_turn", in_turn)):
        stepper, networks, iterator = made(updates, PAIR, hardware)
        metrics = stepper.run(iterator, 1)
        reached[name] = [float(network.weight.numpy()) for network in networks.values()]
        np.testing.assert_allclose(metrics["left/loss"], 2.0, rtol=1e-6)  # before the move
    # left: 1 - 0.1 * 2; right: 2 + 0.1 * left, which is 1 before left has moved and 0.8 after.
    np.testing.assert_allclose(reached["together"], [0.8, 2.1], rtol=1e-6)
    np.testing.assert_allclose(reached["in_turn"], [0.8, 2.08], rtol=1e-6)


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2"])
def test_scaled_loss_makes_the_same_move_and_reports_the_loss_unscaled(hardware) -> None:
    def scaled():
        return keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=1024.0)

    players = {name: Player(optimizer=scaled) for name in PAIR}
    updates = [Update(objective=product("left", "right"), players=players)]
    stepper, networks, iterator = made(updates, PAIR, hardware)
    metrics = stepper.run(iterator, 1)
    np.testing.assert_allclose([n.weight.numpy() for n in networks.values()], [0.8, 2.1], rtol=1e-6)
    np.testing.assert_allclose(metrics["left/loss"], 2.0, rtol=1e-6)


def test_each_player_has_an_optimizer_of_its_own() -> None:
    stepper, _, iterator = made(
        [Update(objective=product("left", "right"), players=dict.fromkeys(PAIR, player()))], PAIR
    )
    stepper.run(iterator, 2)
    left, right = (stepper.state()[f"{name}/optimizer"] for name in PAIR)
    assert not {id(v) for v in left} & {id(v) for v in right}
    assert moves(stepper, "left") == moves(stepper, "right") == 2


def test_an_update_moves_the_statistics_of_its_own_player_only() -> None:
    both = {"generator": player(), "discriminator": player()}
    for mover, objective in (("generator", generated), ("discriminator", judged)):
        other = ({*both} - {mover}).pop()
        idle = Update(
            objective={"generator": generated, "discriminator": judged}[other], players={other: both[other]}, every=9
        )
        stepper, networks, iterator = made([Update(objective=objective, players={mover: both[mover]}), idle])
        stepper.run(iterator, 1)  # step 0: both move
        before = {name: [v.numpy() for v in n.non_trainable_variables] for name, n in networks.items()}
        stepper.run(iterator, 2)  # steps 1 and 2: one moves, and the generator's passes through the discriminator
        after = {name: [v.numpy() for v in n.non_trainable_variables] for name, n in networks.items()}
        for left, right in zip(before[other], after[other], strict=True):
            np.testing.assert_array_equal(left, right)
        assert any(not np.array_equal(left, right) for left, right in zip(before[mover], after[mover], strict=True))


def _dropout(spec):
    images, labels = keras.Input(spec.image_shape), keras.Input((), dtype="int32")
    x = keras.layers.Dropout(0.5)(keras.layers.Dense(3)(keras.layers.Flatten()(images)))
    return keras.Model([images, labels], {"logits": keras.layers.Dense(1)(x)[:, 0]})


def _deep_dropout(spec):
    inner = keras.Sequential([keras.layers.Dense(3), keras.layers.GaussianNoise(0.5)])
    images, labels = keras.Input(spec.image_shape), keras.Input((), dtype="int32")
    x = inner(keras.layers.Flatten()(images))
    return keras.Model([images, labels], {"logits": keras.layers.Dense(1)(x)[:, 0]})


def _blind(spec):
    images, labels = keras.Input(spec.image_shape), keras.Input((), dtype="int32")
    x = keras.layers.Flatten()(images)
    outputs = {"logits": keras.layers.Dense(1)(x)[:, 0], "idle": keras.layers.Dense(1, name="idle")(x)}
    return keras.Model([images, labels], outputs)


def _mean(networks, batch, *, random):
    return Losses({"discriminator": tf.reduce_mean(judged(networks, batch, random=random).players["discriminator"])})


def _half(networks, batch, *, random):
    return Losses(
        {"discriminator": tf.cast(judged(networks, batch, random=random).players["discriminator"], tf.float16)}
    )


def _stranger(networks, batch, *, random):
    return Losses({"somebody": judged(networks, batch, random=random).players["discriminator"]})


@pytest.mark.parametrize(
    ("updates", "factories", "words"),
    [
        ([Update(objective=_mean, players={"discriminator": player()})], ONLY, "one number per example"),
        ([Update(objective=_half, players={"discriminator": player()})], ONLY, "float16"),
        ([Update(objective=_stranger, players={"discriminator": player()})], ONLY, "somebody"),
        (
            [Update(objective=judged, players={"discriminator": player()})],
            {"discriminator": _deep_dropout},
            "gaussian_noise",
        ),
        (
            [
                Update(objective=judged, players={"discriminator": player()}),
                Update(objective=generated, players={"generator": player(networks=("generator", "discriminator"))}),
            ],
            TOYS,
            "'discriminator' is trained by discriminator and generator",
        ),
        ([Update(objective=judged, players={"discriminator": player()})], TOYS, "'generator' is trained by none"),
        ([Update(objective=judged, players={"critic": player()})], ONLY, "names 'critic'"),
        (
            [Update(objective=judged, players={"discriminator": player()})],
            {"discriminator": _dropout},
            "StatelessDropout",
        ),
        ([Update(objective=judged, players={"discriminator": player()})], {"discriminator": _blind}, "idle/bias"),
        ([Update(objective=judged, players={"discriminator": player()})] * 2, ONLY, "under one name"),
        (
            [
                Update(objective=judged, players={"discriminator": player()}),
                Update(objective=judged, players={"discriminator": player(0.5)}, loss_name="other"),
            ],
            ONLY,
            "two different ones named 'discriminator'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_a_step_is_made(updates, factories, words) -> None:
    with pytest.raises(UserError, match=words.replace("(", "\\(")):
        stepper, networks, iterator = made(updates, factories)
        before = [w.copy() for network in networks.values() for w in network.get_weights()]
        try:
            stepper.run(iterator, 1)
        finally:
            after = [w for network in networks.values() for w in network.get_weights()]
            for left, right in zip(before, after, strict=True):
                np.testing.assert_array_equal(left, right)


def test_batch_that_replicas_do_not_divide_is_refused_with_the_next_that_they_do() -> None:
    with pytest.raises(UserError, match="Use 6"):
        made([Update(objective=judged, players={"discriminator": player()})], ONLY, "cpu:2", batch=5)


def test_optimizer_in_place_of_its_maker_is_refused() -> None:
    with pytest.raises(UserError, match="leave off the parentheses"):
        Player(optimizer=keras.optimizers.SGD())
