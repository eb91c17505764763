"""Which class each image is of, as asked for."""

from collections.abc import Sequence

import numpy as np

from components.interfaces import DataSpec, UserError


def chosen(num_images: int, labels: Sequence[int] | None, spec: DataSpec) -> np.ndarray:
    """Return the classes of N images, integers [N].

    Args:
      num_images: N.
      labels: N classes; None: classes in turn, 0 1 2 ... 0 1 2 ...
      spec: of the data; without labels all images are of class 0.

    Raises:
      UserError: labels that are not N classes of the data.
    """
    num_classes = max(1, spec.num_classes)
    if labels is None:
        return np.arange(num_images) % num_classes
    if len(labels) != num_images:
        raise UserError(f"There must be one label an image. Received {len(labels)} for {num_images} images.")
    wrong = sorted({int(label) for label in labels if not 0 <= label < num_classes})
    if wrong:
        raise UserError(
            f"Labels must be in [0, {num_classes}). Received {', '.join(map(str, wrong))}. "
            f"The classes are 0 to {num_classes - 1}."
        )
    return np.asarray(labels)
