"""The preview of a run: real examples in the first row, generated ones below, the class in the column."""

import numpy as np

from components.interfaces import DataSource
from pipeline import grid
from pipeline.build import Run

_ROWS = 10
_COLUMNS_WITHOUT_CLASSES = 10
_MOST_BATCHES = 100  # a class rarer than this allows stays black


def montage(run: Run, real: np.ndarray) -> np.ndarray:
    """Return uint8[10 * H, columns * W, C]: `real` and nine rows from the same latents at every step.

    Args:
      run: whose sampler draws.
      real: uint8[columns, H, W, C], from `one_of_each`.
    """
    columns = len(real)
    fake = run.sampler.sample(columns * (_ROWS - 1), seed=run.experiment.seed)
    return grid.tile(np.concatenate([real, fake]), columns)


def one_of_each(data: DataSource, seed: int) -> np.ndarray:
    """Return uint8[K, H, W, C], an example of every class; without labels the first ten examples."""
    columns = data.spec.num_classes or _COLUMNS_WITHOUT_CLASSES
    found: dict[int, np.ndarray] = {}
    for batch in data.batches(global_batch_size=64, seed=seed, start_batch=0).take(_MOST_BATCHES):
        labels = batch["label"].numpy() if data.spec.num_classes else range(64)
        for label, image in zip(labels, batch["image"].numpy(), strict=True):
            found.setdefault(int(label), image)
        if len(found) >= columns:
            break
    black = np.full(data.spec.image_shape, -1.0)
    row = np.stack([found.get(column, black) for column in range(columns)])
    return np.round(row * 127.5 + 127.5).astype(np.uint8)
