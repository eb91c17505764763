"""Mode traverse: what each latent does, one at a time."""

from dataclasses import dataclass

import numpy as np

from components.interfaces import DataSource, Encoder, Foreseeable, UserError
from pipeline import walk
from pipeline.build import Run
from pipeline.reconstruct import real_images, require_like
from pipeline.run_folder import RunFolder
from pipeline.sample import decoder_of, restored, turns

_FARTHEST = 3.0  # 99.7 % of a standard normal number's values are between
_EXAMPLES = 1000  # encoded, to tell which latents are active
_ACTIVE = 0.01


def traverse(
    workdir: str,
    *,
    checkpoint: str,
    seed: int,
    labels: str,
    around: str,
    rows: int,
    columns: int,
    output: str | None,
    frame_milliseconds: int | None,
) -> int:
    """Write images in which one latent goes from -3 to 3 while the others stay: a row each.

    Where the run is an autoencoder's and its data are at hand, the most active latents come first, else the first ones.

    Args:
      workdir: a run folder.
      checkpoint: "latest", or a step.
      seed: of the latents of the sample, or of the order of the examples.
      labels: a class; "balanced": class 0, or an example of any class.
      around: "sample": the other latents are those of the first sample of (seed, class); "example": the code of the
        first real image of that class, which needs an autoencoder and its data.
      rows: latents at most.
      columns: values of each, -3 and 3 among them.
      output: FILE.png, FILE.npz, FILE.gif, FILE.apng or a folder, see `walk.write`; the archive has `dimensions`
        int32[R], `values` float32[S] and `activity` float32[Z], if known. None: traversal.png in the run folder.
      frame_milliseconds: how long a picture of a film is shown; None: 200.

    Returns:
      The exit status, 0.

    Raises:
      UserError: no run, no such checkpoint, wrong labels, an example without an encoder or without data, or a place
        that cannot be written.
    """
    folder = RunFolder(workdir)
    folder.require_run()
    place = walk.place_of(output, folder.path / "traversal.png", frame_milliseconds)
    run = restored(folder, checkpoint)
    decoder = decoder_of(run.sampler, "--mode=traverse")
    examples = _examples(run, folder, seed, is_needed=around == "example")
    classes = turns(labels, run.networks.spec.num_classes)
    if labels != "balanced" and len(classes) > 1:
        raise UserError(f"A traversal is of one class. Received --labels={labels}. Name one of them.")
    if around == "example":
        base, label = _code_of_example(examples, classes)
    else:
        base, label = decoder.latents(1, seed=seed)[0], classes[0]
    activity = None if examples is None else examples.codes.var(axis=0)
    order = np.arange(len(base)) if activity is None else np.argsort(-activity, kind="stable")
    dimensions = order[:rows].astype(np.int32)
    values = np.linspace(-_FARTHEST, _FARTHEST, columns).astype(np.float32)
    latents = along_axes(base, dimensions, values)
    way = walk.Walk(latents=latents, labels=np.full(latents.shape[:2], label))
    archived = {"dimensions": dimensions, "values": values} | ({} if activity is None else {"activity": activity})
    walk.write(way, decoder, place, frame_milliseconds, archived)
    print(
        f"Latents {', '.join(map(str, dimensions))} from -3 to 3 around the {around} of seed {seed} (class {label}), "
        f"of step {run.step}, are in {place}. {_told(activity)}".strip()
    )
    return 0


def along_axes(base: np.ndarray, dimensions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return float32[R, S, Z]: `base` float32[Z] with latent dimensions[r] set to values[s]."""
    latents = np.tile(base.astype(np.float32), (len(dimensions), len(values), 1))
    latents[np.arange(len(dimensions))[:, None], np.arange(len(values)), dimensions[:, None]] = values
    return latents


@dataclass(frozen=True)
class _Examples:
    codes: np.ndarray  # float32[N, Z]
    labels: np.ndarray  # int32[N]


def _examples(run: Run, folder: RunFolder, seed: int, *, is_needed: bool) -> _Examples | None:
    """Return the codes of real images; None where there is no encoder or no data, unless they are needed."""
    data = run.experiment.data
    if not isinstance(run.sampler, Encoder):
        if is_needed:
            raise UserError(
                "`--around=example` needs the run of an autoencoder, whose code of a real image is walked around. "
                f"{folder.path} draws its images by {type(run.sampler).__name__}, which encodes none. Use "
                "--around=sample."
            )
        return None
    if not is_needed and not _is_at_hand(data):
        return None
    require_like(data.spec, folder.spec())
    images, labels = real_images(data, min(_EXAMPLES, data.spec.num_examples), seed)
    known = labels.tolist() if run.networks.spec.num_classes else None
    return _Examples(run.sampler.encode(images, labels=known), labels)


def _is_at_hand(data: DataSource) -> bool:
    """Say whether opening the data would neither fetch nor write any."""
    return not isinstance(data, Foreseeable) or data.foresee() is None


def _code_of_example(examples: _Examples | None, classes: list[int]) -> tuple[np.ndarray, int]:
    """Return the latents float32[Z] of the first example of one of the classes, and its class."""
    if examples is None:
        raise UserError("`--around=example` needs data. Received none.")
    found = np.flatnonzero(np.isin(examples.labels, classes))
    if not len(found):
        raise UserError(
            f"`--around=example` takes the first of {len(examples.labels)} examples that is of the class asked for. "
            f"Received {classes[0]}, of which there is none. Ask for another --labels or --seed."
        )
    return examples.codes[found[0]], int(examples.labels[found[0]])


def _told(activity: np.ndarray | None) -> str:
    """Return how many latents are active.

    One is where the variance of its posterior's mean over the data is above 0.01.

    Reference: Burda et al., 2015, arXiv:1509.00519, its active units.
    """
    if activity is None:
        return ""
    return f"Active: {int((activity > _ACTIVE).sum())} of {len(activity)}, the most active first."
