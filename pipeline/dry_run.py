"""What a configuration would do, told without doing it: the report of --dry_run."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from components.interfaces import DataSpec, Player, Update, UserError
from pipeline import configs, launch
from pipeline.build import Run
from pipeline.free_to_change import FREE_TO_CHANGE
from pipeline.run_folder import RunFolder

_WIDTH = 118
_SOURCE_COLUMN = 62


def dry_run(config: configs.Config, workdir: str | Path, *, require_accelerator: bool = False) -> str:
    """Build and rehearse every part on abstract rows; return the report, having trained and written nothing.

    Args:
      config: as `configs.parse` returned it.
      workdir: the run folder that would be used.
      require_accelerator: refuse a CPU, or other hardware than was asked for.

    Raises:
      UserError: what would stop the run, but for a folder that holds another one, which the report tells.
    """
    folder = RunFolder(workdir)
    run, _ = launch.assemble(config, folder, require_accelerator=require_accelerator, is_rehearsal=True)
    sections = {
        "CONFIGURATION, and where each value stands": _configuration(config.settings()),
        "NETWORKS, layers that change the shape or have parameters": _networks(run),
        "ONE STEP": _step(run),
        "THE RUN": _schedule(run, folder, config.operative_text()),
        "MEMORY of each device, estimated": _memory(run),
    }
    return "\n".join(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in sections.items())


# --- configuration ---------------------------------------------------------------------------------------------------


def _configuration(settings: Iterable[configs.Setting]) -> Iterator[str]:
    for part, group in groupby(settings, key=lambda setting: setting.part):
        rows = list(group)
        bound = [row for row in rows if row.source != "default"]
        if bound:
            yield part or "macros"
        for row in bound:
            over = f", over {row.overrides}" if row.overrides else ""
            yield f"  {f'{row.name} = {row.value}':<{_SOURCE_COLUMN}}  {row.source}{over}"
        if len(bound) < len(rows):
            defaults = {row.name: row.value for row in rows if row.source == "default"}
            yield from _wrapped("  by default: " if bound else f"{part}, by default: ", _defaults(defaults))


def _defaults(values: Mapping[str, str]) -> list[str]:
    """Return `name = value` for each, and those that are None together at the end."""
    unset = [name for name, value in values.items() if value == "None"]
    told = [f"{name} = {value}" for name, value in values.items() if value != "None"]
    return told + ([f"{'and ' if told else ''}None for {unset[0]}", *unset[1:]] if unset else [])


# --- networks --------------------------------------------------------------------------------------------------------


def _networks(run: Run) -> Iterator[str]:
    for name, network in run.networks.items():
        trainable = sum(math.prod(v.shape) for v in network.trainable_variables)
        yield f"{name}: {network.count_params():,} parameters, {trainable:,} of them trainable"
        yield from _wrapped("  ", _layers(network), " -> ")


def _layers(network: keras.Model) -> Iterator[str]:
    """Yield `Class shape (parameters)` of the layers in order."""
    before = None
    for layer in _leaves(network):
        shape, count = _output_shape(layer), layer.count_params() if layer.built else 0
        if (shape != before or count) and not isinstance(layer, keras.layers.InputLayer):
            size = "?" if shape is None else "x".join(map(str, shape)) or "1"
            yield f"{type(layer).__name__} {size}" + (f" ({count:,})" if count else "")
        before = shape


def _leaves(network: keras.Model) -> Iterator[keras.layers.Layer]:
    """Yield the layers of a network, and those of the networks in it."""
    for layer in network.layers:
        yield from _leaves(layer) if isinstance(layer, keras.Model) else [layer]


def _output_shape(layer: keras.layers.Layer) -> tuple[int, ...] | None:
    """Return the shape of one example's output; None where a layer has no single one."""
    try:
        return tuple(layer.output.shape[1:])
    except (AttributeError, ValueError):
        return None


# --- one step --------------------------------------------------------------------------------------------------------


def _step(run: Run) -> Iterator[str]:
    experiment, replicas = run.experiment, run.hardware.strategy.num_replicas_in_sync
    for number, update in enumerate(experiment.updates, 1):
        often = f"{update.repeats} times, each on a fresh batch" if update.repeats > 1 else "once"
        often += f", every {update.every} steps" if update.every > 1 else ""
        often += f", a move over {update.accumulate} batches" if update.accumulate > 1 else ""
        yield f"{number}. {_objective(update)}, {often}"
        for name, player in update.players.items():
            yield f"   {name}: {_player(run, name, player)}"
    share = experiment.global_batch_size // replicas
    batches = f"{run.stepper.batches_per_step} fresh batch" + ("es" if run.stepper.batches_per_step > 1 else "")
    yield f"draws {batches} of {experiment.global_batch_size} real images: {_count(replicas, 'replica')} of {share}"


def _objective(update: Update) -> str:
    objective: Any = update.objective
    if not is_dataclass(objective):
        return _named(objective) if hasattr(objective, "__qualname__") else type(objective).__name__
    values = {field.name: getattr(objective, field.name) for field in fields(objective)}
    values = {field.name: values[field.name] for field in fields(objective) if values[field.name] != field.default}
    return f"{type(objective).__name__}({', '.join(f'{key} = {_named(value)}' for key, value in values.items())})"


