"""Every exported file is loaded again by a process that cannot import this project, and must give the same numbers."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from pipeline.exporting.networks import Exported
from pipeline.exporting.plain import is_of_keras, operations

_OURS = ("components", "pipeline", "tools", "gantry")
_NEEDED = ("keras", "tensorflow", "numpy")  # never blocked: what loads the files
# As a share of the largest output, at least of 1: an image's level, one of 256, is 0.008.
_TOLERANCE = {"float32": 1e-4, "mixed_float16": 2e-2, "mixed_bfloat16": 1e-1}
_TIMEOUT_S = 1800


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file that was written, and what came of loading it.

    Attributes:
      exported: its network.
      place: the file, or the folder of a SavedModel.
      suffix: its kind, see `formats`.
      tolerance: how much its outputs may differ.
      difference: how much they do; None where it could not be loaded.
      fault: why not.
    """

    exported: Exported
    place: Path
    suffix: str
    tolerance: float
    difference: float | None = None
    fault: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it gives what the run's own network gives."""
        return self.difference is not None and self.difference <= self.tolerance

    @property
    def size(self) -> int:
        """Its bytes; of a folder those of all files in it."""
        files = [one for one in self.place.rglob("*") if one.is_file()] if self.place.is_dir() else [self.place]
        return sum(one.stat().st_size for one in files)


def checked(files: Sequence[tuple[Exported, str, Path]], *, rows: int, precision: str) -> list[Written]:
    """Return what came of loading files in a clean process.

    Args:
      files: (network, suffix, place) of each.
      rows: of the examples; those of a StableHLO module.
      precision: of the run.
    """
    with tempfile.TemporaryDirectory(prefix="export-check-") as folder:
        examples = {
            one.name: _write_examples(one, rows, Path(folder)) for one in {e.name: e for e, *_ in files}.values()
        }
        job = [
            {**examples[exported.name], "place": str(place.resolve()), "suffix": suffix}
            for exported, suffix, place in files
        ]
        answers = _in_a_clean_process(job, _strange(exported.model for exported, *_ in files), Path(folder))
    tolerance = _TOLERANCE[precision]
    return [
        Written(exported=exported, suffix=suffix, place=place, tolerance=tolerance, **answer)
        for (exported, suffix, place), answer in zip(files, answers, strict=True)
    ]


def _write_examples(exported: Exported, rows: int, folder: Path) -> dict[str, Any]:
    """Write inputs and the run's own outputs; return how the process finds them."""
    inputs = exported.examples(rows)
    outputs = exported.answers(inputs)
    place = folder / f"{exported.name}.npz"
    arrays: dict[str, Any] = {f"input {name}": one for name, one in inputs.items()}
    arrays |= {f"output {name}": one for name, one in outputs.items()}
    np.savez(place, **arrays)
    return {"examples": str(place), "inputs": list(inputs), "outputs": list(outputs)}


def _in_a_clean_process(job: list[dict[str, Any]], strange: Iterable[str], folder: Path) -> list[Mapping[str, Any]]:
    """Return the answers of `clean_process`, one a file."""
    asked, result = folder / "job.json", folder / "result.json"
    asked.write_text(json.dumps({"blocked": sorted({*_OURS, *strange} - {*_NEEDED}), "files": job}))
    script = Path(__file__).with_name("clean_process.py")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.run(
        [sys.executable, "-I", str(script), str(asked), str(result)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    if process.returncode or not result.exists():
        last = "\n".join(process.stderr.strip().splitlines()[-5:])
        raise RuntimeError(f"The process that loads exported files ended with status {process.returncode}:\n{last}")
    return json.loads(result.read_text())


def _strange(models: Iterable[keras.Model]) -> set[str]:
    """Return the top-level modules of the layers that are not Keras's own."""
    return {
        type(one).__module__.partition(".")[0] for model in models for one in operations(model) if not is_of_keras(one)
    }
