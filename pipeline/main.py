"""The command line: `python -m pipeline.main --gin_file=cgan_tpu.gin`; `--help` tells the rest.

It reads flags and turns outcomes into an exit status. What it does, `pipeline.api` does for other programs.

Exit status: 0 done; 2 a mistake in what was asked (one message, no traceback); 1 a failure of this program, or another
worker of the run was lost; 130 and 143 stopped by SIGINT or SIGTERM, after saving.
"""

import os
import sys
import traceback
from collections.abc import Sequence

from absl import flags

from components.errors import UserError
from pipeline import api, configs, modes, quiet
from pipeline.help_text import help_text

# Nothing here imports TensorFlow: --help and a mistyped flag answer at once.

_GIN_FILE = flags.DEFINE_multi_string(
    "gin_file", [], "What to train: a path, or the name of a shipped file. Repeatable: a later one overrides."
)
_GIN_PARAM = flags.DEFINE_multi_string("gin_param", [], "A line of gin that overrides the files. Repeatable.")
_WORKDIR = flags.DEFINE_multi_string(
    "workdir",
    [],
    "The run folder, made when needed. Without it: runs/ and the gin file's name. Repeatable with --mode=report, which "
    "then compares runs.",
)
_MODE = flags.DEFINE_enum(
    "mode",
    "train",
    list(modes.NAMES),
    f"What to do. All but train need only --workdir. {modes.told()}.",
)
_STRATEGY = flags.DEFINE_string(
    "strategy", None, "auto, tpu, mirrored, multi_worker, one_device or cpu:N; overrides the gin file."
)
_DRY_RUN = flags.DEFINE_bool(
    "dry_run",
    False,
    "Build everything, print what would be done, and write nothing: every value and its source, "
    "networks, the step, memory, hardware.",
)
_REQUIRE_ACCELERATOR = flags.DEFINE_bool("require_accelerator", False, "Refuse to train without a TPU or GPU.")
_OVERWRITE = flags.DEFINE_bool("overwrite", False, "Delete the run that --workdir holds and start anew.")
_FORCE_RESUME = flags.DEFINE_bool("force_resume", False, "Go on with a run though its configuration has changed.")
_CHECKPOINT = flags.DEFINE_string("checkpoint", "latest", "Which weights: latest, best, or a step.")
_SEED = flags.DEFINE_integer(
    "seed", 0, "Of the latents, or of the choice of real images. (That of a training is the macro SEED.)"
)
_NUM_IMAGES = flags.DEFINE_integer("num_images", 100, "How many images.", lower_bound=1)
_LABELS = flags.DEFINE_string(
    "labels", "balanced", "balanced, a class (3), or classes in turn (0,1,2); of the ends of a path: from 3 to 7 (3,7)."
)
_TRUNCATION = flags.DEFINE_float(
    "truncation", None, "The largest value of a latent, such as 0.7: typical images instead of varied ones.", 0.0
)
_WATCH = flags.DEFINE_bool("watch", False, "Evaluate each new checkpoint until the training has ended.")
_BEST_BY = flags.DEFINE_string("best_by", "frechet_distance", "The metric by which the best checkpoint is named.")
_OUTPUT = flags.DEFINE_string(
    "output",
    None,
    "FILE.png (a grid), FILE.npz, or a folder of PNG files; of interpolate and traverse also FILE.gif or FILE.apng (a "
    "film). film: FILE.gif or FILE.png. export: a folder. report: FILE.html. Without it: sample.png, export/, ... in "
    "--workdir.",
)
_PATH = flags.DEFINE_enum(
    "path",
    "spherical",
    ["spherical", "linear"],
    "Between latents; spherical: on the arc, where the prior has its mass.",
)
_CLASS_CHANGE = flags.DEFINE_enum(
    "class_change",
    "gradual",
    ["gradual", "halfway"],
    "Between classes; halfway: at once, for a network that can't mix classes.",
)
_AROUND = flags.DEFINE_enum(
    "around", "sample", ["sample", "example"], "Where to traverse: at a sample, or at the code of a real image."
)
_ROWS = flags.DEFINE_integer(
    "rows", 8, "How many paths, latents (the most active ones of an autoencoder) or samples.", lower_bound=1
)
_COLUMNS = flags.DEFINE_integer(
    "columns", 9, "How many steps of a path, values of a latent, or a sample and its neighbours.", lower_bound=2
)
_FRAME_MILLISECONDS = flags.DEFINE_integer(
    "frame_milliseconds", None, "How long a film shows each picture, a multiple of 10. Without it: 200.", lower_bound=20
)
_FORMATS = flags.DEFINE_string(
    "formats",
    "keras,saved_model,stablehlo",
    "Of exported files, with commas between: keras, saved_model, stablehlo, onnx (needs the extra of that name). "
    "--num_images is the batch of stablehlo.",
)
_HELP = flags.DEFINE_bool("help", False, "Print this.", short_name="h")


