"""Checksums of the files of one checkpoint, kept beside them."""

import hashlib
import json
import os
from pathlib import Path

NAME = "checksums.json"


def seal(folder: Path, step: int) -> None:
    """Write the checksums of all files in `folder` into it, and see all of it onto the disk.

    A name that is later given to the folder can then not outlive its content: not in a kill, not in a loss of power.

    Args:
      folder: holds the files of a checkpoint, and no folders.
      step: of the checkpoint.

    Raises:
      OSError: the disk is full, or the folder is gone.
    """
    files = {path.name: _facts(path) for path in sorted(folder.iterdir())}
    (folder / NAME).write_text(json.dumps({"step": step, "files": files}, indent=2) + "\n")
    for path in folder.iterdir():
        flush(path)
    flush(folder)


def fault(folder: Path, step: int) -> str | None:
    """Return what is wrong with a sealed checkpoint, in a few words; None where nothing is.

    Args:
      folder: holds the checkpoint.
      step: the one that it is taken for.
    """
    try:
        sealed = json.loads((folder / NAME).read_text())
        if sealed["step"] != step:
            return f"it is of step {sealed['step']}"
        for name, facts in sealed["files"].items():
            if _facts(folder / name) != facts:
                return f"{name} has changed since it was written"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return f"it cannot be read: {error}"
    return None


def is_sealed(folder: Path) -> bool:
    """Say whether there are checksums; checkpoints of earlier versions have none."""
    return (folder / NAME).exists()


def flush(path: Path) -> None:
    """Return when what was written to a file, or the list of names of a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _facts(path: Path) -> dict[str, str | int]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
