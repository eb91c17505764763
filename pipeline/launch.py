"""Mode train: from a configuration to a finished, or cleanly interrupted, run folder."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.interfaces import Action, DataSpec, Foreseeable, Hardware, UserError
from pipeline import actions, configs, listening, recovery, tpu_rules
from pipeline.build import Run, build
from pipeline.evaluation_file import EvaluationFile
from pipeline.experiment import Experiment
from pipeline.free_to_change import FREE_TO_CHANGE
from pipeline.lost_worker import ending_with_the_others
from pipeline.outlets import Outlets
from pipeline.report import NAME as REPORT
from pipeline.report import RunReport
from pipeline.run_folder import RunFolder
from pipeline.status import StatusLine
from pipeline.stop import StopSignal


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What came of a training.

    Attributes:
      run: as it stands now; its sampler draws from the trained weights.
      workdir: the run folder.
      exit_status: 0, or 130 and 143 where a signal stopped the run after saving.
    """

    run: Run
    workdir: Path
    exit_status: int


@ending_with_the_others()
def launch(
    config: configs.Config,
    workdir: str | Path,
    *,
    require_accelerator: bool = False,
    overwrite: bool = False,
    force_resume: bool = False,
) -> Summary:
    """Train, or go on training, what a configuration names.

    Args:
      config: as `configs.parse` returned it.
      workdir: the run folder.
      require_accelerator: refuse to train on a CPU, or without the hardware asked for.
      overwrite: delete the run that the folder holds.
      force_resume: go on though the configuration has changed.

    Raises:
      UserError: something to mend, found before anything is written; or, later, numbers that are no longer finite, or a
        folder that can no longer be written.
    """
    folder = RunFolder(workdir)
    run, outlets = assemble(config, folder, require_accelerator=require_accelerator)
    with folder.locked() if run.hardware.is_chief else nullcontext():  # the chief alone writes
        listening.prepare(run.checkpointer, outlets.means, outlets.watch)
        _enter(folder, config, run, overwrite=overwrite, force_resume=force_resume)
        run, exit_status = _train(recovery.resumed(run, folder), folder, outlets)
        return Summary(run=run, workdir=folder.path, exit_status=exit_status)


def assemble(
    config: configs.Config, folder: RunFolder, *, require_accelerator: bool = False, is_rehearsal: bool = False
) -> tuple[Run, Outlets]:
    """Build and rehearse all that a configuration names, and refuse what had no effect; write nothing in the folder.

    Args:
      config: as `configs.parse` returned it.
      folder: the run folder.
      require_accelerator: refuse a CPU, or other hardware than was asked for.
      is_rehearsal: data that are not ready are foreseen instead of being prepared.
    """
    experiment = config.experiment()
    with config.explaining():
        hardware = choose_hardware(experiment, require_accelerator)
    with config.explaining(experiment.data):
        spec = open_data(experiment, is_rehearsal)
    with config.explaining():
        run = build(experiment, hardware=hardware, spec=spec, checkpoints=folder.checkpoints)
        if hardware.meant_for_tpu:
            tpu_rules.require_fit(run, experiment.data if spec.fingerprint else None)
        previews = {
            name: make(run.sampler, experiment.data, experiment.seed) for name, make in experiment.previews.items()
        }
        writers = [make(str(folder.path)) for make in experiment.writers]
        watch = experiment.watch(run.sampler) if experiment.watch else None
        outlets = Outlets(previews=previews, writers=writers, watch=watch)
        outlets.require_previews()
        listening.require_known(run.stepper, run.checkpointer, watch, _announced(run))
    config.refuse_unused()
    if run.evaluator and experiment.evaluate_every and not is_rehearsal:
        with config.explaining(run.evaluator):
            run.evaluator.prepare()
    return run, outlets


def open_data(experiment: Experiment, is_rehearsal: bool) -> DataSpec:
    """Open the data, or foresee what they will be, and say so in one line."""
    data = experiment.data
    foreseen = data.foresee() if is_rehearsal and isinstance(data, Foreseeable) else None
    spec = foreseen or data.spec
    count = f"{spec.num_examples:,} images" if spec.num_examples else "images"
    shape = " x ".join(map(str, spec.image_shape))
    _say(f"Data: {spec.name} ({spec.split}), {count} of {shape}. {foreseen.notice if foreseen else ''}")
    return spec


