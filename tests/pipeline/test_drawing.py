"""The pictures of a run that was killed and taken up again are those of a run that was not."""

from pathlib import Path

import keras
import pytest
from toy_games import toy_experiment
from toy_parts import ToySource, toy_spec

from components.interfaces import Player
from components.loss_library import adversarial
from components.objectives import gan
from components.preview.class_montage import class_montage
from components.writers.history_picture import HistoryPicture
from components.writers.picture_folder import PictureFolder
from pipeline import actions
from pipeline.build import build
from pipeline.stop import StopSignal
from pipeline.train import train

DATA = ToySource(toy_spec(num_classes=3))


def draw_to(folder: Path, last: int, save_every: int) -> None:
    """Train from the last save to step `last`, drawing every second step."""
    players = {name: Player(optimizer=keras.optimizers.Adam) for name in ("generator", "discriminator")}
    parts = toy_experiment(
        data=DATA,
        updates=gan.alternating(loss=adversarial.hinge, **players),
        train_steps=last,
        previews={"samples": class_montage},
    )
    run = build(parts, hardware=parts.strategy(), spec=DATA.spec, checkpoints=folder / "checkpoints")
    start = run.checkpointer.restore_latest()
    writers = [
        PictureFolder(str(folder)),
        HistoryPicture(str(folder), rows=10, kept_steps=(2, 6), every=4),
    ]
    for writer in writers:
        writer.rewind(start)
    previews = {name: make(run.sampler, DATA, parts.seed) for name, make in parts.previews.items()}
    draw = actions.draw(previews, writers)
    if start == 0:
        draw(0, {})
    at = [lambda step, _: None if step % 2 else draw(step, {})]
    train(run, [*at, lambda step, _: None if step % save_every else run.checkpointer.save(step)], StopSignal())


def pictures(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.png")}


@pytest.mark.slow
def test_pictures_over_a_kill_and_a_resume_are_those_of_a_run_without(tmp_path) -> None:
    draw_to(tmp_path / "whole", 8, save_every=8)
    draw_to(tmp_path / "cut", 7, save_every=4)  # step 6 is drawn, and lost
    draw_to(tmp_path / "cut", 8, save_every=4)
    whole = pictures(tmp_path / "whole")
    assert whole == pictures(tmp_path / "cut")
    names = {path.rpartition("/")[0] for path in whole}
    assert names == {"", "history", "samples"} and len(whole) == 1 + 5 + 5
    assert len({whole[path] for path in whole if path.startswith("history/")}) == 5, "weights that move are seen"
