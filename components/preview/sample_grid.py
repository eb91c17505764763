"""Generated images and nothing else."""

from components.interfaces import DataSource, Grid, Positive, Preview, Sampler


def sample_grid(sampler: Sampler, data: DataSource, seed: int, *, rows: Positive = 8, columns: Positive = 8) -> Preview:
    """Return a preview of uint8[rows * columns, H, W, C].

    Args:
      sampler: draws the images, classes in turn, from the same latents at every call.
      data: plays no part.
      seed: of the latents.
      rows: of the picture.
      columns: of the picture.
    """
    return lambda: Grid(sampler.sample(rows * columns, seed=seed), columns)
