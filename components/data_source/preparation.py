"""A TFDS data set that is ready to be read: found on disk, or prepared now, without ever waiting on a dead network."""

import difflib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import requests
import tensorflow_datasets as tfds
from absl import logging

from components.data_source import mnist_5k, network
from components.interfaces import UserError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

EMBEDDED = mnist_5k.Mnist5k.name

# What a download that the network or the host cut short raises.
_DOWNLOAD_ERRORS = (
    requests.RequestException,
    tfds.download.DownloadError,
    tfds.core.download.download_manager.NonMatchingChecksumError,
    ConnectionError,
    TimeoutError,
)


class Unavailable(Exception):
    """The data set is neither prepared nor can it be downloaded now; the text says why."""


def prepared_builder(name: str, *, data_dir: str | None, download: bool) -> tfds.core.DatasetBuilder:
    """Return the builder of a data set whose files are on disk.

    Prepared data are found without any network access. A data set that is not prepared is prepared now: the embedded
    digits from the package, others by download if all hosts answer within three seconds. What is left of an attempt
    that fails does not count as prepared.

    Args:
      name: `data_set`, `data_set/config` or `data_set:version`.
      data_dir: TFDS's folder; None: $TFDS_DATA_DIR, or ~/tensorflow_datasets.
      download: whether the network may be used.

    Raises:
      UserError: there is no such data set, or the folder cannot be written.
      Unavailable: it is not prepared and cannot be downloaded.
    """
    folder = _folder(data_dir)
    builder = _find(name, folder)
    if _is_prepared(builder):
        return builder
    older = _any_version(name, folder)
    if older is not None:
        return older
    if not isinstance(builder, mnist_5k.Mnist5k):
        _check_downloadable(builder, download)
    with _one_at_a_time(builder):
        if not _is_prepared(builder):  # another process may have done it meanwhile
            _prepare(builder)
    return _find(name, folder)


def unprepared_builder(name: str, *, data_dir: str | None) -> tfds.core.DatasetBuilder | None:
    """Return the builder of a data set that is not on disk, None for one that is; writes and fetches nothing.

    Raises:
      UserError: there is no such data set.
    """
    folder = _folder(data_dir)
    builder = _find(name, folder)
    return None if _is_prepared(builder) or _any_version(name, folder) is not None else builder


def require_known(name: str, *, parameter: str) -> None:
    """Raise UserError, naming `parameter`, where TFDS knows no data set `name`."""
    try:
        _find(name, None)
    except UserError as error:
        raise UserError(str(error).replace("`name`", f"`{parameter}`", 1)) from error


def _folder(data_dir: str | None) -> str | None:
    """Return the folder that is meant; raises UserError for what is none."""
    folder = None if data_dir is None else os.path.expanduser(data_dir)
    if folder is not None and os.path.exists(folder) and not os.path.isdir(folder):
        raise UserError(f"`data_dir` must be a folder. Received {data_dir!r}, which is none. Name one, new or old.")
    return folder


def _find(name: str, folder: str | None) -> tfds.core.DatasetBuilder:
    """Return the builder of a name, prepared or not."""
    namespace, colon, rest = name.split("/")[0].partition(":")
    if colon and not rest[:1].isdigit():
        raise UserError(
            f"`name` must be one of TFDS's own data sets, or one of yours. Received {name!r}, of the collection "
            f"`{namespace}`, which is fetched from the network. Prepare it by TFDS, then give its plain name."
        )
    try:
        return tfds.builder(name, data_dir=folder)
    except tfds.core.registered.DatasetNotFoundError:
        names = tfds.list_builders(with_community_datasets=False)
        near = difflib.get_close_matches(name.split("/")[0].partition(":")[0].lower(), names, n=4, cutoff=0.5)
        hint = f"The nearest names are {', '.join(near)}." if near else f"The digits in the package are `{EMBEDDED}`."
        raise UserError(f"`name` must be a data set known to TensorFlow Datasets. Received {name!r}. {hint}") from None
    except (ValueError, AssertionError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:400]
        raise UserError(f"`name` must be `data_set`, `data_set/config` or `data_set:version`. {reason}") from error
    except ImportError as error:
        raise UserError(f"The data set {name!r} needs a package that is not installed: {error}.") from error


def _is_prepared(builder: tfds.core.DatasetBuilder) -> bool:
    return (builder.data_path / "dataset_info.json").exists()


