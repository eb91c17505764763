"""Real images as bytes: the first of a random order, each once."""

import numpy as np

from components.interfaces import DataSource

_BATCH = 100


def first(count: int, data: DataSource, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the first examples of the order that `seed` gives: images uint8[N, H, W, C] and labels int32[N].

    Beyond the size of the data images come again.
    """
    batches = data.batches(global_batch_size=_BATCH, seed=seed, start_batch=0).take(-(-count // _BATCH))
    parts = [(_as_bytes(batch["image"].numpy()), batch["label"].numpy()) for batch in batches]
    images, labels = (np.concatenate(found)[:count] for found in zip(*parts, strict=True))
    return images, labels.astype(np.int32)


def _as_bytes(images: np.ndarray) -> np.ndarray:
    return np.round(images * 127.5 + 127.5).astype(np.uint8)
