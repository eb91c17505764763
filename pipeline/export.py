"""Mode export: the networks of a run as files that other programs load without this project."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import keras

from components.errors import storage_fault
from components.interfaces import UserError
from pipeline.exporting import described
from pipeline.exporting.check import Written, checked
from pipeline.exporting.formats import Format, chosen
from pipeline.exporting.networks import Exported, networks_of
from pipeline.exporting.plain import NotPlainError, plain
from pipeline.run_folder import RunFolder
from pipeline.sample import restored


def export(workdir: str, *, checkpoint: str, formats: str, num_images: int, output: str | None) -> int:
    """Write every network of the run in `workdir` in each format asked for, and check each file.

    Args:
      workdir: a run folder.
      checkpoint: as `sample.restored` takes it.
      formats: some of keras, saved_model, stablehlo, onnx, with commas between.
      num_images: the batch of a StableHLO module, and the rows on which files are compared with the run.
      output: a folder; None: export in the run folder.

    Returns:
      The exit status: 0; 1 where a file does not give what the run's own network gives.

    Raises:
      UserError: no run, no such checkpoint, a format that a network or this machine does not allow, or a folder that
        cannot be written.
    """
    kinds = chosen(formats)
    folder = RunFolder(workdir)
    folder.require_run()
    run = restored(folder, checkpoint)
    _require_precision(kinds, run.experiment.precision)
    networks = networks_of(run.networks, run.stepper.averages)
    models = {one.name: _form(one.model, kinds) for one in networks}
    place = Path(output) if output else folder.path / "export"
    files = _write(networks, models, kinds, place, num_images)
    results = checked(files, rows=num_images, precision=run.experiment.precision)
    facts = {"step": run.step, "precision": run.experiment.precision}
    described.write(place, results, run=facts, rows=num_images)
    print(f"Step {run.step}, in {place}; each file was loaded in a process without this project:")
    return _tell(results)


def _require_precision(kinds: Iterable[Format], precision: str) -> None:
    """Refuse formats that hold no network of this precision."""
    for kind in kinds:
        if kind.precisions and precision not in kind.precisions:
            raise UserError(
                f"A {kind.suffix} file needs a run whose Experiment.precision is {' or '.join(kind.precisions)}, since "
                f"its runtimes compute in no other. Received a run in {precision}. Leave that format out of --formats."
            )


def _form(model: keras.Model, kinds: Iterable[Format]) -> keras.Model:
    """Return the plain form of a network; itself where it has none and no file refers to its layers."""
    try:
        return plain(model)
    except NotPlainError as error:
        if any(kind.plain for kind in kinds):
            raise UserError(f"{error} Or leave keras out: --formats=saved_model,stablehlo.") from error
        return model


def _write(
    networks: Sequence[Exported], models: Mapping[str, keras.Model], kinds: Sequence[Format], place: Path, rows: int
) -> list[tuple[Exported, str, Path]]:
    """Write all files; return (network, suffix, place) of each."""
    files = [(one, kind, place / f"{one.name}{kind.suffix}") for one in networks for kind in kinds]
    try:
        place.mkdir(parents=True, exist_ok=True)
        for exported, kind, file in files:
            kind.write(exported, models[exported.name], file, rows)
    except Exception as error:
        if reason := storage_fault(error):
            raise UserError(f"`--output` must be a folder that can be written. {place}: {reason}.") from error
        raise
    return [(exported, kind.suffix, file) for exported, kind, file in files]


def _tell(results: Sequence[Written]) -> int:
    """Print a line for each file; return the exit status."""
    width = max(len(one.place.name) for one in results)
    told = None
    for one in results:
        if one.exported is not told:
            told = one.exported
            print(f"{told.name}: {told.weights}")
        size = f"{one.size / 2**20:7.2f} MiB"
        found = one.fault or f"max difference {one.difference:.1e} (at most {one.tolerance:.0e})"
        print(f"  {one.place.name:<{width}} {size}  {found}")
    wrong = [one.place.name for one in results if not one.is_right]
    if wrong:
        print(
            f"These do not give what the run's own networks give: {', '.join(wrong)}. Do not use them.", file=sys.stderr
        )
    return 1 if wrong else 0
