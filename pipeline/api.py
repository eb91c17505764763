"""The program as functions, for other programs and notebooks; the command line calls the same.

    from pipeline import api

    run = api.build(["quickstart.gin"], ["TRAIN_STEPS = 500"])  # live parts; nothing is written
    images = run.sampler.sample(10, seed=0)
    summary = api.train(["quickstart.gin"], ["TRAIN_STEPS = 500"], workdir="runs/short")
    images = summary.run.sampler.sample(10, seed=0)

Both may be called as often as you like, with other configurations each time. gin keeps one configuration a process, and
parts ask it for their values when they are first traced: be done with a run before you build or train the next one; its
sampler and what has been traced go on working. Neither touches random state or Keras's settings of the process. A
`UserError` says what to mend. Nothing here imports TensorFlow before a configuration has been read.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import UserError
from pipeline import configs

if TYPE_CHECKING:
    from pipeline.build import Run
    from pipeline.launch import Summary


def build(gin_files: Sequence[str], gin_params: Sequence[str] = (), *, workdir: str | Path | None = None) -> "Run":
    """Build and rehearse what gin files name, with nothing restored and nothing written in the run folder.

    Args:
      gin_files: paths, or names of shipped files; a later one overrides an earlier one.
      gin_params: lines of gin that override the files.
      workdir: the run folder, where `Run.checkpointer` looks; None: `default_workdir`.

    Raises:
      UserError: something to mend.
    """
    place = workdir or default_workdir(gin_files)
    config = configs.parse(gin_files, gin_params)
    from pipeline import launch, run_folder

    run, _ = launch.assemble(config, run_folder.RunFolder(place))
    return run


def train(
    gin_files: Sequence[str],
    gin_params: Sequence[str] = (),
    *,
    workdir: str | Path | None = None,
    require_accelerator: bool = False,
    overwrite: bool = False,
    force_resume: bool = False,
) -> "Summary":
    """Train, or go on training, what gin files name; SIGINT and SIGTERM stop it after saving, in the main thread.

    Args:
      gin_files: paths, or names of shipped files; a later one overrides an earlier one.
      gin_params: lines of gin that override the files.
      workdir: the run folder; None: `default_workdir`.
      require_accelerator: refuse to train on a CPU, or without the hardware asked for.
      overwrite: delete the run that the folder holds.
      force_resume: go on though the configuration has changed.

    Returns:
      The run as trained, its folder, and whether a signal stopped it.

    Raises:
      UserError: something to mend, found before anything is written; or, later, numbers that are no longer finite, or a
        folder that can no longer be written.
      SystemExit: another worker of a run on several hosts was lost.
    """
    place = workdir or default_workdir(gin_files)
    config = configs.parse(gin_files, gin_params)
    from pipeline import launch

    return launch.launch(
        config,
        place,
        require_accelerator=require_accelerator,
        overwrite=overwrite,
        force_resume=force_resume,
    )


def dry_run(
    gin_files: Sequence[str],
    gin_params: Sequence[str] = (),
    *,
    workdir: str | Path | None = None,
    require_accelerator: bool = False,
) -> str:
    """Build and rehearse what gin files name, and return a report of it; write nothing anywhere.

    Args:
      gin_files: paths, or names of shipped files; a later one overrides an earlier one.
      gin_params: lines of gin that override the files.
      workdir: the run folder that would be used; None: `default_workdir`.
      require_accelerator: refuse a CPU, or other hardware than was asked for.

    Raises:
      UserError: something to mend.
    """
    place = workdir or default_workdir(gin_files)
    config = configs.parse(gin_files, gin_params)
    from pipeline import dry_run

    return dry_run.dry_run(config, place, require_accelerator=require_accelerator)


def default_workdir(gin_files: Sequence[str]) -> str:
    """Return runs/ and the name of the last gin file.

    Raises:
      UserError: that file is the config.gin of a run, which can be gone on with or repeated.
    """
    if not gin_files:
        raise UserError("A configuration begins with a gin file. Received none. Name one, such as quickstart.gin.")
    last = Path(gin_files[-1])
    if last.name == "config.gin" and (last.parent / "manifest.json").is_file():
        raise UserError(
            f"To run the config.gin of a run folder, say where. Received {last} without `--workdir`. Use "
            f"--workdir={last.parent}-again to repeat that run, or --workdir={last.parent} to go on with it."
        )
    return f"runs/{last.stem}"
