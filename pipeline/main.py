"""The command line: `python -m pipeline.main --gin_file=cgan_tpu.gin`.

Trains what a gin file names, or samples from a finished run:

    python -m pipeline.main --gin_file=quickstart.gin
    python -m pipeline.main --mode=sample --workdir=runs/quickstart --labels=7 --num_images=10 --output=sevens.png

Exit status: 0 done; 2 a mistake in what was asked (one message, no traceback); 1 a failure of this program; 130 and 143
stopped by SIGINT or SIGTERM, after saving.
"""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from components.errors import UserError
from pipeline import configs, quiet

# Nothing here imports TensorFlow: --help and a mistyped flag answer at once.

_GIN_FILE = flags.DEFINE_multi_string("gin_file", [], "What to train: a path, or the name of a shipped file.")
_GIN_PARAM = flags.DEFINE_multi_string(
    "gin_param", [], 'A line of gin that overrides the files, such as "TRAIN_STEPS = 500". Repeatable.'
)
_WORKDIR = flags.DEFINE_string("workdir", None, "The run folder. When training: runs/ and the gin file's name.")
_MODE = flags.DEFINE_enum("mode", "train", ["train", "sample"], "What to do; sample needs only --workdir.")
_STRATEGY = flags.DEFINE_string(
    "strategy", None, "auto, tpu, mirrored, multi_worker, one_device or cpu:N; overrides the gin file."
)
_REQUIRE_ACCELERATOR = flags.DEFINE_bool("require_accelerator", False, "Refuse to train without a TPU or GPU.")
_OVERWRITE = flags.DEFINE_bool("overwrite", False, "Delete the run that --workdir holds and start anew.")
_FORCE_RESUME = flags.DEFINE_bool("force_resume", False, "Go on with a run though its configuration has changed.")
_CHECKPOINT = flags.DEFINE_string("checkpoint", "latest", "Sample from: latest, or a step.")
_SEED = flags.DEFINE_integer("seed", 0, 'Sample: the seed of the latents. (Training: --gin_param="SEED = 1".)')
_NUM_IMAGES = flags.DEFINE_integer("num_images", 100, "Sample: how many images.", lower_bound=1)
_LABELS = flags.DEFINE_string("labels", "balanced", "Sample: balanced, a class (3), or classes in turn (0,1,2).")
_OUTPUT = flags.DEFINE_string("output", None, "Sample: FILE.png (a grid), FILE.npz, or a folder of PNG files.")


def main(argv: Sequence[str]) -> int:
    """Do what the command line `argv` asks; return the exit status."""
    try:
        rest = flags.FLAGS(list(argv))
        if len(rest) > 1:
            raise flags.Error(f"Unknown argument {rest[1]!r}. Values follow their flag: --gin_file=NAME.")
        return _train() if _MODE.value == "train" else _sample()
    except flags.Error as error:
        return _mistake(f"{error}\nSee python -m pipeline.main --help.")
    except KeyboardInterrupt:
        print("\nStopped before the first step: there was nothing to save.", file=sys.stderr)
        return 130
    except UserError as error:
        return _mistake(str(error))
    except Exception:
        traceback.print_exc()
        print(f"\nA fault of the program, not yours. Run folder: {_WORKDIR.value or _workdir()}", file=sys.stderr)
        return 1


def run() -> None:
    """Entry point of the installed command."""
    sys.exit(main(sys.argv))


def _train() -> int:
    if not _GIN_FILE.value:
        raise flags.Error("Training needs --gin_file, such as --gin_file=quickstart.gin.")
    params = list(_GIN_PARAM.value)
    if _STRATEGY.value:
        params.append(f"from components.stepper import strategy\nstrategy.select.name = {_STRATEGY.value!r}")
    quiet.start()
    config = configs.parse(_GIN_FILE.value, params)
    from pipeline.launch import launch

    return launch(
        config,
        _WORKDIR.value or _workdir(),
        require_accelerator=_REQUIRE_ACCELERATOR.value,
        overwrite=_OVERWRITE.value,
        force_resume=_FORCE_RESUME.value,
    )


def _sample() -> int:
    if not _WORKDIR.value:
        raise flags.Error("--mode=sample needs --workdir, the folder of a run.")
    quiet.start()
    from pipeline.sample import sample

    return sample(
        _WORKDIR.value,
        checkpoint=_CHECKPOINT.value,
        seed=_SEED.value,
        num_images=_NUM_IMAGES.value,
        labels=_LABELS.value,
        output=_OUTPUT.value,
    )


def _workdir() -> str:
    return f"runs/{Path(_GIN_FILE.value[-1]).stem}" if _GIN_FILE.value else "none"


def _mistake(message: str) -> int:
    print(f"Error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    run()
