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
      flags: beside --workdir; the function is called as FUNCTION(workdir, FLAG=value, ...) and returns the exit status.
      takes_several: whether --workdir can be repeated; the function is given the list of them.
    """

    place: str
    flags: tuple[str, ...]
    takes_several: bool = False

    def function(self) -> Callable[..., int]:
        """Return the function, imported."""
        module, _, name = self.place.partition(":")
        return getattr(importlib.import_module(module), name)


OF_TRAINING = ("gin_file", "gin_param", "strategy", "dry_run", "require_accelerator", "overwrite", "force_resume")
USING_A_RUN: Mapping[str, Mode] = {
    "sample": Mode("pipeline.sample:sample", ("checkpoint", "seed", "num_images", "labels", "output")),
    "reconstruct": Mode("pipeline.reconstruct:reconstruct", ("checkpoint", "seed", "num_images", "output")),
    "report": Mode("pipeline.report:report", ("output",), takes_several=True),
}
NAMES = ("train", *USING_A_RUN)


def flags_of(mode: str) -> tuple[str, ...]:
    """Return the flags that have an effect in a mode, beside those of all."""
    return USING_A_RUN[mode].flags if mode in USING_A_RUN else OF_TRAINING


def with_flag(flag: str) -> list[str]:
    """Return the modes in which a flag has an effect."""
    return [mode for mode in NAMES if flag in flags_of(mode)]
