"""The run folder: what a stranger finds there, and whose run it is."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from components import draws
from components.errors import storage_fault
from components.interfaces import DataSpec, UserError
from pipeline.run_lock import RunLock

FORMAT = 1  # of the run folder: goes up when an older version could no longer go on with it; before there was none
NAMES_TAKEN = ("checkpoints", "events", "history")  # folders of their own, so that no preview may have these names
_OURS = (
    *NAMES_TAKEN,
    *("samples", "config.gin", "manifest.json", "metrics.jsonl", "history.png", "evaluation.json", "report.html"),
)
_PICTURES = "[0-9]" * 9 + ".png*"  # STEP.png, in a folder of its preview's name, and one that a kill left half written
_PACKAGES = ("gantry", "tensorflow", "tensorflow-tpu", "keras", "tensorflow-datasets", "gin-config", "numpy")


class RunFolder:
    """Paths of a run and what is kept beside its weights.

    Args:
      path: the folder; made when something is first written.
    """

    def __init__(self, path: str | Path) -> None:
        """Hold the path."""
        self.path = Path(path)
        self.config = self.path / "config.gin"
        self.manifest = self.path / "manifest.json"
        self.checkpoints = self.path / "checkpoints"
        self.evaluation = self.path / "evaluation.json"
        self._lock = RunLock(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process from training in this folder.

        Raises:
          UserError: another one does, or the folder cannot be written.
        """
        with self.writing("The run was not started."):
            self._lock.__enter__()
        try:
            yield
        finally:
            self._lock.__exit__(*sys.exc_info())

    @contextmanager
    def writing(self, outcome: str) -> Iterator[None]:
        """Turn a full disk, and a folder that cannot be written, into an error that says so.

        Args:
          outcome: what has become of the run, for the message.

        Raises:
          UserError: something could not be written.
        """
        try:
            yield
        except Exception as error:
            reason = storage_fault(error)
            if reason is None or not self._is_inside(error):
                raise
            raise UserError(
                f"`--workdir` must be a folder that can be written, with room in it. {self.path}: {reason}. {outcome} "
                "Make room, or put the folder back, and give the same command again; or name another --workdir."
            ) from error

    def _is_inside(self, error: Exception) -> bool:
        """Say whether a fault may be this folder's: it names no file, or one in it, or a folder that it lies in."""
        name = getattr(error, "filename", None)
        if not isinstance(name, str):
            return True
        own, other = (Path(os.path.abspath(path)) for path in (self.path, name))
        return other.is_relative_to(own) or own.is_relative_to(other)

    def require_in_place(self) -> None:
        """Raise UserError where the folder of a run in progress is gone, or has become another run's."""
        if not self.config.is_file():
            what = "has lost its config.gin" if self.path.is_dir() else "is gone"
        elif self._lock.is_replaced():
            what = "has become the folder of another process"
        else:
            return
        raise UserError(
            f"A run folder stays in its place while the run goes on. {self.path} {what}. What was saved is where the "
            "folder is now: put it back and give the same command again, or start anew in another --workdir."
        )

    def is_in_training(self) -> bool:
        """Say whether a process seems to train in this folder; nothing is locked by asking."""
        return self._lock.is_held()

    def require_run(self) -> None:
        """Raise UserError where no run has been started."""
        if not self.config.is_file() or not self.manifest.is_file():
            raise UserError(
                f"`--workdir` must name the folder of a run. {self.path} holds no config.gin and manifest.json."
            )

    def clear(self) -> None:
        """Delete the run, and nothing that a run did not write."""
        for name in _OURS:
            path = self.path / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for picture in self.path.glob(f"*/{_PICTURES}"):
            picture.unlink()
            if not any(picture.parent.iterdir()):
                picture.parent.rmdir()

    def require_same(self, differences: list[str], spec: DataSpec) -> None:
        """Raise UserError where the folder holds another run than the one to be started."""
        if not self.config.exists():
            if self.checkpoints.exists():
                raise UserError(
                    f"A run folder with checkpoints has its config.gin. {self.path} has lost it. Put it back, choose "
                    "another --workdir, or start anew with --overwrite."
                )
            return
        before = self.spec().fingerprint
        if before != spec.fingerprint:
            differences = [*differences, f"the data's fingerprint: {before} -> {spec.fingerprint} ({spec.name})"]
        if differences:
            raise UserError(
                f"{self.path} holds a run of another configuration:\n  "
                + "\n  ".join(differences)
                + "\nChoose another --workdir, undo the differences, start anew with --overwrite, or go on "
                + "all the same with --force_resume."
            )

    def spec(self) -> DataSpec:
        """Return the spec of the data that the run was started on."""
        return self._facts()[0]

    def config_text(self) -> str:
        """Return the configuration that the run was started with; raises UserError where it cannot be read."""
        try:
            return self.config.read_text()
        except (OSError, ValueError) as error:
            raise self._damaged(self.config, error) from error

    def changed_versions(self) -> list[str]:
        """Return "NAME OLD -> NEW" of what this program is built of, where the last start had another."""
        before = {"draws": "1", **self._facts()[3]} if self.manifest.exists() else {}
        return [
            f"{name} {before[name]} -> {now}" for name, now in _built_with().items() if before.get(name, now) != now
        ]

    def rollbacks(self) -> list[dict[str, Any]]:
        """Return the rollbacks of the run so far, oldest first; see `recovery`."""
        return self._facts()[2] if self.manifest.exists() else []

    def record_rollback(self, rollback: Mapping[str, Any]) -> None:
        """Add a rollback to the manifest."""
        manifest = json.loads(self.manifest.read_text())
        manifest["rollbacks"] = [*manifest.get("rollbacks", []), dict(rollback)]
        with self.writing("The run was not rolled back; the checkpoints that it has are whole."):
            replace_text(self.manifest, json.dumps(manifest, indent=2) + "\n")

    def _facts(self) -> tuple[DataSpec, list[Any], list[dict[str, Any]], dict[str, str]]:
        """Return what manifest.json tells: the data, the starts so far, the rollbacks, the versions."""
        try:
            manifest = json.loads(self.manifest.read_text())
            if int(manifest.get("format", 0)) > FORMAT:
                raise UserError(
                    f"A run folder is read by the version that wrote it, or a later one. {self.path} is of version "
                    f"{manifest['versions'].get('gantry', 'unknown')}, format {manifest['format']}; this one reads "
                    f"formats up to {FORMAT}. Use that version, or a later one."
                )
            data = manifest["data"]
            spec = DataSpec(**{**data, "image_shape": tuple(data["image_shape"])})
            rollbacks = [dict(one) for one in manifest.get("rollbacks", [])]
            return spec, list(manifest["starts"]), rollbacks, dict(manifest["versions"])
        except UserError:
            raise
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._damaged(self.manifest, error) from error

    def _damaged(self, file: Path, error: Exception) -> UserError:
        kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
        return UserError(
            f"A run folder tells in config.gin and manifest.json what it holds. {file} cannot be read: {kind}{error}. "
            "Put it back, choose another --workdir, or start anew with --overwrite."
        )

    def write(
        self, config: str, facts: Mapping[str, Any], spec: DataSpec, step: int, told: Mapping[str, Any] | None = None
    ) -> None:
        """Write config.gin and manifest.json; a run that goes on keeps the list of its starts.

        Args:
          config: text of config.gin.
          facts: of this start.
          spec: of the data.
          step: at which this start begins.
          told: what else the manifest tells of the run, as it is now.
        """
        _, starts, rollbacks, _ = self._facts() if self.manifest.exists() else (None, [], [], None)
        when = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        starts.append({"step": step, "time": when, "command": sys.argv, **project_commit(), **facts})
        head = {"format": FORMAT, "versions": _built_with(), "data": asdict(spec)}
        manifest = {**head, **(told or {}), "starts": starts}
        if rollbacks:
            manifest["rollbacks"] = rollbacks
        with self.writing("The run was not started."):
            self.path.mkdir(parents=True, exist_ok=True)
            replace_text(self.manifest, json.dumps(manifest, indent=2) + "\n")
            replace_text(self.config, config)


def project_commit() -> dict[str, str]:
    """Return {"commit": the one of our source tree, "-dirty" if files differ}; {} where it is no checkout."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():  # an installed copy may lie inside the checkout of something else
        return {}
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        found = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {"commit": found.stdout.strip()} if found.returncode == 0 else {}


def _built_with() -> dict[str, str]:
    return {"python": sys.version.split()[0], **versions(_PACKAGES), "draws": str(draws.VERSION)}


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return {package: its version} of those that are installed."""
    found = {}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a kill, or a loss of power, leaves the old one or the new one."""
    growing = path.with_name(path.name + ".writing")
    with growing.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    growing.replace(path)
