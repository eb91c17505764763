"""Mode interpolate: paths between the latents, and the classes, of samples."""

import numpy as np

from pipeline import walk
from pipeline.latent_paths import PATHS
from pipeline.run_folder import RunFolder
from pipeline.sample import decoder_of, require_class_on_request, restored, turns


def interpolate(
    workdir: str,
    *,
    checkpoint: str,
    seed: int,
    labels: str,
    truncation: float | None,
    path: str,
    class_change: str,
    rows: int,
    columns: int,
    output: str | None,
    frame_milliseconds: int | None,
) -> int:
    """Write the images on paths between samples: row i goes from image 2 i of mode sample to image 2 i + 1.

    Args:
      workdir: a run folder.
      checkpoint: "latest", or a step.
      seed: of the latents.
      labels: "balanced": each path within a class, classes in turn; else classes with commas between, those of the ends
        in turn: "3,7" goes from 3 to 7.
      truncation: the largest value of a latent at the ends; None: as the prior has it.
      path: "spherical" or "linear", see `latent_paths`.
      class_change: "gradual": the class enters the network as a mixture, linear in the position; "halfway": it is that
        of the nearer end, in the middle that of the second.
      rows: paths.
      columns: steps of each, both ends among them.
      output: FILE.png, FILE.npz, FILE.gif, FILE.apng or a folder, see `walk.write`; None: interpolation.png in the run
        folder.
      frame_milliseconds: how long a picture of a film is shown; None: 200.

    Returns:
      The exit status, 0.

    Raises:
      UserError: no run, no such checkpoint, wrong labels, classes that cannot be mixed, or a place that cannot be
        written.
    """
    folder = RunFolder(workdir)
    folder.require_run()
    place = walk.place_of(output, folder.path / "interpolation.png", frame_milliseconds)
    run = restored(folder, checkpoint)
    decoder = decoder_of(run.sampler, "--mode=interpolate")
    require_class_on_request(run.sampler, labels)
    num_classes = run.networks.spec.num_classes
    ends = decoder.latents(2 * rows, seed=seed, truncation=truncation).reshape(rows, 2, -1)
    positions = np.linspace(0.0, 1.0, columns)
    classes = classes_of_ends(labels, rows, num_classes)
    is_mixed = class_change == "gradual" and bool((classes[:, 0] != classes[:, 1]).any())
    way = walk.Walk(
        latents=PATHS[path](ends[:, 0], ends[:, 1], positions),
        labels=np.where(positions < 0.5, classes[:, :1], classes[:, 1:]),
        shares=shares_along(classes, positions, num_classes) if is_mixed else None,
    )
    walk.write(way, decoder, place, frame_milliseconds, {"positions": positions})
    print(
        f"{rows} {path} paths of {columns} steps (classes {labels}, seed {seed}), of step {run.step}, are in {place}."
    )
    return 0


def classes_of_ends(labels: str, rows: int, num_classes: int) -> np.ndarray:
    """Return int[R, 2], the classes at both ends of every path; see `interpolate` for `labels`."""
    classes = np.asarray(turns(labels, num_classes))
    if labels == "balanced":
        return np.repeat(classes[np.arange(rows) % len(classes)], 2).reshape(rows, 2)
    return classes[np.arange(2 * rows) % len(classes)].reshape(rows, 2)


def shares_along(classes: np.ndarray, positions: np.ndarray, num_classes: int) -> np.ndarray:
    """Return float32[R, S, K]: the shares of classes int[R, 2] at positions float[S] from the first to the second."""
    first, second = np.eye(num_classes)[classes].swapaxes(0, 1)[:, :, None]
    t = positions[None, :, None]
    return ((1 - t) * first + t * second).astype(np.float32)