def choose_hardware(experiment: Experiment, require_accelerator: bool) -> Hardware:
    """Return the hardware that the experiment asks for, or what is there instead, and say so in one line."""
    hardware = experiment.strategy()
    _say(f"Hardware: {hardware.shortfall + ' Using ' if hardware.shortfall else ''}{hardware.description}.")
    if require_accelerator and (hardware.shortfall or hardware.accelerator == "cpu"):
        raise UserError(
            f"`--require_accelerator` forbids to run without one. {hardware.shortfall or 'No TPU or GPU was found.'} "
            "Check that the machine has one and that TensorFlow sees it, or leave the flag off."
        )
    return hardware


def _enter(folder: RunFolder, config: configs.Config, run: Run, *, overwrite: bool, force_resume: bool) -> None:
    """Make the folder this run's own and restore what it holds; nothing is written before both are decided."""
    text = config.operative_text()
    if overwrite and run.hardware.is_chief:
        with folder.writing("The run that it holds may be deleted in part."):
            folder.clear()
    run.hardware.wait_for_all()
    if not overwrite and not force_resume:
        old = folder.config_text() if folder.config.exists() else text
        folder.require_same(configs.differences(old, text, ignore=FREE_TO_CHANGE), run.networks.spec)
    step = run.checkpointer.restore_latest()
    run.hardware.wait_for_all()
    if run.hardware.is_chief:
        hardware = run.hardware
        strategy = f"{type(hardware.strategy).__name__}, {hardware.strategy.num_replicas_in_sync} in sync"
        facts = {
            "hardware": hardware.description,
            "strategy": strategy,
            "seed": run.experiment.seed,
            "images_per_step": _images_per_step(run),  # makes seconds of the log points' images a second
        }
        if step and (changed := folder.changed_versions()):
            facts["changed_versions"] = changed
            told = ", ".join(changed)
            _say(f"Note: versions changed since the last start: {told}. Bits are promised for equal versions only.")
        folder.write(text, facts, run.networks.spec, step, _told(config, run))
        _say(f"Run folder: {folder.path}, {f'going on at step {step}' if step else 'a new run'}.")


def _images_per_step(run: Run) -> int:
    """Return how many real images a step draws, on all replicas together."""
    return run.experiment.global_batch_size * run.stepper.batches_per_step


def _told(config: configs.Config, run: Run) -> dict[str, Any]:
    """Return what the manifest tells of the networks' sizes and of where each value comes from, defaults left out."""
    settings = [one for one in config.settings() if one.source != "default"]
    sources = {f"{one.part}.{one.name}" if one.part else one.name: one.source for one in settings}
    return {"networks": {name: one.count_params() for name, one in run.networks.items()}, "sources": sources}


@contextmanager
def _telling_faults(folder: RunFolder, report: RunReport | None) -> Iterator[None]:
    """Let the report tell what ended the run."""
    try:
        yield
    except Exception as error:
        if report:
            with suppress(OSError, UserError):  # the fault that ended the run is the one to be told
                folder.require_in_place()
                report.close(fault=str(error))
        raise


