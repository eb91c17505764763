"""The list of parts that a gin file fills, and the checks between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Lt

from components.interfaces import (
    CheckpointerFactory,
    DataSource,
    EvaluatorFactory,
    NetworkFactory,
    Positive,
    PreviewFactory,
    SamplerFactory,
    StepperFactory,
    StrategyFactory,
    Update,
    UserError,
    WatchFactory,
    WriterFactory,
)
from pipeline.run_folder import NAMES_TAKEN

Precision = Literal["float32", "mixed_bfloat16", "mixed_float16"]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A run: (this, seed, step) decides every number of it.

    Attributes:
      data: where real examples come from.
      networks: {name: what makes the network}.
      updates: the moves of one training step, in order.
      train_steps: the run ends at this step.
      global_batch_size: examples of one batch over all replicas of all hosts.
      seed: of data order, latents, initial weights and everything else that is drawn.
      strategy: chooses the hardware.
      stepper: makes what runs the updates.
      checkpointer: makes what saves and restores.
      sampler: makes what draws images.
      previews: {name: what makes a preview}; drawn before step 0 and every `sample_every` steps, for all writers.
      writers: make what keeps curves and pictures, each in the run folder.
      watch: makes what follows the quality of the run, and may stop it early; None: nothing does.
      max_rollbacks: how often a run whose numbers are no longer finite goes back to its last good checkpoint, and on
        from there with real images in another order, before it stops; over all starts of the run.
      steps_per_loop: steps run on the device between two looks of the host.
      data_on_device: whether every device that trains holds all examples, so that no image is fed from the host; the
        numbers are the same. None: on GPUs and TPUs, where the data are small enough to be held; see
        `TFDSSource.device_budget_mb`.
      precision: what layers compute in; weights, losses and statistics are float32 in any case. "mixed_bfloat16" for
        TPUs, recent GPUs and CPUs that have it; "mixed_float16", with a scaled loss for each player, for older GPUs.
      keeps_report: whether report.html in the run folder is written whenever previews are drawn, and at the end.
      log_every, save_every, sample_every: in steps; multiples of steps_per_loop. The end of a run always counts.
      evaluator: makes what scores the networks; None: nothing does.
      evaluate_every: the same, for scores in training; None: only --mode=evaluate scores.
    """

    data: DataSource
    networks: Mapping[str, NetworkFactory]
    updates: Sequence[Update]
    train_steps: Positive
    global_batch_size: Positive
    seed: Annotated[int, Ge(-(2**63)), Lt(2**63)]
    strategy: StrategyFactory
    stepper: StepperFactory
    checkpointer: CheckpointerFactory
    sampler: SamplerFactory
    previews: Mapping[str, PreviewFactory] = field(default_factory=dict)
    writers: Sequence[WriterFactory] = ()
    watch: WatchFactory | None = None
    max_rollbacks: Annotated[int, Ge(0)] = 0
    steps_per_loop: Positive = 1
    data_on_device: bool | None = None
    precision: Precision = "float32"
    keeps_report: bool = True
    log_every: Positive = 100
    save_every: Positive = 1000
    sample_every: Positive = 1000
    evaluator: EvaluatorFactory | None = None
    evaluate_every: Positive | None = None

    def __post_init__(self) -> None:
        """Refuse parts that contradict each other."""
        for name in ("train_steps", "global_batch_size", "steps_per_loop", "log_every", "save_every", "sample_every"):
            if getattr(self, name) < 1:
                raise UserError(f"`Experiment.{name}` must be at least 1. Received {getattr(self, name)}.")
        for name in ("log_every", "save_every", "sample_every"):
            self._check_multiple(name)
        self._check_evaluation()
        if not self.updates:
            raise UserError("`Experiment.updates` must name at least one update. Received none.")
        for name in self.previews:
            self._check_preview(name)
        names = [getattr(one, "__name__", repr(one)) for one in self.writers]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UserError(f"`Experiment.writers` names each writer once. Received twice: {', '.join(twice)}.")

    def _check_evaluation(self) -> None:
        if self.evaluate_every is None:
            return
        if self.evaluate_every < 1:
            raise UserError(f"`Experiment.evaluate_every` must be at least 1, or None. Received {self.evaluate_every}.")
        self._check_multiple("evaluate_every")
        if self.evaluator is None:
            raise UserError(
                f"`Experiment.evaluate_every` needs an evaluator. Received {self.evaluate_every} without one. Bind "
                "`Experiment.evaluator` too, as base/evaluation.gin does."
            )

    def _check_preview(self, name: str) -> None:
        """Refuse a name that cannot be that of a folder in the run folder."""
        if not name.isidentifier() or name in NAMES_TAKEN:
            raise UserError(
                f"A preview's pictures lie in a folder of its name. Received the name {name!r} in "
                f"`Experiment.previews`. Use letters, digits and underscores, and none of {', '.join(NAMES_TAKEN)}."
            )

    def _check_multiple(self, name: str) -> None:
        every, loop = getattr(self, name), self.steps_per_loop
        if every % loop:
            near = sorted({max(loop, every // loop * loop), (every // loop + 1) * loop})
            raise UserError(
                f"`steps_per_loop` must divide `{name}`. Received steps_per_loop={loop}, {name}={every}. "
                f"Use {name}={' or '.join(map(str, near))}."
            )
