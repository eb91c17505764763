"""Self-attention, place by place."""

import keras
import numpy as np
import pytest

from components.interfaces import UserError
from components.model_zoo.attention import Attend, AttentionPlan, self_attention
from components.model_zoo.spectral_norm import SpectralNorm

MAPS = np.random.default_rng(0).normal(size=(2, 3, 2, 16)).astype("float32")


def model(**options) -> keras.Model:
    inputs = keras.Input(MAPS.shape[1:])
    return keras.Model(inputs, self_attention(inputs, **options))


@pytest.mark.parametrize("spectral_norm", [False, True])
def test_attention_is_the_identity_at_first(spectral_norm) -> None:
    network = model(spectral_norm=spectral_norm)
    np.testing.assert_array_equal(network(MAPS), MAPS)
    assert sum(isinstance(layer, SpectralNorm) for layer in network.layers) == 4 * spectral_norm
    # keys, queries, values of 16 / 8 channels, back to 16, and gamma
    assert sum(int(np.prod(v.shape)) for v in network.trainable_variables) == 3 * 16 * 2 + 2 * 16 + 1


def test_each_place_gets_the_average_of_all_weighted_by_likeness() -> None:
    keys, queries, values = (
        np.random.default_rng(seed).normal(size=(1, 2, 2, 3)).astype("float32") for seed in (1, 2, 3)
    )
    f, g, h = (x.reshape(4, 3) for x in (keys, queries, values))
    by_hand = np.zeros((4, 3))
    for j in range(4):
        shares = np.exp([f[i] @ g[j] for i in range(4)])
        by_hand[j] = sum(share * h[i] for i, share in enumerate(shares / shares.sum()))
    np.testing.assert_allclose(Attend()([keys, queries, values]), by_hand.reshape(1, 2, 2, 3), rtol=1e-4, atol=1e-5)


def test_gamma_lets_every_place_reach_every_other() -> None:
    network = model()
    gamma = next(v for v in network.trainable_variables if v.path.endswith("gamma"))
    gamma.assign(0.5)
    changed = MAPS.copy()
    changed[0, 0, 0] += 1.0
    moved = np.abs(network(changed).numpy() - network(MAPS).numpy()).max(axis=-1)
    assert (moved[0] > 0).all() and (moved[1] == 0).all()


def test_height_that_no_map_has_is_refused() -> None:
    plan = AttentionPlan((3, 5), spectral_norm=False, network="toy")
    inputs = keras.Input(MAPS.shape[1:])
    assert plan(inputs) is not inputs
    with pytest.raises(UserError, match="Received 5 for `toy`, whose maps have the heights 3"):
        plan.require_complete()
