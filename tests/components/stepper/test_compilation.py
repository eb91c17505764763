"""XLA and mixed precision: the same mathematics, to the tolerance of each."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_games import GAMES, TOYS, require_close, trained
from toy_parts import toy_spec

from components.interfaces import UserError
from components.loss_library import penalties
from components.model_zoo import dcgan
from pipeline import api

TINY = [
    "GLOBAL_BATCH_SIZE = 8",
    "LATENT_DIM = 4",
    "dcgan.generator.widths = (8, 8)",
    "dcgan.discriminator.widths = (8, 8)",
]
PENALISED = """
from components.loss_library import penalties
gan.alternating.penalties = [@penalties.r1, @penalties.wgan_gp]
"""


@pytest.mark.slow
@pytest.mark.parametrize("game", ["alternating", "lazy"])
def test_compiled_steps_are_those_that_are_not(game) -> None:
    require_close(trained("one_device", TOYS, GAMES[game]()), trained("one_device", TOYS, GAMES[game](), xla=True))


@pytest.mark.slow
def test_compiled_steps_of_convolutions_are_those_that_are_not() -> None:
    factories, spec = {"generator": dcgan.generator, "discriminator": dcgan.discriminator}, toy_spec(8, 8, 1)
    plain, compiled = (
        trained("one_device", factories, GAMES["penalised"](), spec=spec, xla=xla) for xla in (None, True)
    )
    require_close(plain, compiled)


def test_compilation_for_several_replicas_is_refused() -> None:
    with pytest.raises(UserError, match="one device"):
        trained("cpu:2", TOYS, GAMES["alternating"](), xla=True)


@pytest.mark.parametrize("precision", ["mixed_bfloat16", pytest.param("mixed_float16", marks=pytest.mark.slow)])
def test_mixed_precision_trains_with_penalties_and_leaves_the_process_as_it_was(precision, tmp_path) -> None:
    params = [*TINY, PENALISED, f"experiment.Experiment.precision = '{precision}'"]
    run = api.build(["quickstart.gin"], params, workdir=tmp_path)
    assert keras.config.dtype_policy().name == "float32"
    assert {layer.compute_dtype for layer in run.networks["generator"].layers} == {precision[6:], "float32"}
    assert all(v.dtype == "float32" for network in run.networks.values() for v in network.trainable_variables)
    before = [w.copy() for network in run.networks.values() for w in network.get_weights()]
    # Loss scaling starts high and halves at each overflow, without a move: a few steps let it settle.
    metrics = run.stepper.run(run.batches(), 12 if precision == "mixed_float16" else 2)
    assert all(np.isfinite(float(value)) for value in metrics.values()), metrics
    after = [w for network in run.networks.values() for w in network.get_weights()]
    assert all(np.isfinite(w).all() for w in after)
    assert np.mean([not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]) > 0.9


def test_float16_scales_the_loss_of_each_player_on_its_own(tmp_path) -> None:
    run = api.build(["quickstart.gin"], [*TINY, "experiment.Experiment.precision = 'mixed_float16'"], workdir=tmp_path)
    optimizers = [player.optimizer for player in run.stepper._players.values()]
    assert all(isinstance(one, keras.optimizers.LossScaleOptimizer) for one in optimizers)
    assert len({id(one) for one in optimizers}) == 2


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_penalty_under_mixed_precision_has_its_float32_value(precision) -> None:
    def penalty(policy: str) -> np.ndarray:
        keras.config.set_dtype_policy(policy)
        try:
            network = dcgan.discriminator(toy_spec(8, 8, 1), widths=(4,))
        finally:
            keras.config.set_dtype_policy("float32")
        for index, variable in enumerate(network.trainable_variables):
            variable.assign(tf.random.stateless_normal(variable.shape, [index, 0]) * 0.3)
        labels = tf.zeros([32], tf.int32)
        real = tf.random.stateless_uniform([32, 8, 8, 1], [9, 9], -1, 1)
        return penalties.r1(lambda images: network([images, labels])["logits"], real, real, random=None).numpy()

    # A single example may differ more: its leaky ReLU may round to the other side of 0.
    halved, whole = penalty(precision), penalty("float32")
    assert np.median(np.abs(halved / whole - 1)) < 0.02 and abs(halved.mean() / whole.mean() - 1) < 0.02
