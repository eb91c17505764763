"""Terms of GAN objectives by hand: class losses, latent consistency, InfoGAN, VAE-GAN, and what is judged how."""

import inspect
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_parts import ToyMemory, in_a_move, toy_random, toy_spec

from components.interfaces import Losses, Networks, Player, Update, UserError, current_memory, current_random
from components.loss_library import adversarial, penalties
from components.objectives import gan, infogan, judging, vae_gan
from components.objectives.latent_consistency import latent_consistency

B, SHAPE, CLASSES, WIDTH = 4, (2, 2, 1), 2, 3
EVERY_LOSS = [
    function
    for _, function in inspect.getmembers(adversarial, inspect.isfunction)
    if function.__module__ == adversarial.__name__ and not function.__name__.startswith("_")
]


class Function(keras.Model):
    """A network of a plain function of its two inputs."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function, self.inputs_seen, self.built = function, [], True

    @property
    def inputs(self):
        first = [WIDTH] if self.function is spread else SHAPE
        return [tf.TensorSpec([None, *first]), tf.TensorSpec([None], tf.int32)]

    def call(self, inputs, training=False):
        self.inputs_seen.append(inputs)
        return self.function(*inputs)


def spread(latents, labels):
    """A generator: every pixel is the first latent."""
    return tf.ones([B, *SHAPE]) * latents[:, 0, None, None, None]


def judged(images, labels):
    return {"logits": tf.reduce_sum(images, axis=[1, 2, 3]), "features": tf.reshape(images, [B, -1])}


def classified(images, labels):
    sure = tf.one_hot(labels, CLASSES) * math.log(3.0)  # 3 : 1 for the label it is given
    return {**judged(images, labels), "class_logits": sure}


def networks(**others) -> Networks:
    parts = {"generator": spread, "discriminator": judged, **others}
    spec = toy_spec(*SHAPE, num_classes=CLASSES)
    return Networks({name: Function(function) for name, function in parts.items()}, spec)


def batch():
    return {"image": tf.fill([B, *SHAPE], 0.5), "label": tf.constant([0, 1, 0, 1])}


def player() -> Player:
    return Player(optimizer=keras.optimizers.SGD)


def losses(update: Update, parts: Networks | None = None) -> Losses:
    random = toy_random()
    with in_a_move(random):
        return update.objective(parts or networks(), batch(), random=random)


PLAYERS = {"generator": player(), "discriminator": player()}


def test_class_weight_adds_the_cross_entropy_of_real_and_fake_and_of_fake() -> None:
    surprise = -math.log(0.75)
    for make in (gan.alternating, gan.simultaneous):
        plain = [losses(update).players for update in make(loss=adversarial.hinge, **PLAYERS)]
        classifier = networks(discriminator=classified)
        updates = make(loss=adversarial.hinge, **PLAYERS, class_weight=2.0)
        classed = [losses(update, classifier) for update in updates]
        for before, after in zip(plain, classed, strict=True):
            for name, count in (("generator", 1), ("discriminator", 2)):
                if name in before:
                    np.testing.assert_allclose(
                        after.players[name], before[name] + 2.0 * count * surprise, rtol=1e-5, atol=1e-5
                    )
        metrics = {name: value for one in classed for name, value in one.metrics.items()}
        assert np.all(metrics["discriminator/class_accuracy_real"] == 1)
        assert np.all(metrics["generator/class_accuracy"] == 1)


@pytest.mark.parametrize(("discriminator", "weight"), [(judged, 1.0), (classified, 0.0)])
def test_class_weight_without_a_classifier_and_the_other_way_round_are_refused(discriminator, weight) -> None:
    for make in (gan.alternating, gan.simultaneous):
        for update in make(loss=adversarial.hinge, **PLAYERS, class_weight=weight):
            with pytest.raises(UserError, match="class_logits"):
                losses(update, networks(discriminator=discriminator))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"discriminator": lambda images, labels: tf.reduce_sum(images, axis=[1, 2, 3])}, "returns a tensor"),
        ({"discriminator": lambda images, labels: {"score": tf.zeros([B])}}, "returns \\['score'\\]"),
    ],
)
def test_discriminator_that_is_none_is_refused(parts, words) -> None:
    for make in (gan.alternating, gan.simultaneous):
        with pytest.raises(UserError, match=words):
            losses(make(loss=adversarial.hinge, **PLAYERS)[0], networks(**parts))


def test_loss_that_is_none_is_refused() -> None:
    for make in (gan.alternating, gan.simultaneous):
        for update in make(loss=keras.losses.binary_crossentropy, **PLAYERS):
            with pytest.raises(UserError, match="returns PlayerLosses"):
                losses(update)


def test_penalties_taken_now_and_then_without_penalties_are_refused() -> None:
    with pytest.raises(UserError, match="penalty_every"):
        gan.alternating(loss=adversarial.hinge, **PLAYERS, penalty_every=4)


def test_lazy_penalty_stands_for_all_moves_in_between() -> None:
    def one(critic, real, fake, *, random):
        return tf.ones([B])

    updates = gan.alternating(
        loss=adversarial.hinge, **PLAYERS, penalties=[one], penalty_every=4, discriminator_repeats=3
    )
    np.testing.assert_array_equal(losses(updates[1]).players["discriminator"], np.full(B, 12.0))


def test_every_image_that_is_judged_is_augmented() -> None:
    def darker(images, *, random):
        return images - 100.0

    for make in (gan.alternating, gan.simultaneous):
        for update in make(loss=adversarial.hinge, **PLAYERS, augmentations=[darker]):
            parts = networks()
            losses(update, parts)
            seen = [images for images, _ in parts["discriminator"].inputs_seen]
            assert seen and all(np.all(images < -50) for images in seen)


def test_fakes_are_judged_with_their_own_labels() -> None:
    parts = networks()
    losses(gan.alternating(loss=adversarial.hinge, **PLAYERS)[0], parts)
    (_, with_real), (_, with_fake) = parts["discriminator"].inputs_seen
    np.testing.assert_array_equal(with_real, batch()["label"])
    np.testing.assert_array_equal(with_fake, toy_random().integers("fake_labels", CLASSES))


def test_latent_consistency_is_the_formula() -> None:
    plain = gan.alternating(loss=adversarial.hinge, **PLAYERS)
    added = latent_consistency(updates=plain, noise=0.1, discriminator_weight=2.0, generator_weight=3.0)
    moved = 0.1 * toy_random().normal("consistency/noise", [WIDTH])[:, 0]  # of every pixel
    by_hand = {"discriminator": 2.0 * (4 * moved) ** 2, "generator": -3.0 * moved**2}
    for before, after in zip(plain, added, strict=True):
        (name,) = before.players
        rise = losses(after).players[name] - losses(before).players[name]
        np.testing.assert_allclose(rise, by_hand[name], rtol=1e-3, atol=1e-5)


def test_latent_consistency_beside_lazy_penalties_is_in_each_players_first_update_alone() -> None:
    plain = gan.alternating(loss=adversarial.hinge, penalties=[penalties.r1], penalty_every=4, **PLAYERS)
    added = latent_consistency(updates=plain)
    assert [old.objective is new.objective for old, new in zip(plain, added, strict=True)] == [False, True, False]


def test_latent_consistency_of_other_players_is_refused() -> None:
    with pytest.raises(UserError, match="'generator' and 'discriminator'"):
        latent_consistency(updates=[Update(objective=losses, players={"vae": player()})])


def read_by(images, labels):
    first = images[:, 0, 0, :]
    return {"class_logits": tf.one_hot(1 - labels, CLASSES) * math.log(3.0), "code_mean": first + 0.5}


def test_infogan_asks_for_class_and_codes_back() -> None:
    updates = infogan.alternating(
        loss=adversarial.hinge, **PLAYERS, recognition=player(), discriminator_repeats=2, information_weight=10.0
    )
    assert [sorted(update.players) for update in updates] == [["discriminator"], ["generator", "recognition"]]
    assert [update.repeats for update in updates] == [2, 1]
    parts = networks(recognition=read_by)
    value = losses(updates[1], parts)
    lost = -math.log(0.25) + 0.5 * 0.5**2  # the wrong class with 3 : 1, and the code missed by a half
    np.testing.assert_allclose(value.players["recognition"], np.full(B, lost), rtol=1e-4)
    game = -4 * toy_random().normal("latents", [WIDTH])[:, 0]
    np.testing.assert_allclose(value.players["generator"], game + 10.0 * lost, rtol=1e-4, atol=1e-4)
    assert np.all(value.metrics["recognition/class_accuracy"] == 0)


def test_infogan_with_more_codes_than_latents_is_refused() -> None:
    def greedy(images, labels):
        return {"class_logits": tf.one_hot(labels, CLASSES), "code_mean": tf.zeros([B, WIDTH + 1])}

    update = infogan.alternating(loss=adversarial.hinge, **PLAYERS, recognition=player())[1]
    with pytest.raises(UserError, match="first latents"):
        losses(update, networks(recognition=greedy))


def encoded(images, labels):
    return {"mean": tf.ones([B, WIDTH]), "log_variance": tf.fill([B, WIDTH], -80.0)}  # z is the mean


def test_vae_gan_is_divergence_game_and_error_in_features() -> None:
    (update,) = vae_gan.simultaneous(
        loss=adversarial.wasserstein, encoder=player(), **PLAYERS, beta=2.0, reconstruction_weight=0.1
    )
    value = losses(update, networks(encoder=encoded))
    divergence = -0.5 * WIDTH * (1 - 80.0 - 1 - math.exp(-80.0))
    error = 0.5 * 4 * 0.5**2  # four features, each 1 for 0.5
    dreams = 4 * toy_random().normal("latents", [WIDTH])[:, 0]
    real, decoded = 2.0, 4.0  # logits
    np.testing.assert_allclose(value.players["encoder"], np.full(B, 2.0 * divergence + error), rtol=1e-4)
    np.testing.assert_allclose(
        value.players["generator"], -0.5 * (dreams + decoded) + 0.1 * error, rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(value.players["discriminator"], 0.5 * (dreams + decoded) - real, rtol=1e-4, atol=1e-4)


def test_vae_gan_without_features_is_refused() -> None:
    (update,) = vae_gan.simultaneous(loss=adversarial.wasserstein, encoder=player(), **PLAYERS)
    plain = networks(
        encoder=encoded, discriminator=lambda images, labels: {"logits": tf.reduce_sum(images, axis=[1, 2, 3])}
    )
    with pytest.raises(UserError, match="features"):
        losses(update, plain)


def test_vae_gan_of_two_numbers_of_latents_is_refused() -> None:
    def wide(images, labels):
        return {"mean": tf.ones([B, WIDTH + 1]), "log_variance": tf.zeros([B, WIDTH + 1])}

    (update,) = vae_gan.simultaneous(loss=adversarial.wasserstein, encoder=player(), **PLAYERS)
    with pytest.raises(UserError, match="both to one number"):
        losses(update, networks(encoder=wide))


def offset(images, labels):
    """A discriminator whose logits are no zeros: the sum of the pixels and one for the second label."""
    return {"logits": tf.reduce_sum(images, axis=[1, 2, 3]) + tf.cast(labels, tf.float32)}


def losses_of_generators(loss) -> dict:
    """Return the objective that moves the generator, by the function that gives the updates."""
    return {
        "alternating": gan.alternating(loss=loss, generator=player(), discriminator=player())[1].objective,
        "simultaneous": gan.simultaneous(loss=loss, generator=player(), discriminator=player())[0].objective,
    }


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
@pytest.mark.parametrize("loss", EVERY_LOSS)
def test_generator_minimises_what_the_loss_says_of_real_and_fake_logits(loss, updates, traced) -> None:
    def both() -> tuple[tf.Tensor, tf.Tensor]:
        parts = networks(discriminator=offset)
        with tf.GradientTape():  # as in a move
            found = losses_of_generators(loss)[updates](parts, batch(), random=toy_random())
        fakes, fake_labels = judging.generate(parts, toy_random())
        real = offset(batch()["image"], batch()["label"])["logits"]
        return found.players["generator"], loss(real, offset(fakes, fake_labels)["logits"]).generator

    ours, by_hand = tf.function(both, autograph=False)() if traced else both()
    np.testing.assert_allclose(ours, by_hand, rtol=1e-6)


def test_real_images_are_judged_in_the_generators_move_only_for_a_loss_that_compares() -> None:
    for loss, count in ((adversarial.hinge, 1), (adversarial.relativistic_pairing, 2)):
        parts = networks(discriminator=offset)
        losses_of_generators(loss)["alternating"](parts, batch(), random=toy_random())
        assert len(parts["discriminator"].inputs_seen) == count, loss


def detached(real_logits, fake_logits):
    """Relativistic pairing, written with the detached logits that the papers' own code has."""
    return adversarial.PlayerLosses(
        generator=tf.nn.softplus(tf.stop_gradient(real_logits) - fake_logits),
        discriminator=tf.nn.softplus(fake_logits - real_logits),
    )


