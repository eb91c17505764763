"""Mode sample: images from the weights that a run folder holds; needs no data and no accelerator."""

from pathlib import Path

import tensorflow as tf

from components.interfaces import Curating, Hardware, UserError
from pipeline import configs, grid
from pipeline.build import Run, build
from pipeline.run_folder import RunFolder

_GRID_COLUMNS = 10


def sample(workdir: str, *, checkpoint: str, seed: int, num_images: int, labels: str, output: str | None) -> int:
    """Write images from a checkpoint of the run in `workdir`.

    Args:
      workdir: a run folder.
      checkpoint: "latest", "best", or a step.
      seed: of the latents.
      num_images: how many.
      labels: "balanced": classes in turn; else classes with commas between, taken in turn.
      output: FILE.png, FILE.npz or a folder; None: sample.png in the run folder.

    Returns:
      The exit status, 0.

    Raises:
      UserError: no run, no such checkpoint, wrong labels, or a place that cannot be written.
    """
    folder = RunFolder(workdir)
    folder.require_run()
    run = restored(folder, checkpoint)
    classes = turns(labels, run.networks.spec.num_classes)
    chosen = [classes[index % len(classes)] for index in range(num_images)]
    images = run.sampler.sample(num_images, seed=seed, labels=chosen)
    place = Path(output) if output else folder.path / "sample.png"
    grid.write(images, chosen, place, columns=len(classes) if len(classes) > 1 else min(num_images, _GRID_COLUMNS))
    print(f"{num_images} images of step {run.step} (classes {labels}, seed {seed}) are in {place}.")
    return 0


def restored(folder: RunFolder, checkpoint: str) -> Run:
    """Return the run of a folder on this process's first device, at "latest", at "best" or at a step."""
    strategy = tf.distribute.get_strategy()
    hardware = Hardware(strategy=strategy, accelerator="cpu", description="the first device")
    experiment = configs.parse([str(folder.config)]).experiment()
    run = build(experiment, hardware=hardware, spec=folder.spec(), checkpoints=folder.checkpoints)
    if checkpoint == "latest":
        if not run.checkpointer.restore_latest():
            raise UserError(f"Images need a checkpoint. {folder.checkpoints} holds none yet. Train first.")
    elif checkpoint == "best":
        if not isinstance(run.checkpointer, Curating):
            raise UserError(
                "`--checkpoint=best` needs a checkpointer that keeps the best. Received a run with "
                f"{type(run.checkpointer).__name__}. Use --checkpoint=latest or a step."
            )
        run.checkpointer.restore_best()
    elif checkpoint.isdecimal():
        run.checkpointer.restore(int(checkpoint))
    else:
        raise UserError(f"`--checkpoint` is 'latest', 'best' or a step. Received {checkpoint!r}.")
    return run


def turns(labels: str, num_classes: int) -> list[int]:
    """Return the classes to take in turn: `labels` as on the command line, checked against the data's classes.

    Raises:
      UserError: not "balanced" and not classes with commas between.
    """
    known = max(1, num_classes)
    if labels == "balanced":
        return list(range(known))
    parts = [part.strip() for part in labels.split(",")]
    if not all(part.isdecimal() and int(part) < known for part in parts):
        raise UserError(
            f"`--labels` is 'balanced', or classes from 0 to {known - 1} with commas between. Received {labels!r}."
        )
    return [int(part) for part in parts]
