"""Real examples above what an autoencoder makes of them."""

import functools

import numpy as np

from components.interfaces import DataSource, Grid, Positive, Preview, Reconstructor, Sampler, UserError
from components.preview import real_examples


def reconstructions(
    sampler: Sampler, data: DataSource, seed: int, *, rows: Positive = 4, columns: Positive = 8
) -> Preview:
    """Return a preview of uint8[2 * rows * columns, H, W, C]: a row of originals, below it their reconstructions.

    Args:
      sampler: an `interfaces.Reconstructor`; it is told the labels where the data have some.
      data: its first examples are shown. Nothing is read before the first call.
      seed: of the order of the data.
      rows: of originals; the picture has twice as many.
      columns: of the picture.

    Raises:
      UserError: the sampler cannot reconstruct.
    """
    if not isinstance(sampler, Reconstructor):
        raise UserError(
            f"The preview `reconstructions` needs a sampler that reconstructs. Received {type(sampler).__name__}. Bind "
            "that of an autoencoder as `Experiment.sampler`, such as @vae_sampler.VAESampler, or take the preview out "
            "of `Experiment.previews`."
        )

    @functools.cache
    def originals() -> tuple[np.ndarray, list[int] | None]:
        images, labels = real_examples.first(rows * columns, data, seed)
        return images, labels.tolist() if data.spec.num_classes else None

    def draw() -> Grid:
        images, labels = originals()
        made = sampler.reconstruct(images, labels=labels)
        pairs = np.stack([np.reshape(one, [rows, columns, *images.shape[1:]]) for one in (images, made)], axis=1)
        return Grid(np.reshape(pairs, [-1, *images.shape[1:]]), columns)

    return draw