def comparing(real_logits, fake_logits):
    """The generator is left alone where it fools better than real images do."""
    generator = tf.where(fake_logits > tf.reduce_mean(real_logits), 0.0, -fake_logits)
    return adversarial.PlayerLosses(generator, fake_logits - real_logits)


def remembering(real_logits, fake_logits):
    current_memory().average("real", real_logits, decay=0.9)
    return adversarial.PlayerLosses(-fake_logits, fake_logits - real_logits)


def drawing(real_logits, fake_logits):
    softer = 0.1 * current_random().uniform("soft_labels")
    return adversarial.PlayerLosses(-fake_logits * (1.0 - softer), fake_logits - real_logits)


@pytest.mark.parametrize(
    ("loss", "count"), [(detached, 2), (comparing, 2), (remembering, 2), (drawing, 1), (adversarial.hinge, 1)]
)
def test_generators_loss_gets_real_logits_wherever_their_value_counts(loss, count) -> None:
    parts, memory = networks(discriminator=offset), ToyMemory()
    with in_a_move(memory=memory):
        found = losses_of_generators(loss)["alternating"](parts, batch(), random=toy_random())
        assert len(parts["discriminator"].inputs_seen) == count
        fakes, fake_labels = judging.generate(parts, toy_random())
        real = offset(batch()["image"], batch()["label"])["logits"]
        by_hand = loss(real, offset(fakes, fake_labels)["logits"]).generator
    np.testing.assert_allclose(found.players["generator"], by_hand, rtol=1e-6)
    for values, _ in memory.followed.values():
        np.testing.assert_allclose(values, real, rtol=1e-6)


