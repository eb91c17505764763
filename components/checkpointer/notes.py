"""What a checkpoint tells beside its variables: who wrote it, which is the best, and what the host remembers."""

import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from components.interfaces import UserError

NAME = "notes.json"
FORMAT = 1  # goes up when an older version could no longer read what is written
_BEFORE: Mapping[str, Any] = {"format": 0, "version": "0.1.0 or earlier", "best": None, "remembered": {}}


def write(folder: Path, best: Mapping[str, Any] | None, remembered: Mapping[str, Any]) -> None:
    """Write the notes of a checkpoint that is not sealed yet.

    Raises:
      OSError: there is no room.
    """
    notes = {"format": FORMAT, "version": project_version(), "best": best, "remembered": remembered}
    (folder / NAME).write_text(json.dumps(notes, indent=2) + "\n")


def read(folder: Path) -> Mapping[str, Any]:
    """Return the notes of a whole checkpoint; those of the first version have none.

    Raises:
      UserError: a later version wrote it, in a format that this one does not know.
    """
    path = folder / NAME
    notes = json.loads(path.read_text()) if path.exists() else _BEFORE
    if notes["format"] > FORMAT:
        raise UserError(
            f"A checkpoint is read by the version that wrote it, or a later one. {folder} is of version "
            f"{notes['version']}, format {notes['format']}; this is version {project_version()}, which reads formats "
            f"up to {FORMAT}. Use that version, or a later one."
        )
    return notes


def project_version() -> str:
    """Return the version of this project that is installed; "unknown" where none is."""
    try:
        return metadata.version("gantry")
    except metadata.PackageNotFoundError:
        return "unknown"