def _train(run: Run, folder: RunFolder, outlets: Outlets) -> tuple[Run, int]:
    experiment, is_chief = run.experiment, run.hardware.is_chief
    report = RunReport(folder.path) if experiment.keeps_report and is_chief else None

    def actions_of(run: Run) -> Sequence[Action]:
        return _actions(run, folder, outlets, stop, report) if is_chief else [actions.require_finite(run)]

    with StopSignal() as stop, _telling_faults(folder, report):
        if over := listening.ending(run.checkpointer, outlets.watch):
            stop.enough()
        run, step = recovery.train_through(run, folder, actions_of, stop)
        if stop.requested and is_chief:
            _guarded(folder, actions.save(run))(step, {})
        if is_chief:
            listening.finish(run.checkpointer)
        run.hardware.wait_for_all()  # a worker that ended while the chief still saves would be a lost one to it
    for writer in outlets.writers:
        with folder.writing(f"Step {step} is reached and saved; the last points of the curves are not."):
            writer.close()
    if report:
        with folder.writing(f"Step {step} is reached and saved; the last report is not."):
            report.close()
    is_cut = step < experiment.train_steps
    ending = listening.ending(run.checkpointer, outlets.watch) if is_cut else ""
    if is_chief and ending:
        again = f"To go on, raise or leave out `{type(outlets.watch).__name__}.stop_after`."
        _say(f"{'Nothing to do: the run was s' if over else 'S'}topped early at step {step}: {ending}. {again}")
    elif is_chief and is_cut:
        _say(f"Stopped and saved at step {step} of {experiment.train_steps}. The same command goes on from there.")
    elif is_chief and step > experiment.train_steps:
        _say(f"Nothing to do: the run stands at step {step}, past the {experiment.train_steps} steps asked for.")
    elif is_chief:
        _say(f"Done: step {step}. Pictures, curves and weights are in {folder.path}{_pictures(folder)}.")
        if report:
            _say(f"The run at a glance: {folder.path / REPORT}")
        _say(f"More images: python -m pipeline.main --mode=sample --workdir={folder.path} --output=images.png")
    return run, stop.exit_status if is_cut else 0


def _actions(run: Run, folder: RunFolder, outlets: Outlets, stop: StopSignal, report: RunReport | None) -> list[Action]:
    """Return what happens beside training; nothing is saved before it is known to be finite."""
    experiment, start, last = run.experiment, run.step, run.experiment.train_steps
    draw = _guarded(folder, actions.draw(outlets.previews, outlets.writers))
    with folder.writing(f"The run stands at step {start}, as before."):
        for writer in outlets.writers:
            writer.rewind(start)
    if start == 0:
        draw(0, {})
    told = [actions.every(experiment.sample_every, last, _guarded(folder, report.update))] if report else []
    status = StatusLine(start, last, _images_per_step(run), num_examples=run.networks.spec.num_examples)
    # Whatever gives metrics beside training, such as an evaluation, calls the listeners too, and before the saving.
    listeners = listening.listeners(run.checkpointer, outlets.watch, stop)
    return [
        actions.require_finite(run),
        _guarded(folder, actions.log(run, outlets.writers, status, outlets.means, listeners)),
        actions.every(experiment.sample_every, last, draw),
        *_evaluations(run, folder, outlets, status, listeners),
        _guarded(folder, actions.save_best(run)),
        actions.every(experiment.save_every, last, _guarded(folder, actions.save(run))),
        *told,
    ]


def _evaluations(
    run: Run, folder: RunFolder, outlets: Outlets, status: StatusLine, listeners: Sequence[Action]
) -> list[Action]:
    """Return the action that scores the networks where that is asked for, and tells listeners."""
    experiment = run.experiment
    if run.evaluator is None or experiment.evaluate_every is None:
        return []

    def tell(step: int, values: Mapping[str, float]) -> None:
        for writer in outlets.writers:
            writer.scalars(step, values)
        told = ", ".join(f"{name.partition('/')[2]} {value:.4g}" for name, value in list(values.items())[:4])
        status.tell(f"evaluation at step {step}: {told}; all in {folder.evaluation}")

    act = actions.evaluate(run.evaluator, [tell, *listeners], EvaluationFile(folder.evaluation).add)
    return [actions.every(experiment.evaluate_every, experiment.train_steps, _guarded(folder, act))]


def _announced(run: Run) -> list[str]:
    """Return the names of the metrics that evaluations give in training."""
    names = run.evaluator.metric_names if run.evaluator and run.experiment.evaluate_every else []
    return [f"{actions.EVALUATION}/{name}" for name in names]


def _guarded(folder: RunFolder, action: Action) -> Action:
    """Return `action`, which stops the run with one message where the folder is gone or cannot be written."""

    def act(step: int, metrics: Mapping[str, float]) -> None:
        folder.require_in_place()
        with folder.writing(f"The run stopped at step {step}; the checkpoints that it has are whole."):
            action(step, metrics)

    return act


def _pictures(folder: RunFolder) -> str:
    pictures = sorted(folder.path.glob("samples/*.png"))
    return f" (see {pictures[-1]})" if pictures else ""


def _say(line: str) -> None:
    print(line.strip(), flush=True)
