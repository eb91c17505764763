"""Mode sample: images from the weights that a run folder holds; needs no data and no accelerator."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from components.interfaces import Curating, Decoder, Hardware, Sampler, UserError, draws_class_on_request
from pipeline import configs, grid
from pipeline.build import Run, build
from pipeline.run_folder import RunFolder

_GRID_COLUMNS = 10


def sample(
    workdir: str,
    *,
    checkpoint: str,
    seed: int,
    num_images: int,
    labels: str,
    truncation: float | None,
    output: str | None,
) -> int:
    """Write images from a checkpoint of the run in `workdir`.

    Args:
      workdir: a run folder.
      checkpoint: "latest", "best", or a step.
      seed: of the latents.
      num_images: how many.
      labels: "balanced": classes in turn; else classes with commas between, taken in turn.
      truncation: the largest value of a latent, see `interfaces.Decoder`; None: as the prior has it.
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
    require_class_on_request(run.sampler, labels)
    chosen = [classes[index % len(classes)] for index in range(num_images)]
    images = drawn(run.sampler, num_images, seed=seed, labels=chosen, truncation=truncation)
    place = Path(output) if output else folder.path / "sample.png"
    grid.write(images, chosen, place, columns=min(num_images, len(classes) if len(classes) > 1 else _GRID_COLUMNS))
    asked = f"classes {labels}" if draws_class_on_request(run.sampler) else "no class asked for"
    print(f"{num_images} images of step {run.step} ({asked}, seed {seed}) are in {place}.")
    return 0


def drawn(sampler: Sampler, num_images: int, *, seed: int, labels: Sequence[int], truncation: float | None) -> Any:
    """Return uint8[N, H, W, C] of N classes, from latents within a truncation where there is one."""
    if truncation is None:
        return sampler.sample(num_images, seed=seed, labels=labels)
    decoder = decoder_of(sampler, "--truncation")
    return decoder.decode(decoder.latents(num_images, seed=seed, truncation=truncation), labels)


def require_class_on_request(sampler: Sampler, labels: str) -> None:
    """Refuse labels for a model whose images do not depend on them: they would be told falsely of its images."""
    if labels != "balanced" and not draws_class_on_request(sampler):
        raise UserError(
            f"`--labels` is the class of each image. Received {labels!r} for a model that draws no class on request. "
            "Leave it out."
        )


def decoder_of(sampler: Sampler, asked: str) -> Decoder:
    """Return the sampler of a run as what decodes latents; raises UserError where `asked` asks too much of it."""
    if not isinstance(sampler, Decoder):
        raise UserError(
            f"`{asked}` needs a sampler that decodes given latents (`Decoder` in components/interfaces.py). Received "
            f"{type(sampler).__name__}. Use --mode=sample without it, or bind another `Experiment.sampler`."
        )
    return sampler


def restored(folder: RunFolder, checkpoint: str) -> Run:
    """Return the run of a folder on this process's first device, at "latest", at "best" or at a step."""
    run = rebuilt(folder, configs.parse([str(folder.config)]))

    def restore_best() -> None:
        if not isinstance(run.checkpointer, Curating):
            raise UserError(
                "`--checkpoint=best` needs a checkpointer that keeps the best. Received a run with "
                f"{type(run.checkpointer).__name__}. Use --checkpoint=latest or a step."
            )
        run.checkpointer.restore_best()

    restore(run, folder, checkpoint, restore_best, purpose="Images need")
    return run


def restore(run: Run, folder: RunFolder, checkpoint: str, restore_best: Callable[[], None], *, purpose: str) -> None:
    """Restore the checkpoint that --checkpoint names.

    Args:
      run: to restore into.
      folder: its folder.
      checkpoint: "latest", "best" or a step.
      restore_best: restores what is meant by the best one.
      purpose: what needs a checkpoint, for the message where there is none.

    Raises:
      UserError: none of these, or there is no such checkpoint.
    """
    if checkpoint == "latest":
        if not run.checkpointer.restore_latest():
            raise UserError(f"{purpose} a checkpoint. {folder.checkpoints} holds none yet. Train first.")
    elif checkpoint == "best":
        restore_best()
    elif checkpoint.isdecimal():
        run.checkpointer.restore(int(checkpoint))
    else:
        raise UserError(f"`--checkpoint` is 'latest', 'best' or a step. Received {checkpoint!r}.")


def rebuilt(folder: RunFolder, config: configs.Config) -> Run:
    """Return the run of a folder on this process's first device, nothing restored."""
    hardware = Hardware(strategy=tf.distribute.get_strategy(), accelerator="cpu", description="the first device")
    spec = folder.spec()
    return build(config.experiment(), hardware=hardware, spec=spec, checkpoints=folder.checkpoints, to_train=False)


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
