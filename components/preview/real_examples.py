"""Real examples for the eye: the same ones for the same (data, seed)."""

import numpy as np

from components.interfaces import DataSource

_BATCH = 64
_MOST_BATCHES = 100  # a class rarer than this allows stays black


def one_of_each_class(data: DataSource, seed: int) -> np.ndarray:
    """Return uint8[K, H, W, C], the first example of every class; black where none was found."""
    columns = data.spec.num_classes
    found: dict[int, np.ndarray] = {}
    for batch in data.batches(global_batch_size=_BATCH, seed=seed, start_batch=0).take(_MOST_BATCHES):
        for label, image in zip(batch["label"].numpy(), batch["image"].numpy(), strict=True):
            found.setdefault(int(label), image)
        if len(found) >= columns:
            break
    black = np.full(data.spec.image_shape, -1.0)
    return _as_bytes(np.stack([found.get(column, black) for column in range(columns)]))


def first(count: int, data: DataSource, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first `count` examples: images uint8[count, H, W, C] and labels int32[count]."""
    images: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for batch in data.batches(global_batch_size=_BATCH, seed=seed, start_batch=0).take(-(-count // _BATCH)):
        images.append(batch["image"].numpy())
        labels.append(batch["label"].numpy())
    return _as_bytes(np.concatenate(images)[:count]), np.concatenate(labels)[:count]


def _as_bytes(images: np.ndarray) -> np.ndarray:
    """Return uint8 from float32 in [-1, 1]."""
    return np.round(images * 127.5 + 127.5).astype(np.uint8)
