"""One process at a time writes in a run folder."""

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from types import TracebackType

from components.errors import UserError

NAME = "run.lock"
_TRIES = 100  # each lost to a process that was just leaving


class RunLock:
    """Is held by the process that trains in a folder, from entering to leaving, or to its end: the kernel sees to that.

    The file says who holds the lock; whether it is held, only the kernel's lock on it says, so a file that a killed
    process left behind stands in nobody's way. Readers, such as a sampling, take no lock.

    Args:
      folder: the run folder; made when the lock is taken.
    """

    def __init__(self, folder: Path) -> None:
        """Hold the path."""
        self._path = folder / NAME
        self._file: int | None = None

    def __enter__(self) -> "RunLock":
        """Take the lock.

        Raises:
          UserError: another process holds it.
          OSError: the folder cannot be written.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(_TRIES):
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            if not self._take(file):
                continue
            self._file = file
            holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S %Z")}
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps(holder).encode() + b"\n", 0)
            return self
        raise self._taken()

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give the lock back and leave no file."""
        if self._file is None:
            return
        if self.is_in_place():
            self._path.unlink(missing_ok=True)  # while it is held: whoever opened it meanwhile sees that it is gone
        os.close(self._file)
        self._file = None

    def is_in_place(self) -> bool:
        """Say whether the file is the one that was locked: a folder that was replaced has another, or none."""
        return self._file is not None and _is_at(self._file, self._path)

    def is_replaced(self) -> bool:
        """Say whether another process has made a lock of its own in place of this one."""
        return self._path.exists() and not self.is_in_place()

    def is_held(self) -> bool:
        """Say whether a process seems to hold the lock, as the file tells; nothing is locked by asking.

        A holder on another host counts as living while its file is there.
        """
        try:
            holder = json.loads(self._path.read_text())
            if holder["host"] == socket.gethostname():
                os.kill(int(holder["pid"]), 0)
        except (FileNotFoundError, ProcessLookupError):
            return False
        except (OSError, ValueError, TypeError, KeyError):  # it has only just taken the lock, or is another user's
            return True
        return True

    def _take(self, file: int) -> bool:
        """Lock an open file; False where it was deleted between opening and locking.

        Raises:
          UserError: another process holds it.
        """
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file)
            raise self._taken() from error
        except OSError as error:  # some network file systems have no locks; training there is better than none
            print(f"{self._path} cannot be locked ({error.strerror}): start no second run in this folder.", flush=True)
        if _is_at(file, self._path):
            return True
        os.close(file)
        return False

    def _taken(self) -> UserError:
        return UserError(
            f"One process at a time trains in a run folder. {self._path.parent} is in use by {self._holder()}. Wait "
            "for it to end, stop it with Ctrl-C or SIGTERM (it saves first), or choose another --workdir."
        )

    def _holder(self) -> str:
        try:
            holder = json.loads(self._path.read_text())
            return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
        except (OSError, ValueError, TypeError, KeyError):  # it has only just taken the lock
            return "another process"


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
