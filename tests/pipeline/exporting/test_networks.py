"""Which networks of a run are exported, and what their inputs and outputs are called."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_parts import toy_discriminator, toy_generator, toy_spec

from components.interfaces import Networks, UserError
from components.model_zoo import vae_networks
from pipeline.exporting.networks import networks_of

SPEC = toy_spec(4, 6, 2, num_classes=3)


def exported(networks: dict, averages: dict) -> dict:
    return {one.name: one for one in networks_of(Networks(networks, SPEC), averages)}


def test_an_average_takes_the_place_of_its_network() -> None:
    networks = {"generator": toy_generator(SPEC), "discriminator": toy_discriminator(SPEC)}
    average = toy_generator(SPEC)
    found = exported(networks, {"generator": average})
    assert found["generator"].model is average and "moving average" in found["generator"].weights
    assert found["discriminator"].model is networks["discriminator"] and "trained" in found["discriminator"].weights


def test_inputs_and_outputs_are_called_by_their_role_whatever_the_model_calls_them() -> None:
    found = exported({"generator": toy_generator(SPEC), "discriminator": toy_discriminator(SPEC)}, {})
    shapes = {
        name: {key: one.shape.as_list() for key, one in network.inputs.items()} for name, network in found.items()
    }
    assert shapes == {
        "generator": {"latents": [None, 3], "labels": [None]},
        "discriminator": {"images": [None, 4, 6, 2], "labels": [None]},
    }
    inputs = found["generator"].examples(5)
    assert inputs["labels"].tolist() == [0, 1, 2, 0, 1] and inputs["labels"].dtype == np.int32
    assert {name: one.shape for name, one in found["generator"].answers(inputs).items()} == {"images": (5, 4, 6, 2)}
    judged = found["discriminator"].answers(found["discriminator"].examples(5))
    assert {name: one.shape for name, one in judged.items()} == {"logits": (5,)}


def test_model_of_several_networks_gives_its_parts_and_names_of_a_part_differ() -> None:
    found = exported({"vae": vae_networks.dense(SPEC, latent_dim=2, hidden=3)}, {})
    assert set(found) == {"vae_generator", "vae_encoder", "vae_reconstruction"}
    one = found["vae_reconstruction"]
    assert list(one.inputs) == ["images", "labels"] and list(one.answers(one.examples(2))) == ["reconstruction"]
    assert list(found["vae_generator"].named(tf.zeros((1, 4, 6, 2)))) == ["images"]


def test_two_inputs_of_a_role_keep_their_own_names() -> None:
    first, second = (keras.Input((3,), name=name) for name in ("one", "other"))
    found = exported({"both": keras.Model([first, second], keras.layers.Add()([first, second]))}, {})
    assert list(found["both"].inputs) == ["one", "other"]
    assert list(found["both"].answers(found["both"].examples(2))) == ["outputs"]


def test_network_that_names_no_inputs_is_refused() -> None:
    class Own(keras.Model):
        def call(self, x):
            return x

    with pytest.raises(UserError, match="known inputs. Received 'generator', a Own that names none. Build it as"):
        exported({"generator": Own()}, {})
