"""Mode neighbours: samples beside the training images nearest to them, so that one sees what was learnt by heart."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from components.interfaces import DataSource, UserError
from pipeline import grid
from pipeline.reconstruct import as_bytes, require_like
from pipeline.run_folder import RunFolder
from pipeline.sample import drawn, require_class_on_request, restored, turns

_BATCH = 500


def neighbours(
    workdir: str,
    *,
    checkpoint: str,
    seed: int,
    labels: str,
    truncation: float | None,
    rows: int,
    columns: int,
    output: str | None,
) -> int:
    """Write samples, each before its nearest training images, the nearest first.

    Args:
      workdir: a run folder; its data must be there.
      checkpoint: "latest", or a step.
      seed: of the latents.
      labels: "balanced": classes in turn; else classes with commas between, taken in turn. A neighbour may be of any
        class.
      truncation: the largest value of a latent; None: as the prior has it.
      rows: samples.
      columns: of the picture: the sample and columns - 1 neighbours.
      output: ends in .png: a grid; in .npz: `images` uint8[N, H, W, C] and `labels` int32[N] of the samples, and of
        their k neighbours `neighbours` uint8[N, k, H, W, C], `neighbour_labels` int32[N, k], `distances` float32[N, k],
        and `positions` int64[N, k], their places in the first epoch of the run; without an ending: a folder of PNG
        files, row by row. None: neighbours.png in the run folder.

    Returns:
      The exit status, 0.

    Raises:
      UserError: no run, no such checkpoint, wrong labels, data that are not there, or a place that cannot be written.
    """
    folder = RunFolder(workdir)
    folder.require_run()
    place = Path(output) if output else folder.path / "neighbours.png"
    grid.require_ending(place)
    run = restored(folder, checkpoint)
    data = run.experiment.data
    require_like(data.spec, folder.spec())
    classes = turns(labels, run.networks.spec.num_classes)
    require_class_on_request(run.sampler, labels)
    chosen = [classes[index % len(classes)] for index in range(rows)]
    images = drawn(run.sampler, rows, seed=seed, labels=chosen, truncation=truncation)
    found = nearest(images, data, columns - 1, run.experiment.seed)
    if place.suffix == ".npz":
        grid.write(images, chosen, place, columns=columns, archived=vars(found))
    else:
        cells = np.concatenate([images[:, None], found.neighbours], axis=1)
        told = np.concatenate([np.reshape(chosen, [-1, 1]), found.neighbour_labels], axis=1)
        grid.write(cells.reshape(-1, *images.shape[1:]), told.reshape(-1).tolist(), place, columns=columns)
    closest = found.distances[:, 0]
    print(
        f"{rows} samples of step {run.step} (classes {labels}, seed {seed}) and the {columns - 1} nearest of "
        f"{data.spec.num_examples:,} training images are in {place}. L2 distance of pixels in [0, 1] to the nearest: "
        f"{closest.min():.2f} to {closest.max():.2f}."
    )
    return 0


@dataclass(frozen=True)
class Nearest:
    """The k training images nearest to each of N images, the nearest first; of equal ones the earlier first.

    Attributes:
      neighbours: uint8[N, k, H, W, C].
      neighbour_labels: int32[N, k].
      distances: float32[N, k], the L2 distance of pixels in [0, 1].
      positions: int64[N, k], in the order of the first epoch.
    """

    neighbours: np.ndarray
    neighbour_labels: np.ndarray
    distances: np.ndarray
    positions: np.ndarray


def nearest(images: np.ndarray, data: DataSource, count: int, seed: int) -> Nearest:
    """Return the `count` nearest of all examples, found by looking at each once.

    Differences, squares and sums are float32.

    Args:
      images: uint8[N, H, W, C].
      data: the examples.
      count: k, at least 1.
      seed: of the order of the data, which tells the positions.

    Raises:
      UserError: there are fewer examples.
    """
    total = data.spec.num_examples
    if count > total:
        raise UserError(
            f"There are {total} training images. Received --columns={count + 1}, {count} nearest ones. Ask for fewer."
        )
    asked = images.reshape(len(images), -1).astype(np.float32) / 255.0
    kept: Nearest | None = None
    batches = data.batches(global_batch_size=_BATCH, seed=seed, start_batch=0).take(-(-total // _BATCH))
    for index, batch in enumerate(batches):
        size = min(_BATCH, total - index * _BATCH)  # the last batch begins another epoch
        examples = as_bytes(batch["image"].numpy()[:size])
        pixels = examples.reshape(size, -1).astype(np.float32) / 255.0
        distances = np.stack([np.sqrt(np.sum(np.square(pixels - one), axis=1)) for one in asked])
        batch_labels = batch["label"].numpy()[:size].astype(np.int32)
        kept = _merged(kept, examples, batch_labels, distances, index * _BATCH, count)
    if kept is None:
        raise UserError("The nearest training images need data. Received none.")
    return kept


def _merged(
    kept: Nearest | None, examples: np.ndarray, labels: np.ndarray, distances: np.ndarray, first: int, count: int
) -> Nearest:
    """Return the nearest of those kept and of new examples, whose positions begin at `first`."""
    own = np.argsort(distances, axis=1, kind="stable")[:, :count]
    new = Nearest(
        examples[own], labels[own], np.take_along_axis(distances, own, axis=1), (first + own).astype(np.int64)
    )
    if kept is None:
        return new
    both = {name: np.concatenate([old, vars(new)[name]], axis=1) for name, old in vars(kept).items()}
    best = np.argsort(both["distances"], axis=1, kind="stable")[:, :count]
    rows = np.arange(len(best))[:, None]
    return Nearest(**{name: one[rows, best] for name, one in both.items()})
