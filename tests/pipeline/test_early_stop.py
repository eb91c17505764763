"""A run whose quality no longer grows ends by itself, keeps its best checkpoint, and is over for good."""

import functools

import keras
from toy_games import toy_experiment

from components.checkpointer.tf_checkpointer import TFCheckpointer
from components.interfaces import Player
from components.loss_library import adversarial
from components.objectives import gan
from components.watch.quality_watch import QualityWatch
from pipeline import listening
from pipeline.build import Run, build
from pipeline.launch import _train
from pipeline.outlets import Outlets
from pipeline.run_folder import RunFolder

LAST, METRIC = 400, "discriminator/loss"


def player() -> Player:
    return Player(optimizer=lambda: keras.optimizers.SGD(0.05))


def train(folder: RunFolder, stop_after: int | None = 20) -> tuple[Run, int]:
    """Start or go on: the discriminator learns, so that its loss, of which more is called good, only falls."""
    parts = toy_experiment(
        updates=gan.alternating(loss=adversarial.non_saturating, generator=player(), discriminator=player()),
        train_steps=LAST,
        global_batch_size=8,
        checkpointer=functools.partial(TFCheckpointer, best_metric=METRIC, best_direction="max"),
        steps_per_loop=10,
        log_every=10,
        save_every=100,
    )
    run = build(parts, hardware=parts.strategy(), spec=parts.data.spec, checkpoints=folder.checkpoints)
    watch = QualityWatch(run.sampler, metric=METRIC, direction="max", window=1, stop_after=stop_after)
    outlets = Outlets(previews={}, writers=[], watch=watch)
    listening.prepare(run.checkpointer, outlets.means, outlets.watch)
    step = run.checkpointer.restore_latest()
    if step == 0:
        folder.write("A = 1\n", {}, run.networks.spec, step)
    return _train(run, folder, outlets)


def test_run_that_no_longer_improves_ends_early_and_stays_ended(tmp_path, capsys) -> None:
    folder = RunFolder(tmp_path)
    run, status = train(folder)
    said = capsys.readouterr().out
    best = run.checkpointer.best
    assert status == 0 and run.step == best.step + 20 < LAST
    assert f"topped early at step {run.step}: the mean of {METRIC} has not improved since step {best.step}" in said
    assert f"the best checkpoint is of step {best.step}" in said
    assert {best.step, run.step} <= set(run.checkpointer.steps())

    again, status = train(folder)
    assert status == 0 and again.step == run.step
    assert f"Nothing to do: the run was stopped early at step {run.step}" in capsys.readouterr().out

    further, status = train(folder, stop_after=None)
    assert status == 0 and further.step == LAST
