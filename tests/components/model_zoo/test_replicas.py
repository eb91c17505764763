"""One replica and N train the same networks: statistics of a batch, and vectors of spectral normalisation."""

import functools
import random

import keras
import numpy as np
import pytest
from toy_parts import ToySource, toy_spec

from components.interfaces import Networks, Player
from components.loss_library import adversarial
from components.model_zoo import dcgan, resnet
from components.objectives import gan
from components.stepper import strategy
from components.stepper.distributed_stepper import DistributedStepper

B = 8
SPEC = toy_spec(8, 8, 1, num_classes=3)
PAIRS = {
    "dcgan": {
        "generator": functools.partial(dcgan.generator, latent_dim=3, widths=(4,), conditioning="batch_norm"),
        "discriminator": functools.partial(dcgan.discriminator, widths=(4,), spectral_norm=True),
    },
    "per_replica": {
        "generator": functools.partial(
            dcgan.generator, latent_dim=3, widths=(4,), conditioning="none", normalisation="batch_per_replica"
        ),
        "discriminator": functools.partial(dcgan.discriminator, widths=(4,)),
    },
    "resnet": {
        "generator": functools.partial(
            resnet.generator, latent_dim=3, widths=(4, 4), spectral_norm=True, attention_at=(8,)
        ),
        "discriminator": functools.partial(
            resnet.discriminator, widths=(4,), final_widths=(4,), spectral_norm=True, attention_at=(4,)
        ),
    },
}


def trained(hardware: str, pair: str, steps: int = 3) -> dict[str, list[np.ndarray]]:
    """Return {variable: its values on the replicas} after `steps` steps of a game."""
    chosen = strategy.select(name=hardware).strategy
    source, factories = ToySource(SPEC), PAIRS[pair]
    with chosen.scope():
        random.seed(0)  # Keras draws the seeds of initial weights from it
        networks = Networks({name: make(SPEC) for name, make in factories.items()}, SPEC)

        def copy(name):
            twin = factories[name](SPEC)
            twin.set_weights(networks[name].get_weights())
            return twin

        def optimizer():
            return keras.optimizers.SGD(1e-3)

        updates = gan.alternating(
            loss=adversarial.hinge,
            generator=Player(optimizer=optimizer, ema_decay=0.9),
            discriminator=Player(optimizer=optimizer),
        )
        stepper = DistributedStepper(networks=networks, copy_network=copy, updates=updates, global_batch_size=B, seed=7)
    rows = B // chosen.num_replicas_in_sync
    data = source.batches(global_batch_size=B, seed=7, start_batch=0).rebatch(rows, drop_remainder=True)
    stepper.run(iter(chosen.distribute_datasets_from_function(lambda context: data)), steps)
    models = {**networks, **{f"average of {name}": one for name, one in stepper.averages.items()}}
    return {
        f"{name}/{i}/{v.path}": [one.numpy() for one in chosen.experimental_local_results(v.value)]
        for name, model in models.items()
        for i, v in enumerate(model.variables)
    }


CASES = [
    pytest.param("dcgan", "cpu:2", marks=pytest.mark.slow),
    pytest.param("dcgan", "cpu:8", marks=pytest.mark.slow),
    pytest.param("resnet", "cpu:2", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("pair", "hardware"), CASES)
def test_networks_on_replicas_are_those_on_one(pair, hardware) -> None:
    one, many = trained("one_device", pair), trained(hardware, pair)
    for (name, alone), replicas in zip(one.items(), many.values(), strict=True):
        for value in replicas:
            np.testing.assert_allclose(value, alone[0], rtol=1e-5, atol=1e-5, err_msg=name)
            if name.endswith("/u"):
                np.testing.assert_array_equal(value, replicas[0], err_msg=name)


def test_statistics_of_each_replica_alone_make_another_step() -> None:
    one, many = trained("one_device", "per_replica"), trained("cpu:2", "per_replica")
    moved = [np.max(np.abs(a[0] - b[0])) for a, b in zip(one.values(), many.values(), strict=True)]
    assert max(moved) > 1e-4  # ten times what synchronised statistics may leave