def _any_version(name: str, folder: str | None) -> tfds.core.DatasetBuilder | None:
    """Return the newest version on disk; TFDS itself looks for the one that its code would prepare."""
    if ":" in name:
        return None
    try:
        builder = tfds.core.read_only_builder.builder_from_files(name, data_dir=folder)
    except (ValueError, AssertionError, OSError):
        return None
    logging.info("Reading %s, an older version than this TFDS would prepare.", builder.info.full_name)
    return builder


def _check_downloadable(builder: tfds.core.DatasetBuilder, download: bool) -> None:
    """Raise Unavailable, within seconds, unless a download has a chance."""
    if not download:
        raise Unavailable("downloads are switched off (`download = False`)")
    manual = _manual_folder(builder)
    if builder.MANUAL_DOWNLOAD_INSTRUCTIONS and not (manual.is_dir() and any(manual.iterdir())):
        text = " ".join(builder.MANUAL_DOWNLOAD_INSTRUCTIONS.split())
        raise Unavailable(f"its files must be fetched by hand and put into {manual}: {text}")
    why = network.unreachable(builder.url_infos or ())
    if why:
        raise Unavailable(why)


def _manual_folder(builder: tfds.core.DatasetBuilder) -> Path:
    return Path(os.fspath(builder.data_dir_root)) / "downloads" / "manual"


def _prepare(builder: tfds.core.DatasetBuilder) -> None:
    """Write the data set's files: in a folder of another name, which TFDS renames when all is done."""
    config = tfds.download.DownloadConfig(
        compute_stats=tfds.download.ComputeStatsMode.SKIP,
        try_download_gcs=False,
        manual_dir=_manual_folder(builder) if builder.MANUAL_DOWNLOAD_INSTRUCTIONS or builder.url_infos else None,
    )
    try:
        with network.bounded_requests(), _quiet(builder):
            builder.download_and_prepare(download_config=config)
    except _DOWNLOAD_ERRORS as error:
        raise Unavailable(f"the download failed ({_first_line(error)}). {_by_hand(builder)}") from error
    except OSError as error:
        if not _is_prepared(builder):  # where there are no locks, another process may have been the first to rename
            raise UserError(_unwritable(builder, error)) from error
    except ImportError as error:
        raise UserError(f"Preparing `{builder.name}` needs a package that is not installed: {error}.") from error


@contextmanager
def _quiet(builder: tfds.core.DatasetBuilder) -> Iterator[None]:
    """Keep TFDS from reporting a download and its progress where nothing is downloaded."""
    if not isinstance(builder, mnist_5k.Mnist5k):
        yield
        return
    tfds.disable_progress_bar()
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        tfds.enable_progress_bar()


def _by_hand(builder: tfds.core.DatasetBuilder) -> str:
    """Say how to get round a host that refuses, such as one with a quota."""
    files = [f"{url} as {info.filename}" for url, info in (builder.url_infos or {}).items() if info.filename]
    listed = "; ".join(files[:6]) + ("; ..." if len(files) > 6 else "")
    return f"Files fetched by a browser are used if they lie in {_manual_folder(builder)}: {listed}" if files else ""


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _unwritable(builder: tfds.core.DatasetBuilder, error: OSError) -> str:
    return (
        f"The data set `{builder.name}` is not prepared yet, so its folder must be writable, with room for it. "
        f"Received {builder.data_dir_root}: {error}. Bind `data_dir` to a folder that you may write, or to one where "
        "the data set is prepared."
    )


@contextmanager
def _one_at_a_time(builder: tfds.core.DatasetBuilder) -> Iterator[None]:
    """Let one process of this machine, or of all that share the folder, prepare the data while the others wait."""
    root = os.fspath(builder.data_dir_root)
    if fcntl is None or "://" in root:
        yield
        return
    with _open_lock(builder, Path(root)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            logging.info("Another process prepares %s in %s. Waiting for it.", builder.name, root)
            _wait(lock)
        yield  # closing the file gives the lock back, and so does the death of the process


def _open_lock(builder: tfds.core.DatasetBuilder, root: Path) -> Any:
    try:
        root.mkdir(parents=True, exist_ok=True)
        return open(root / f".{builder.name}.lock", "w")
    except OSError as error:
        raise UserError(_unwritable(builder, error)) from error


def _wait(lock: Any) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:  # some network file systems have no locks: TFDS's rename lets the first one win
        logging.warning("The data folder knows no locks (%s).", error)
