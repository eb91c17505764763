"""`python witness.py LOG ROOT FLAGS...` is `python -m pipeline.main FLAGS...` that tells LOG what this process did.

One line of JSON each: the part of the batches that it builds, each preparation of data, each file under ROOT that
Python code makes, changes or removes.
"""

import json
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

from pipeline import quiet

_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}


def watch(log: Path, root: str) -> None:
    """Have every change under `root`, and what the data source does, told to `log`."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(**fact: object) -> None:
        os.write(descriptor, (json.dumps(fact) + "\n").encode())

    def hear(event: str, arguments: tuple) -> None:
        is_writing = event == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if (is_writing or event in _CHANGES) and isinstance(arguments[0], (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(arguments[0]))
            if path.startswith(root):
                tell(event=event, path=path)

    sys.addaudithook(hear)
    start = quiet.start

    def start_and_patch() -> None:
        start()  # before TensorFlow, which the data source imports
        patch(tell)

    quiet.start = start_and_patch


def patch(tell: Callable[..., None]) -> None:
    from components.data_source import preparation, tfds_source

    prepare, batches = preparation._prepare, tfds_source.TFDSSource.batches

    def told_prepare(builder):
        tell(event="prepare", name=builder.name)
        prepare(builder)

    def told_batches(self, **arguments):
        made = batches(self, **arguments)
        if "host" in arguments:  # else they are for a picture
            host, shape = arguments["host"], made.element_spec["image"].shape.as_list()
            tell(event="part", index=host.index, count=host.count, shape=shape)
        return made

    preparation._prepare, tfds_source.TFDSSource.batches = told_prepare, told_batches


if __name__ == "__main__":
    watch(Path(sys.argv[1]), sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    runpy.run_module("pipeline.main", run_name="__main__", alter_sys=True)
