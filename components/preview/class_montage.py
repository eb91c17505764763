"""Real examples in the first row, generated ones below, the class in the column."""

import functools
from typing import Annotated

import numpy as np
from annotated_types import Ge

from components.interfaces import DataSource, Grid, Preview, Sampler
from components.preview import real_examples

_COLUMNS_WITHOUT_CLASSES = 10


def class_montage(sampler: Sampler, data: DataSource, seed: int, *, rows: Annotated[int, Ge(2)] = 10) -> Preview:
    """Return a preview of uint8[rows * K, H, W, C], K images a row; without labels K is 10.

    Args:
      sampler: draws the generated images, classes in turn, from the same latents at every call.
      data: gives one real example a class, the first of it; without labels its first ten examples. A class that is not
        among the first 6,400 examples stays black. Nothing is read before the first call.
      seed: of the latents and of the order of the data.
      rows: of the picture, that of the real examples included.
    """

    @functools.cache
    def real() -> np.ndarray:
        if data.spec.num_classes:
            return real_examples.one_of_each_class(data, seed)
        return real_examples.first(_COLUMNS_WITHOUT_CLASSES, data, seed)[0]

    def draw() -> Grid:
        columns = len(real())
        fake = sampler.sample(columns * (rows - 1), seed=seed)
        return Grid(np.concatenate([real(), fake]), columns)

    return draw
