"""Mode evaluate: scores a checkpoint of a run, or with --watch each new one while the run is trained."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from components.interfaces import Evaluator, Measurement, UserError
from pipeline import configs
from pipeline.build import Run
from pipeline.evaluation_file import EvaluationFile, table
from pipeline.reconstruct import require_like
from pipeline.run_folder import RunFolder
from pipeline.sample import rebuilt, restore

_DEFAULT = "base/evaluation.gin"  # for runs that were started without an evaluator
_LOOK_SECONDS = 2.0


def evaluate(workdir: str, *, checkpoint: str, gin_param: Sequence[str], watch: bool, best_by: str) -> int:
    """Score checkpoints of the run in `workdir`; print a table and add to evaluation.json in it.

    Args:
      workdir: a run folder.
      checkpoint: "latest", a step, or "best": of those that are kept, by what evaluation.json tells.
      gin_param: lines of gin over the run's own configuration, such as "classes.InceptionScore.splits = 1".
      watch: score each new checkpoint instead, until the training has ended.
      best_by: the metric by which the best one is named.

    Returns:
      The exit status, 0.

    Raises:
      UserError: no run, no such checkpoint, data that are not there, or an evaluation that cannot be made.
    """
    folder = RunFolder(workdir)
    folder.require_run()
    kept = EvaluationFile(folder.evaluation)
    kept.entries()  # a damaged file is refused before the work that would be lost
    run, evaluator, config = scored_run(folder, gin_param)
    if watch:
        if checkpoint != "latest":
            raise UserError(f"`--watch` takes each new checkpoint. Received --checkpoint={checkpoint}. Leave it out.")
        steps: Iterator[int] = new_checkpoints(run, folder)
    else:
        steps = iter([_restore(run, folder, checkpoint, kept, best_by)])
    scored: list[int] = []
    found: Mapping[str, Measurement] = {}
    with config.explaining(evaluator):
        if watch:
            _require_better(best_by, evaluator)
        for step in steps:
            found = evaluator.evaluate(step)
            with folder.writing(f"The evaluation of step {step} is lost."):
                kept.add(step, found)
            print(table(step, found), flush=True)
            scored.append(step)
    if watch and scored:
        step, value = kept.best(best_by, like=found)
        print(f"The training has ended. Best by {best_by}: step {step} ({value:.4g}).", flush=True)
    print(f"Certificates are in {folder.evaluation}." if scored else "No checkpoint was scored.", flush=True)
    return 0


def _require_better(best_by: str, evaluator: Evaluator) -> None:
    """Refuse before a whole training is watched what could name no best checkpoint after it."""
    if best_by not in evaluator.metric_names:
        raise UserError(
            f"`--best_by` must be a metric of the evaluation. Received {best_by!r}; there are "
            f"{', '.join(evaluator.metric_names)}."
        )


def scored_run(folder: RunFolder, gin_param: Sequence[str]) -> tuple[Run, Evaluator, configs.Config]:
    """Return the run of a folder on this process's first device, nothing restored, and what scores it."""
    files = [str(folder.config)]
    bound = {one.name for one in configs.parse(files).settings() if one.source != "default"}
    if "evaluator" not in bound:
        files.insert(0, _DEFAULT)
        print(f"The run's config.gin names no evaluator: that of {_DEFAULT} is used.", flush=True)
    config = configs.parse(files, list(gin_param))
    with config.explaining():
        run = rebuilt(folder, config)
    if run.evaluator is None:
        raise UserError(
            "`--mode=evaluate` needs an evaluator. Received `Experiment.evaluator = None`. Leave that line out, or "
            "bind one as base/evaluation.gin does."
        )
    require_like(run.experiment.data.spec, folder.spec())
    return run, run.evaluator, config


def new_checkpoints(
    run: Run, folder: RunFolder, wait: Callable[[], None] = lambda: time.sleep(_LOOK_SECONDS)
) -> Iterator[int]:
    """Restore each checkpoint of a run, oldest first, and yield its step, until the training has ended.

    It has where the run's last step is reached, or where no process trains in the folder and nothing new has come. One
    that the training drops before or while it is read is passed over, and so is a damaged one.

    Args:
      run: to restore into.
      folder: its folder.
      wait: called where nothing new has come.
    """
    seen: set[int] = set()
    while True:
        is_in_training = folder.is_in_training()  # asked first: what it saves before it ends is seen below
        fresh = [step for step in run.checkpointer.steps() if step not in seen]
        for step in fresh:
            seen.add(step)
            try:
                run.checkpointer.restore(step)
            except UserError as error:
                is_there = step in run.checkpointer.steps()
                print(str(error) if is_there else f"Step {step} was dropped before it was scored.", flush=True)
                continue
            yield step
        if not fresh and (not is_in_training or max(seen, default=0) >= run.experiment.train_steps):
            return
        if not fresh:
            wait()


def _restore(run: Run, folder: RunFolder, checkpoint: str, kept: EvaluationFile, best_by: str) -> int:
    def restore_best() -> None:
        run.checkpointer.restore(kept.best(best_by, run.checkpointer.steps())[0])

    restore(run, folder, checkpoint, restore_best, purpose="An evaluation needs")
    return run.step
