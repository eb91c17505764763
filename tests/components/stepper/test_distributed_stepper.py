"""Schedules, bystanders, metrics and refusals of the stepper."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_parts import ToySource, toy_discriminator, toy_generator

from components.interfaces import Losses, Networks, Player, Update, UserError
from components.loss_library import adversarial
from components.objectives import gan
from components.stepper import strategy
from components.stepper.distributed_stepper import DistributedStepper

B = 4
TOYS = {"generator": toy_generator, "discriminator": toy_discriminator}


def player(rate=1e-3, **options):
    return Player(optimizer=lambda: keras.optimizers.SGD(rate), **options)


def made(updates, factories=None, hardware="one_device", batch=B):
    """Return (stepper, networks, iterator)."""
    factories, source, chosen = factories or TOYS, ToySource(), strategy.select(name=hardware).strategy
    with chosen.scope():
        networks = Networks({name: make(source.spec) for name, make in factories.items()}, source.spec)
        stepper = DistributedStepper(
            networks=networks,
            copy_network=lambda name: factories[name](source.spec),
            updates=updates,
            global_batch_size=batch,
            seed=0,
        )
    rows = batch // chosen.num_replicas_in_sync
    data = source.batches(global_batch_size=batch, seed=0, start_batch=0).rebatch(rows, drop_remainder=True)
    return stepper, networks, iter(chosen.distribute_datasets_from_function(lambda context: data))


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
        Update(objective=judged, players={"discriminator": player()}, repeats=3),
        Update(objective=generated, players={"generator": player()}, every=2),
    ]
    stepper, _, iterator = made(updates, hardware=hardware)
    stepper.run(iterator, 5)  # steps 0 to 4: the generator moves in 0, 2 and 4
    assert (moves(stepper, "discriminator"), moves(stepper, "generator"), int(stepper.step.numpy())) == (15, 3, 5)
    stepper.run(iterator, 2)  # steps 5 and 6
    assert (moves(stepper, "discriminator"), moves(stepper, "generator"), int(stepper.step.numpy())) == (21, 4, 7)


def test_each_repeat_sees_a_fresh_batch_and_the_metric_is_their_mean() -> None:
    def brightness(networks, batch, *, random):
        seen = tf.reduce_mean(batch["image"], axis=[1, 2, 3])
        return Losses(judged(networks, batch, random=random).players, {"brightness": seen})

    update = Update(objective=brightness, players={"discriminator": player()}, repeats=2)
    stepper, _, iterator = made([update, Update(objective=generated, players={"generator": player()})])
    metrics = stepper.run(iterator, 3)
    batches = ToySource().batches(global_batch_size=B, seed=0, start_batch=0).take(6)
    expected = np.mean([batch["image"].numpy().mean() for batch in batches])
    np.testing.assert_allclose(metrics["brightness"], expected, rtol=1e-4, atol=1e-6)


def test_many_steps_in_one_call_are_the_bits_of_one_step_in_many() -> None:
    numbers = []
    for calls, steps in ((1, 4), (4, 1)):
        stepper, networks, iterator = made(
            gan.alternating(loss=adversarial.hinge, generator=player(), discriminator=player())
        )
        for index, network in enumerate(networks.values()):
            network.set_weights([np.full_like(w, 0.1 * (index + 1)) for w in network.get_weights()])
        for _ in range(calls):
            stepper.run(iterator, steps)
        numbers.append([v.numpy() for network in networks.values() for v in network.variables])
    for left, right in zip(*numbers, strict=True):
        np.testing.assert_array_equal(left, right)


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


ONLY = {"discriminator": toy_discriminator}


@pytest.mark.parametrize(
    ("updates", "factories", "words"),
    [
        ([Update(objective=_mean, players={"discriminator": player()})], ONLY, "one number per example"),
        ([Update(objective=_half, players={"discriminator": player()})], ONLY, "float16"),
        ([Update(objective=_stranger, players={"discriminator": player()})], ONLY, "somebody"),
        ([Update(objective=judged, players={"discriminator": player()})], None, "'generator' is trained by none"),
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
