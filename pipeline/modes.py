"""The modes of the program: which function does each, and which flags it takes.

A new mode is a module with such a function, a line here, and a flag in `main` where it needs a new one.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Mode:
    """A mode that uses a run folder.

    Attributes:
      place: "MODULE:FUNCTION"; imported when the mode is asked for, since the command line answers without TensorFlow.
      doc: what it does, or shows, in a few words.
      flags: beside --workdir; the function is called as FUNCTION(workdir, FLAG=value, ...) and returns the exit status.
      takes_several: whether --workdir can be repeated; the function is given the list of them.
    """

    place: str
    doc: str
    flags: tuple[str, ...]
    takes_several: bool = False

    def function(self) -> Callable[..., int]:
        """Return the function, imported."""
        module, _, name = self.place.partition(":")
        return getattr(importlib.import_module(module), name)


OF_TRAINING = ("gin_file", "gin_param", "strategy", "dry_run", "require_accelerator", "overwrite", "force_resume")
USING_A_RUN: Mapping[str, Mode] = {
    "sample": Mode(
        "pipeline.sample:sample",
        "draw images",
        ("checkpoint", "seed", "num_images", "labels", "truncation", "output"),
    ),
    "reconstruct": Mode(
        "pipeline.reconstruct:reconstruct",
        "real images and what an autoencoder makes of them",
        ("checkpoint", "seed", "num_images", "output"),
    ),
    "interpolate": Mode(
        "pipeline.interpolate:interpolate",
        "paths between samples",
        ("checkpoint", "seed", "labels", "truncation", "path", "class_change", "rows", "columns", "output")
        + ("frame_milliseconds",),
    ),
    "traverse": Mode(
        "pipeline.traverse:traverse",
        "one latent at a time",
        ("checkpoint", "seed", "labels", "around", "rows", "columns", "output", "frame_milliseconds"),
    ),
    "neighbours": Mode(
        "pipeline.neighbours:neighbours",
        "samples beside the nearest training images",
        ("checkpoint", "seed", "labels", "truncation", "rows", "columns", "output"),
    ),
    "film": Mode(
        "pipeline.film:film",
        "the pictures drawn in training, one after the other",
        ("output", "frame_milliseconds"),
    ),
    "export": Mode(
        "pipeline.export:export",
        "networks as files that load without this project",
        ("checkpoint", "formats", "num_images", "output"),
    ),
    "evaluate": Mode(
        "pipeline.evaluate:evaluate",
        "metrics of samples, each with what made it",
        ("checkpoint", "gin_param", "watch", "best_by"),
    ),
    "report": Mode(
        "pipeline.report:report",
        "one HTML file that shows a run, or compares several",
        ("output",),
        takes_several=True,
    ),
}
NAMES = ("train", *USING_A_RUN)


def flags_of(mode: str) -> tuple[str, ...]:
    """Return the flags that have an effect in a mode, beside those of all."""
    return USING_A_RUN[mode].flags if mode in USING_A_RUN else OF_TRAINING


def with_flag(flag: str) -> list[str]:
    """Return the modes in which a flag has an effect."""
    return [mode for mode in NAMES if flag in flags_of(mode)]


def told() -> str:
    """Return what each mode does, in one line."""
    return "; ".join(f"{name}: {mode.doc}" for name, mode in USING_A_RUN.items())