_OF_ALL = {"workdir", "mode", "help"}
_HINTS = {
    ("seed", "train"): "The seed of a training is --gin_param='SEED = 3'.",
    ("labels", "reconstruct"): "It takes real images, which --seed chooses.",
    **{("num_images", mode): "Its images are --rows times --columns." for mode in modes.with_flag("rows")},
}


def main(argv: Sequence[str]) -> int:
    """Do what the command line `argv` asks; return the exit status."""
    try:
        rest = flags.FLAGS(list(argv))
        if len(rest) > 1:
            raise flags.Error(f"Unknown argument {rest[1]!r}. Values follow their flag: --gin_file=NAME.")
        if _HELP.value:
            return _print(help_text(flags.FLAGS, defined_flags(), configs.shipped()))
        _check_flags()
        return _train() if _MODE.value == "train" else _use_run()
    except flags.Error as error:
        return _mistake(f"{error}\nSee python -m pipeline.main --help.")
    except KeyboardInterrupt:
        print("\nStopped before the first step: there was nothing to save.", file=sys.stderr)
        return 130
    except UserError as error:
        return _mistake(str(error))
    except Exception:
        traceback.print_exc()
        print(f"\nA fault of the program, not yours. Run folder: {_workdir()}", file=sys.stderr)
        return 1


def run() -> None:
    """Entry point of the installed command."""
    sys.exit(main(sys.argv))


def defined_flags() -> list[str]:
    """Return the names of the flags above, in their order."""
    return [value.name for value in globals().values() if isinstance(value, flags.FlagHolder)]


def _check_flags() -> None:
    """Refuse flags that would have no effect, and such without a value."""
    mode = _MODE.value
    for name in defined_flags():
        flag = flags.FLAGS[name]
        if not flag.present:
            continue
        if name not in _OF_ALL and name not in modes.flags_of(mode):
            others = " and ".join(f"--mode={other}" for other in modes.with_flag(name))
            hint = _HINTS.get((name, mode), "Leave it out.")
            raise flags.Error(f"--{name} is for {others}, and has no effect with --mode={mode}. {hint}")
        if flag.value == "" or isinstance(flag.value, list) and "" in flag.value:
            raise flags.Error(f"--{name} needs a value. Received none: --{name}=.")
    if len(_WORKDIR.value) > 1 and not (mode in modes.USING_A_RUN and modes.USING_A_RUN[mode].takes_several):
        raise flags.Error(
            f"--mode={mode} takes one --workdir. Received {', '.join(_WORKDIR.value)}. Name one; --mode=report takes "
            "several, and compares them."
        )
    if _OVERWRITE.value and _FORCE_RESUME.value:
        raise flags.Error(
            "--overwrite starts a run anew, --force_resume goes on with it. Received both. Leave one out."
        )


def _train() -> int:
    if not _GIN_FILE.value:
        raise flags.Error("Training needs --gin_file, such as --gin_file=quickstart.gin.")
    params = list(_GIN_PARAM.value)
    if _STRATEGY.value:
        params.append(f"from components.stepper import strategy\nstrategy.select.name = {_STRATEGY.value!r}")
    workdir = _workdir()
    quiet.start()
    if _DRY_RUN.value:
        return _print(
            api.dry_run(_GIN_FILE.value, params, workdir=workdir, require_accelerator=_REQUIRE_ACCELERATOR.value)
        )
    return api.train(
        _GIN_FILE.value,
        params,
        workdir=workdir,
        require_accelerator=_REQUIRE_ACCELERATOR.value,
        overwrite=_OVERWRITE.value,
        force_resume=_FORCE_RESUME.value,
    ).exit_status


def _use_run() -> int:
    if not _WORKDIR.value:
        raise flags.Error(f"--mode={_MODE.value} needs --workdir, the folder of a run.")
    quiet.start()
    mode = modes.USING_A_RUN[_MODE.value]
    places = _WORKDIR.value if mode.takes_several else _WORKDIR.value[0]
    return mode.function()(places, **{name: flags.FLAGS[name].value for name in mode.flags})


def _workdir() -> str:
    if _WORKDIR.value:
        return ", ".join(_WORKDIR.value)
    return api.default_workdir(_GIN_FILE.value) if _GIN_FILE.value else "none"


def _print(text: str) -> int:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough; nothing more is to be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _mistake(message: str) -> int:
    print(f"Error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    run()