@pytest.mark.parametrize(
    ("term", "received"),
    [
        (lambda: None, "None"),
        (lambda: 0.0, "0.0"),
        (lambda: tf.zeros([B], tf.float64), r"float64\[4\]"),
        (lambda: tf.zeros([B, 1]), r"float32\[4, 1\]"),
        (lambda: tf.zeros([]), r"float32\[\]"),
    ],
)
def test_term_that_is_no_number_per_example_is_refused_with_its_function(term, received) -> None:
    def mistaken(*_, **__):
        return term()

    def mistaken_loss(real_logits, fake_logits):
        return adversarial.PlayerLosses(term(), fake_logits)

    critic = gan.alternating(loss=adversarial.hinge, generator=player(), discriminator=player(), penalties=[mistaken])
    with in_a_move(), pytest.raises(UserError, match=rf"penalty .*Received {received} from 'mistaken'"):
        critic[0].objective(networks(), batch(), random=toy_random())
    generator = losses_of_generators(mistaken_loss)["alternating"]
    with in_a_move(), pytest.raises(UserError, match=rf"generator's part .*Received {received} from 'mistaken_loss'"):
        generator(networks(), batch(), random=toy_random())


@pytest.mark.parametrize("wrong", [lambda one: tf.cast(one, tf.bfloat16), lambda one: one[:, None]])
def test_logits_of_another_dtype_or_shape_are_the_networks_mistake(wrong) -> None:
    parts = networks(discriminator=lambda images, labels: {"logits": wrong(judged(images, labels)["logits"])})
    with pytest.raises(UserError, match=r"'logits' are float32, one number per image.*dtype='float32'"):
        losses_of_generators(adversarial.hinge)["alternating"](parts, batch(), random=toy_random())
