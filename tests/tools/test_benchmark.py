"""The benchmark: turns, its table from numbers worked out by hand, and one run of two contenders."""

import contextlib
import json

import pytest

from tools import benchmark
from tools.benchmark_process import Contender, ContenderError

TASK = {
    "files": ["x.gin"],
    "batch": 10,
    "precision": "float32",
    "steps": 4,
    "variant": [],
    "contenders": ["lean", "gantry", "host-fed"],
}
LIMITS = {"flops": 2e9, "peak_flops": 1e11, "bfloat16_peak_flops": 2e11}


def measured(images_per_second: float, first_step: float) -> dict[str, float]:
    facts = {"start_to_first_step": 3.0, "peak_mib": 500.0}
    return {"images_per_second": images_per_second, "first_step": first_step, **facts}


@pytest.mark.parametrize(("steps", "expected"), [(30, [3] * 10), (12, [2, 2] + [1] * 8), (3, [1, 1, 1])])
def test_turns_share_the_steps_out(steps, expected) -> None:
    assert benchmark.turns(steps) == expected


def test_ratios_are_taken_within_a_round_and_are_medians() -> None:
    rounds = [
        {"lean": measured(100, 1.0), "gantry": measured(110, 1.2), "host-fed": measured(55, 1.0)},
        {"lean": measured(50, 2.0), "gantry": measured(50, 2.0), "host-fed": measured(50, 2.0)},
        {"lean": measured(200, 1.0), "gantry": measured(180, 1.5), "host-fed": measured(90, 1.0)},
    ]
    text = benchmark.report(TASK, LIMITS, rounds)
    row = next(line for line in text.splitlines() if line.startswith("| gantry"))
    # 110 images/s are 11 steps of 2 GFLOP: 22 % of 100 GFLOP/s.
    assert "| 110 | 1.00 (0.90..1.10) | 1.50 | 1.20 (1.00..1.50) |" in row and row.endswith("| 22% |")
    assert "Images a second of gantry to host-fed: 2.00 (1.00..2.00)." in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--contenders=gantry"], "lean among them. Received 'gantry'"),
        (["--contenders=lean,torch"], "Received 'lean,torch'"),
        (["--gin_file=nothing.gin"], "nothing.gin"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, reason, capsys) -> None:
    assert benchmark.main(arguments) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.slow
def test_two_contenders_take_turns_and_the_file_says_what_each_measured(tmp_path) -> None:
    output = tmp_path / "facts.json"
    told = ["--gin_file=vae_tpu.gin", "--global_batch_size=8", "--steps=2", "--rounds=1", f"--output={output}"]
    assert benchmark.main([*told, "--contenders=lean,gantry"]) == 0
    (only,) = json.loads(output.read_text())["rounds"]
    assert list(only) == ["lean", "gantry"]
    for facts in only.values():
        assert set(facts) == {"first_step", "start_to_first_step", "images_per_second", "peak_mib"}
        assert all(value > 0 for value in facts.values())


@pytest.mark.slow
def test_contender_that_is_killed_between_its_turns_is_named(tmp_path) -> None:
    arguments = benchmark._parser().parse_args(["--gin_file=vae_tpu.gin", "--global_batch_size=8", "--steps=1"])
    task = benchmark.read(arguments, str(tmp_path))
    Contender("limits", task).close()  # leaves the data
    with contextlib.closing(Contender("lean", task)) as contender:
        contender._process.kill()
        contender._process.wait()
        with pytest.raises(ContenderError, match="lean failed with exit status -9"):
            contender.seconds(1)


@pytest.mark.slow
def test_contender_that_fails_is_named_with_what_it_said(capsys) -> None:
    told = ["--gin_file=quickstart.gin", "--global_batch_size=8", "--steps=1", "--rounds=1", "--contenders=lean"]
    assert benchmark.main(told) == 1
    assert "hand-written loops make plain steps" in capsys.readouterr().err