def _named(value: Any) -> str:
    """Return a function by the name that gin knows it by, anything else as Python writes it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_named, value))}]"
    if hasattr(value, "__qualname__"):
        return f"{value.__module__.rpartition('.')[2]}.{value.__qualname__}"
    return repr(value)


def _player(run: Run, name: str, player: Player) -> str:
    with run.hardware.strategy.scope():
        optimizer = player.optimizer()
    rate = optimizer.get_config()["learning_rate"]
    shown = f"{rate:g}" if isinstance(rate, (int, float)) else rate["class_name"] if isinstance(rate, dict) else "own"
    average = "" if player.ema_decay is None else f", keeps an average of decay {player.ema_decay:g}"
    if player.ema_half_life_images is not None:
        average = f", keeps an average of half-life {player.ema_half_life_images:,} images"
    clipping = "" if player.weight_clip is None else f", clips its weights to {player.weight_clip:g}"
    trained = ", ".join(player.networks or (name,))
    return f"{type(optimizer).__name__} with learning_rate {shown} trains the network {trained}{average}{clipping}"


# --- the run ---------------------------------------------------------------------------------------------------------


def _schedule(run: Run, folder: RunFolder, text: str) -> Iterator[str]:
    experiment, spec = run.experiment, run.networks.spec
    steps = experiment.train_steps
    images = steps * experiment.global_batch_size * run.stepper.batches_per_step
    epochs = f", {images / spec.num_examples:,.1f} epochs" if spec.num_examples else ""
    yield f"data      {_data(spec)}"
    yield f"length    {_count(steps, 'step')}, {images:,} real images{epochs}"
    looks = f"{_count(math.ceil(steps / experiment.steps_per_loop), 'look')} of the host"
    logs = _count(math.ceil(steps / experiment.log_every), "log point")
    if experiment.evaluate_every:
        logs += f", {_count(math.ceil(steps / experiment.evaluate_every), 'evaluation')}"
    pictures = _count(len(experiment.previews) * (math.ceil(steps / experiment.sample_every) + 1), "preview")
    yield f"actions   {looks}, {logs}, {pictures}, {_count(math.ceil(steps / experiment.save_every), 'save')}"
    previews = ", ".join(f"{name} ({_named(make)})" for name, make in experiment.previews.items())
    yield f"previews  {previews or 'none'}"
    yield f"hardware  {run.hardware.description}; {type(run.hardware.strategy).__name__}"
    yield f"folder    {folder.path}: {_folder(folder, text, spec)}"


def _data(spec: DataSpec) -> str:
    classes = f"{spec.num_classes} classes" if spec.num_classes else "no labels"
    fingerprint = f"fingerprint {spec.fingerprint}" if spec.fingerprint else "number and fingerprint not known yet"
    shape = " x ".join(map(str, spec.image_shape))
    count = f"{spec.num_examples:,} images" if spec.num_examples else "images"
    return f"{spec.name}, split {spec.split}: {count} of {shape}, {classes}, {fingerprint}"


def _folder(folder: RunFolder, text: str, spec: DataSpec) -> str:
    if folder.path.exists() and not folder.path.is_dir():
        raise UserError(f"`--workdir` must be a folder. {folder.path} is a file. Name another.")
    if not folder.config.exists():
        return "a new run"
    try:
        differences = configs.differences(folder.config_text(), text, ignore=FREE_TO_CHANGE)
        folder.require_same(differences, spec if spec.fingerprint else folder.spec())
    except UserError as error:
        return f"taken. {str(error).replace(chr(10), chr(10) + '  ')}"
    return "goes on with the run that is there"


# --- memory ----------------------------------------------------------------------------------------------------------


def _memory(run: Run) -> Iterator[str]:
    weights = sum(_bytes(network.variables) for network in run.networks.values())
    gradients = sum(_bytes(network.trainable_variables) for network in run.networks.values())
    averages = sum(_bytes(copy.variables) for copy in run.stepper.averages.values())
    state = sum(_bytes(variables) for variables in run.stepper.state().values())
    rows = run.experiment.global_batch_size // run.hardware.strategy.num_replicas_in_sync
    shape = run.networks.spec.image_shape
    batches = 4 * math.prod(shape) * rows * run.stepper.batches_per_step
    outputs = {name: rows * _outputs_of_one_row(network) for name, network in run.networks.items()}
    table = {
        "weights": weights,
        "optimizers": state - averages,
        "averages": averages,
        "gradients": gradients,
        "real batches": batches,
        **{f"{name}'s layers": size for name, size in outputs.items()},
    }
    for name, size in table.items():
        if size:
            note = f" (outputs of one pass over {_count(rows, 'row')})" if name.endswith("'s layers") else ""
            yield f"{name:<22} {size / 2**20:>9,.1f} MiB{note}"
    yield f"{'together':<22} {sum(table.values()) / 2**20:>9,.1f} MiB"
    held = run.networks.spec.num_examples * math.prod(shape)
    if held:
        yield f"{'data, in host memory':<22} {held / 2**20:>9,.1f} MiB (if held, as bytes)"
    yield "Not counted: TensorFlow itself, workspace of single operations, layers passed more than once, batches ahead."


def _bytes(variables: Iterable[Any]) -> int:
    return sum(math.prod(v.shape) * tf.as_dtype(v.dtype).size for v in variables)


def _outputs_of_one_row(network: keras.Model) -> int:
    """Return the bytes of all layers' outputs for one example."""
    shapes = [(layer, _output_shape(layer)) for layer in _leaves(network)]
    return sum(math.prod(shape) * tf.as_dtype(layer.compute_dtype).size for layer, shape in shapes if shape is not None)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _wrapped(lead: str, items: Iterable[str], between: str = ", ") -> list[str]:
    """Return the items on as few lines as they need, none broken in two."""
    glued = between.join(item.replace(" ", "\0") for item in items)
    lines = textwrap.wrap(
        glued, _WIDTH, initial_indent=lead, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\0", " ") for line in lines]
