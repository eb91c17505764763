"""The one error that a user can mend, and the faults of disks; apart from `interfaces`: neither needs TensorFlow."""

import errno
import os

# What a full, read-only, broken, vanished or impossible place says. A closed pipe or a lack of memory is none of these.
_STORAGE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EIO,
    errno.ESTALE,
)


class UserError(ValueError):
    """A mistake that the user can mend: the message names the rule, the value received and the remedy."""


def storage_fault(error: Exception) -> str | None:
    """Return why a file could not be written, in the system's words; None where `error` is no fault of a disk.

    Args:
      error: an OSError, or one of TensorFlow's, which hold the system's words after the path: "PATH; No space left on
        device". TensorFlow's kind alone does not tell: a full disk and a full GPU are both "resource exhausted".
    """
    if isinstance(error, OSError):
        return error.strerror if error.errno in _STORAGE else None
    return next((os.strerror(number) for number in _STORAGE if f"; {os.strerror(number)}" in str(error)), None)
