"""Mode reconstruct: real images of a run's data, and what its networks make of them."""

from pathlib import Path
from typing import Any

import numpy as np

from components.interfaces import DataSource, DataSpec, Reconstructor, UserError
from pipeline import grid
from pipeline.run_folder import RunFolder
from pipeline.sample import restored

_COLUMNS = 10
_BATCH = 100


def reconstruct(workdir: str, *, checkpoint: str, seed: int, num_images: int, output: str | None) -> int:
    """Write real images and their reconstructions from a checkpoint of the run in `workdir`.

    Args:
      workdir: the run folder of an autoencoder.
      checkpoint: "latest", "best", or a step.
      seed: of the order of the data.
      num_images: how many; beyond the size of the data images come again.
      output: FILE.png, FILE.npz or a folder; None: reconstruction.png in the run folder. See `write`.

    Returns:
      The exit status, 0.

    Raises:
      UserError: no run, no such checkpoint, a run that does not reconstruct, data that are not there, or a place that
        cannot be written.
    """
    folder = RunFolder(workdir)
    folder.require_run()
    run = restored(folder, checkpoint)
    if not isinstance(run.sampler, Reconstructor):
        raise UserError(
            f"`--mode=reconstruct` needs the run of an autoencoder. {folder.path} draws its images by "
            f"{type(run.sampler).__name__}, which reconstructs none. Use --mode=sample, or a run such as that of "
            "vae_conv.gin."
        )
    require_like(run.experiment.data.spec, folder.spec())
    originals, labels = real_images(run.experiment.data, num_images, seed)
    images = run.sampler.reconstruct(originals, labels=labels.tolist() if run.networks.spec.num_classes else None)
    place = Path(output) if output else folder.path / "reconstruction.png"
    write(images, originals, labels, place)
    print(f"{num_images} images (seed {seed}) and their reconstructions of step {run.step} are in {place}.")
    return 0


def real_images(data: DataSource, num_images: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first images of the order that `seed` gives, uint8[N, H, W, C], and their labels int32[N]."""
    parts: dict[str, list[Any]] = {"image": [], "label": []}
    for batch in data.batches(global_batch_size=_BATCH, seed=seed, start_batch=0).take(-(-num_images // _BATCH)):
        for name, found in parts.items():
            found.append(batch[name].numpy())
    images, labels = (np.concatenate(found)[:num_images] for found in parts.values())
    return as_bytes(images), labels.astype(np.int32)


def as_bytes(images: np.ndarray) -> np.ndarray:
    """Return uint8 of float32 in [-1, 1]."""
    return np.round(images * 127.5 + 127.5).astype(np.uint8)


def write(images: np.ndarray, originals: np.ndarray, labels: np.ndarray, output: Path) -> None:
    """Write reconstructions `images` of `originals`, both uint8[N, H, W, C], of classes `labels` int32[N].

    Args:
      images: the reconstructions.
      originals: the real images.
      labels: tell the class in the archive and in file names.
      output: ends in .png: one picture, in which a row of 10 originals stands above the row of their reconstructions;
        in .npz: `images`, `labels` and `originals`; without an ending: a folder of the folders `originals` and
        `reconstructions`, of PNG files INDEX-LABEL.png.

    Raises:
      UserError: another ending, or a place that cannot be written.
    """
    if output.suffix == ".npz":
        grid.write(images, labels.tolist(), output, columns=_COLUMNS, archived={"originals": originals})
    elif output.suffix:
        columns = min(len(images), _COLUMNS)
        grid.write(pairs_of_rows(originals, images, columns), (), output, columns=columns)
    else:
        grid.write(originals, labels.tolist(), output / "originals", columns=_COLUMNS)
        grid.write(images, labels.tolist(), output / "reconstructions", columns=_COLUMNS)


def pairs_of_rows(above: np.ndarray, below: np.ndarray, columns: int) -> np.ndarray:
    """Return uint8[2 * rows * columns, H, W, C]: a row of `above`, then one of `below`; the rest is black."""
    count, *shape = above.shape
    cells = np.zeros((2, -(-count // columns) * columns, *shape), np.uint8)
    cells[:, :count] = above, below
    return cells.reshape(2, -1, columns, *shape).swapaxes(0, 1).reshape(-1, *shape)


def require_like(found: DataSpec, trained_on: DataSpec) -> None:
    """Refuse data of another shape than the run was trained on, and say so where they are others."""
    for name in ("image_shape", "num_classes"):
        now, then = getattr(found, name), getattr(trained_on, name)
        if now != then:
            raise UserError(
                f"The data must be like those that the run was trained on. Received {found.name!r} of "
                f"{name}={now}; {trained_on.name!r} had {then}. Prepare the data of the run's config.gin again."
            )
    if found.fingerprint != trained_on.fingerprint:
        then, now = (f"{spec.name} ({spec.split}, fingerprint {spec.fingerprint})" for spec in (trained_on, found))
        print(f"The run was trained on other data: on {then}, and these are {now}.")
