"""Run folders made by hand: what a report reads, without a training."""

import json
import struct
import zlib
from pathlib import Path

CONFIG = """\
from __gin__ import dynamic_registration
from components.objectives import gan
from components.loss_library import adversarial
from pipeline import experiment

TRAIN_STEPS = 40

experiment.Experiment.updates = @gan.alternating()
experiment.Experiment.train_steps = %TRAIN_STEPS
experiment.Experiment.global_batch_size = 8
# experiment.Experiment.precision = 'float32'

gan.alternating.loss = @adversarial.hinge
"""


def png(shade: int, size: int = 4) -> bytes:
    """Return a grey square as a PNG file."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = bytes([0, *[shade] * size]) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make(folder: Path, *, config: str = CONFIG, saved: int = 40, starts: int = 1) -> Path:
    """Make the folder of a run of 40 steps and four pictures, and return it."""
    (folder / "checkpoints" / f"step-{saved:09d}").mkdir(parents=True)
    (folder / "samples").mkdir()
    (folder / "config.gin").write_text(config)
    command = ["/somewhere/pipeline/main.py", "--gin_file=quickstart.gin", "--gin_param=TRAIN_STEPS = 40"]
    start = {"step": 0, "time": "2026-01-02T03:04:05+0000", "command": command, "hardware": "this CPU", "seed": 0}
    manifest = {
        "versions": {"python": "3.11.7", "keras": "3.9.0"},
        "data": {"name": "digits", "split": "train", "image_shape": [4, 4, 1], "num_classes": 2, "num_examples": 80},
        "networks": {"generator": 1234},
        "sources": {"TRAIN_STEPS": "quickstart.gin:14"},
        "starts": [start] + [{**start, "step": 20}] * (starts - 1),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    points = [{"step": s, "generator/loss": 1 / s, "discriminator/accuracy": 0.7} for s in (10, 20, 30, 40)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    for step in (0, 10, 20, 40):
        (folder / "samples" / f"{step:09d}.png").write_bytes(png(step))
    return folder
