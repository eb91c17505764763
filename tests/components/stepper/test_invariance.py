"""One replica and N take the same step."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_games import GAMES, TOYS, B, require_close, sgd, trained
from toy_parts import ToySource, toy_spec

from components.interfaces import Losses, Player, Update, UserError, current_memory
from components.model_zoo import cgan, dcgan

FAST = ("alternating",)
ON_EIGHT = ("alternating", "simultaneous")  # a trace on eight replicas takes the time of eight
CASES = [
    pytest.param(game, hardware, marks=[] if game in FAST and hardware == "cpu:2" else pytest.mark.slow)
    for game in GAMES
    for hardware in ("cpu:2", "cpu:8")
    if hardware == "cpu:2" or game in ON_EIGHT
]


@pytest.mark.parametrize(("game", "hardware"), CASES)
def test_toy_game_on_replicas_is_that_on_one(game, hardware) -> None:
    require_close(trained("one_device", TOYS, GAMES[game]()), trained(hardware, TOYS, GAMES[game]()))


@pytest.mark.parametrize("hardware", ["one_device", pytest.param("cpu:2", marks=pytest.mark.slow)])
def test_steps_in_a_loop_of_the_device_are_those_called_one_by_one(hardware) -> None:
    looped, called = (trained(hardware, TOYS, GAMES["lazy"](), loop_on_device=loops) for loops in (True, False))
    for name, value in looped[0].items():
        np.testing.assert_array_equal(value, called[0][name], err_msg=name)
    assert looped[1] == called[1]


@pytest.mark.parametrize("hardware", ["one_device", pytest.param("cpu:2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("loops", [False, True], ids=["called", "looped"])
def test_batches_of_a_form_that_was_not_rehearsed_train_as_the_others_do(loops, hardware) -> None:
    wide = [
        trained(hardware, TOYS, GAMES["generator_first"](), loop_on_device=loops, label=label, steps=2)[0]
        for label in (tf.int32, tf.int64)
    ]
    for name, value in wide[0].items():
        np.testing.assert_array_equal(wide[1][name], value, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(("zoo", "hardware"), [(cgan, "cpu:2"), (dcgan, "cpu:4")])
def test_real_networks_on_replicas_are_those_on_one(zoo, hardware) -> None:
    factories = {"generator": zoo.generator, "discriminator": zoo.discriminator}
    spec = toy_spec(8, 8, 1, num_classes=10)
    one = trained("one_device", factories, GAMES["alternating"](), spec=spec)
    require_close(one, trained(hardware, factories, GAMES["alternating"](), spec=spec))


class OneWeight(keras.Model):
    """output = weight * mean of the image."""

    def __init__(self):
        super().__init__()
        self.weight = self.add_weight(shape=(), initializer="ones", name="weight")
        self.built = True

    def call(self, images):
        return self.weight * tf.reduce_mean(images, axis=[1, 2, 3])


def squared(networks, batch, *, random):
    return Losses({"only": tf.square(networks["only"](batch["image"]) - 1.0)})


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2", "cpu:8"])
def test_one_sgd_step_divides_by_the_global_batch_and_by_nothing_else(hardware) -> None:
    source = ToySource()
    image = next(iter(source.batches(global_batch_size=B, seed=7, start_batch=0)))["image"].numpy()
    means = image.mean(axis=(1, 2, 3))
    by_hand = 1.0 - 0.5 * np.mean(2 * (means - 1.0) * means)
    update = Update(objective=squared, players={"only": Player(optimizer=sgd(0.5))})
    numbers, metrics = trained(hardware, {"only": lambda spec: OneWeight()}, [update], steps=1)
    np.testing.assert_allclose(numbers["only/0"], by_hand, rtol=1e-5)
    np.testing.assert_allclose(metrics["only/loss"], np.mean((means - 1.0) ** 2), rtol=1e-5)


ONE = {"only": lambda spec: OneWeight()}


def weight_after(steps, hardware="one_device", objective=squared, accumulate=1, rate=0.5, **player) -> dict:
    """Return the numbers of one weight after `steps` steps of gradient descent."""
    clip = {name: player.pop(name) for name in ("clipvalue", "global_clipnorm") if name in player}
    mover = Player(optimizer=sgd(rate, **clip), **player)
    update = Update(objective=objective, players={"only": mover}, accumulate=accumulate)
    return trained(hardware, ONE, [update], steps=steps)[0]


def averaged(decays, **player) -> tuple[float, float]:
    """Return an average by its formula, with the decay of each move given, and as the stepper keeps it."""
    weights = [1.0] + [float(weight_after(n)["only/0"]) for n in range(1, len(decays) + 1)]
    average = weights[0]
    for decay, weight in zip(decays, weights[1:], strict=True):
        average = decay * average + (1 - decay) * weight
    return average, weight_after(len(decays), **player)["only/average/0"]


def test_average_follows_the_formula_with_its_warm_up() -> None:
    expected, kept = averaged([min(0.15, (1 + n) / (10 + n)) for n in (1, 2, 3)], ema_decay=0.15)
    np.testing.assert_allclose(kept, expected, rtol=1e-5)


def test_average_of_a_half_life_halves_after_so_many_images() -> None:
    decay = 0.5 ** (B / 2.0)  # a half-life of 2 images, B of them a move: 1/16
    expected, kept = averaged([min(decay, (1 + n) / (10 + n)) for n in (1, 2, 3)], ema_half_life_images=2)
    np.testing.assert_allclose(kept, expected, rtol=1e-5)


def test_average_is_the_weights_until_its_start() -> None:
    expected, kept = averaged([0.0, 0.0, 0.15], ema_decay=0.15, ema_start_step=2)
    np.testing.assert_allclose(kept, expected, rtol=1e-5)


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2"])
@pytest.mark.parametrize("clip", [{"clipvalue": 0.01}, {"global_clipnorm": 0.01}])
def test_the_gradient_of_the_global_batch_is_clipped_not_each_share(hardware, clip) -> None:
    # All gradients here are far above 0.01, and replicas would clip 0.01 each.
    moved = abs(float(weight_after(1, hardware, **clip)["only/0"]) - 1.0)
    np.testing.assert_allclose(moved, 0.5 * 0.01, rtol=1e-4)


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2"])
def test_weights_are_clipped_after_every_move(hardware) -> None:
    assert float(weight_after(2, hardware, rate=1e-6, weight_clip=0.25)["only/0"]) == 0.25


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2"])
def test_accumulated_gradient_is_the_mean_over_fresh_batches(hardware) -> None:
    batches = ToySource().batches(global_batch_size=B, seed=7, start_batch=0).take(3)
    means = np.concatenate([batch["image"].numpy().mean(axis=(1, 2, 3)) for batch in batches])
    by_hand = 1.0 - 0.5 * np.mean(2 * (means - 1.0) * means)
    np.testing.assert_allclose(weight_after(1, hardware, accumulate=3)["only/0"], by_hand, rtol=1e-5)


@pytest.mark.parametrize("hardware", ["one_device", "cpu:2"])
def test_memory_is_the_moving_average_of_the_global_batch(hardware) -> None:
    def remembering(networks, batch, *, random):
        seen = tf.reduce_mean(batch["image"], axis=[1, 2, 3])
        before = current_memory().average("brightness", seen, decay=0.75)
        return Losses(squared(networks, batch, random=random).players, {"before": tf.fill(seen.shape, before)})

    batches = ToySource().batches(global_batch_size=B, seed=7, start_batch=0).take(3)
    average, before = 0.0, []
    for batch in batches:
        before.append(average)
        average = 0.75 * average + 0.25 * batch["image"].numpy().mean()
    update = Update(objective=remembering, players={"only": Player(optimizer=sgd())})
    numbers, metrics = trained(hardware, ONE, [update], steps=3)
    np.testing.assert_allclose(numbers["update_0/brightness/0"], average, rtol=1e-5)
    np.testing.assert_allclose(metrics["before"], np.mean(before), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("accumulate", [1, 4])
def test_memory_of_accumulated_batches_moves_once_and_is_read_as_it_stood_before(accumulate) -> None:
    def remembering(networks, batch, *, random):
        ones = tf.ones(batch["image"].shape[0])
        before = current_memory().average("one", ones, decay=0.5)
        return Losses(squared(networks, batch, random=random).players, {"before": before * ones})

    update = Update(objective=remembering, players={"only": Player(optimizer=sgd())}, accumulate=accumulate)
    numbers, metrics = trained("one_device", ONE, [update], steps=2)
    assert numbers["update_0/one/0"] == 0.75 and metrics["before"] == 0.25  # the mean of 0 and 0.5


@pytest.mark.parametrize("bad", [0, 1])
def test_overflow_of_float16_on_any_replica_leaves_the_step_out(bad) -> None:
    def overflowing(networks, batch, *, random):
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        lost = tf.where(replica == bad, np.inf, 1.0)
        output = tf.cast(networks["only"](batch["image"]), tf.float32)
        return Losses({"only": lost * tf.square(output - 1.0)})

    keras.config.set_dtype_policy("mixed_float16")
    try:
        update = Update(objective=overflowing, players={"only": Player(optimizer=sgd())})
        numbers, _ = trained("cpu:2", {"only": lambda spec: OneWeight()}, [update], steps=1)
    finally:
        keras.config.set_dtype_policy("float32")
    assert numbers["only/0"] == 1.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gradient_accumulation_steps": 2}, "accumulate"),
        ({"use_ema": True}, "ema_decay"),
        ({"loss_scale_factor": 8.0}, "mixed_float16"),
    ],
)
def test_settings_of_an_optimizer_that_have_another_place_are_refused(settings, words) -> None:
    update = Update(objective=squared, players={"only": Player(optimizer=sgd(**settings))})
    with pytest.raises(UserError, match=words):
        trained("one_device", ONE, [update])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ema_decay": 0.9, "ema_half_life_images": 100}, "one decay"),
        ({"ema_start_step": 10}, "without one"),
        ({"ema_decay": 1.0}, "in \\[0, 1\\)"),
    ],
)
def test_player_that_contradicts_itself_is_refused(settings, words) -> None:
    with pytest.raises(UserError, match=words):
        Player(optimizer=sgd(), **settings)
