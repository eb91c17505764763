"""The host loop: it runs steps and calls actions, and knows nothing else."""

from collections.abc import Sequence

from components.interfaces import Action
from pipeline.build import Run
from pipeline.stop import StopSignal


def train(run: Run, actions: Sequence[Action], stop: StopSignal) -> int:
    """Run steps until the experiment's last one, or until `stop`; return the step reached.

    The device is visited once every `steps_per_loop` steps, at its multiples and at the end.

    Args:
      run: built and restored.
      actions: called in order after every visit, with the step and the means of the metrics over the steps just run.
      stop: asked after every visit, of all processes that share the run; what is in flight is always finished.
    """
    step, last, loop = run.step, run.experiment.train_steps, run.experiment.steps_per_loop
    batches = run.batches()
    while step < last and not stop.is_agreed(run.hardware.agree):
        count = min(loop - step % loop, last - step)
        metrics = run.stepper.run(batches, count)
        step += count
        for action in actions:
            action(step, metrics)
    return step
