"""Where files lie that are made or fetched once: $XDG_CACHE_HOME/gantry, or ~/.cache/gantry."""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from components.interfaces import UserError


def folder() -> Path:
    """Return the folder; it need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gantry"


def write(path: Path, save: Callable[[Path], None]) -> None:
    """Let `save` write a file, which appears at `path` when it is whole.

    Raises:
      UserError: the folder cannot be written.
    """
    unfinished = path.with_name(f"{path.stem}.{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(unfinished)
        unfinished.replace(path)
    except OSError as error:
        raise UserError(
            f"The cache must be a folder that can be written. Received {path.parent}: {error.strerror or error}. Set "
            "XDG_CACHE_HOME to another."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the checksum of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
