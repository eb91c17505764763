"""Numbers that are no longer finite: named, with step, player and layer, and rolled back from."""

import json
import os
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_games import toy_experiment
from toy_parts import ToySource, toy_generator

from components.checkpointer.tf_checkpointer import TFCheckpointer
from components.interfaces import DataSpec, Player, UserError
from components.loss_library import adversarial
from components.objectives import gan
from components.stepper import strategy
from pipeline import recovery
from pipeline.build import Run, build
from pipeline.launch import _train
from pipeline.outlets import Outlets
from pipeline.run_folder import RunFolder

FAULTY_BATCH = 5  # that of the step from 5 to 6


class Marked(ToySource):
    """Toy data; the first pixel of one batch, under the seed of the run, is 9, which no other pixel is."""

    def __init__(self, seeds=(5,)) -> None:
        super().__init__()
        self._seeds = seeds

    def batches(self, *, seed, start_batch, **others):
        marked = seed in self._seeds

        def mark(index, batch):
            image = tf.where((index == FAULTY_BATCH) & marked, batch["image"] + 10.0, batch["image"])
            return {**batch, "image": image}

        batches = super().batches(seed=seed, start_batch=start_batch, **others)
        return tf.data.Dataset.zip(tf.data.Dataset.range(start_batch, tf.int64.max), batches).map(mark)


class Fragile(keras.layers.Layer):
    """Passes its input on; gives NaN, or a gradient of NaN, where that is above 2."""

    def __init__(self, where: str, **settings) -> None:
        super().__init__(**settings)
        self._where = where

    def call(self, x):
        nan = tf.where(tf.reduce_any(x > 2.0), float("nan"), 0.0)
        if self._where == "output":
            return x + nan

        @tf.custom_gradient
        def passed(x):
            return tf.identity(x), lambda upstream: upstream + nan

        return passed(x)


def discriminator(where: str):
    def make(spec: DataSpec) -> keras.Model:
        images, labels = keras.Input(spec.image_shape), keras.Input((), dtype="int32")
        x = keras.layers.Rescaling(1.0, name="first")(keras.layers.Flatten()(images))
        x = keras.layers.Dense(5, name="before")(x) if where == "gradient" else x
        x = keras.layers.Dense(3, name="after")(Fragile(where, name="fragile")(x))
        return keras.Model([images, labels], {"logits": keras.layers.Dense(1)(x)[:, 0]})

    return make


def player(optimizer=keras.optimizers.SGD) -> Player:
    return Player(optimizer=lambda: optimizer(1e-4))


def made(folder: RunFolder, where="output", hardware="one_device", seeds=(5,), last=8, **bound) -> Run:
    parts = toy_experiment(
        data=Marked(seeds),
        networks={"generator": toy_generator, "discriminator": discriminator(where)},
        updates=gan.alternating(loss=adversarial.hinge, generator=player(), discriminator=player()),
        train_steps=last,
        strategy=lambda: strategy.select(name=hardware),
        **{"steps_per_loop": 2, "save_every": 2, **bound},
    )
    return build(parts, hardware=parts.strategy(), spec=parts.data.spec, checkpoints=folder.checkpoints)


def train(folder: RunFolder, **bound) -> Run:
    """Start the run, or go on."""
    run = made(folder, **bound)
    step = run.checkpointer.restore_latest()
    folder.write("A = 1\n", {}, run.networks.spec, step)
    return _train(recovery.resumed(run, folder), folder, Outlets(previews={}, writers=[]))[0]


def numbers(run: Run) -> list[np.ndarray]:
    return [np.asarray(v.numpy()) for variables in run.state().values() for v in variables]


@pytest.mark.parametrize(
    ("hardware", "save_every"),
    [("one_device", 4), pytest.param("one_device", 100, marks=pytest.mark.slow)]
    + [pytest.param("cpu:2", 4, marks=pytest.mark.slow)],
)
def test_fault_in_a_layer_stops_with_step_player_and_layer_and_keeps_the_last_good(
    hardware, save_every, tmp_path
) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(
        UserError,
        match=r"In step 6 .*discriminator/loss.*'discriminator': the output of layer 'fragile'.*max_rollbacks",
    ):
        train(folder, hardware=hardware, save_every=save_every)
    assert TFCheckpointer(str(folder.checkpoints), {}).steps() == ([4] if save_every == 4 else [])


def test_run_stopped_between_two_looks_does_not_save_what_is_lost(tmp_path, monkeypatch) -> None:
    folder = RunFolder(tmp_path)
    run = made(folder, seeds=(), log_every=100, save_every=100)
    steps_run, asked = run.stepper.run, []

    def then_lost(iterator, num_steps):
        metrics = steps_run(iterator, num_steps)
        run.networks["generator"].trainable_variables[0].assign(np.full((5, 6), np.inf))  # 3 latents, 2 classes
        if not asked:  # a second signal ends the process at once, and the steps are repeated to find the fault
            asked.append(os.kill(os.getpid(), signal.SIGTERM))
        return metrics

    monkeypatch.setattr(run.stepper, "run", then_lost)
    folder.write("A = 1\n", {}, run.networks.spec, 0)
    with pytest.raises(UserError, match=r"were not: generator/network: .*last good checkpoint is kept"):
        _train(run, folder, Outlets(previews={}, writers=[]))
    assert TFCheckpointer(str(folder.checkpoints), {}).steps() == []


@pytest.mark.slow
def test_fault_in_a_gradient_names_the_variable_next_to_the_layer(tmp_path) -> None:
    with pytest.raises(UserError, match=r"In step 6 .*'discriminator': the gradient of before/(kernel|bias)\. "):
        train(RunFolder(tmp_path), where="gradient")


@pytest.mark.slow
def test_run_rolled_back_goes_on_with_other_data_and_a_resume_knows_it(tmp_path, capsys) -> None:
    whole = train(RunFolder(tmp_path / "whole"), max_rollbacks=2)
    assert capsys.readouterr().out.count("Back to step 4, real images in another order (1 rollbacks left)") == 1
    [rollback] = json.loads((tmp_path / "whole" / "manifest.json").read_text())["rollbacks"]
    assert (rollback["step"], rollback["fault_step"]) == (4, 6) and "fragile" in rollback["fault"]
    assert whole.experiment.seed == rollback["data_seed"] == recovery.data_seed(5, 1) != 5

    train(RunFolder(tmp_path / "cut"), max_rollbacks=2, last=6)
    for left, right in zip(
        numbers(whole), numbers(train(RunFolder(tmp_path / "cut"), max_rollbacks=2, last=8)), strict=True
    ):
        np.testing.assert_array_equal(left, right)


@pytest.mark.slow
def test_fault_that_comes_back_stops_after_as_many_rollbacks_as_allowed(tmp_path) -> None:
    seeds = (5, *(recovery.data_seed(5, number) for number in range(1, 9)))
    for times in (2, 2):  # a second start does not begin to count anew
        with pytest.raises(UserError, match=r"rolled back 2 times.*The last good checkpoint is kept"):
            train(RunFolder(tmp_path), seeds=seeds, max_rollbacks=times)
    assert len(RunFolder(tmp_path).rollbacks()) == 2
    assert RunFolder(tmp_path).manifest.exists()
