"""The step of a replica, lowered and compiled for TPUs that are not there."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import toy_tpu

from components.interfaces import UserError
from tools import tpu_check
from tools.tpu import chips, compilation, lowering, report
from tools.tpu.compilation import Answer

needs_extra = pytest.mark.skipif(
    not compilation.is_installed(), reason="the TPU's compiler is not installed: pip install -e '.[tpu-check]'"
)
V5E = chips.topology("v5e:2x2")


def toy_run(**options) -> SimpleNamespace:
    stepper, networks, _ = toy_tpu.toy_stepper(**options)
    return SimpleNamespace(stepper=stepper, networks=networks, experiment=SimpleNamespace(global_batch_size=8))


def answer(**changes) -> Answer:
    memory = {"argument": 3 * 2**20, "temp": 2**20, "generated_code": 2**19}
    return Answer(**{"topology": V5E, "memory": memory, "cost": {"flops": 4e9, "bytes": 1e6}, **changes})


@pytest.mark.parametrize(("name", "cores"), [("v5e:2x2", 4), ("v4:2x2x1", 8), ("v6e:1x1", 1), ("v5p:2x2x2", 8)])
def test_topology_has_its_cores(name, cores) -> None:
    assert chips.topology(name).cores == cores


@pytest.mark.parametrize("name", ["v5e", "v5e:4", "v9:2x2", "v5e:2x0", "v5litepod-4", "v5e:2x2x2x2", ""])
def test_topology_of_another_form_is_refused(name) -> None:
    with pytest.raises(UserError, match="CHIP:AxB.*Use, for example"):
        chips.topology(name)


def test_bound_is_that_of_the_slower_of_arithmetic_and_memory() -> None:
    chip = chips.Chip(2, 32, 200, 1000)  # a core: 100 TFLOP/s, 500 GB/s
    assert chips.bound(chip, flops=1e12, bytes_accessed=1e9, images=8) == chips.Bound(8 * 2 / 0.01, "compute")
    slow = chips.bound(chip, flops=1e12, bytes_accessed=50e9, images=8)
    assert slow.limit == "memory" and slow.images_per_second == pytest.approx(8 * 2 / 0.1)


def test_memory_of_a_core_is_its_share_of_the_chip_less_a_reserve() -> None:
    assert V5E.chip.core_bytes == 15 * 2**30 and chips.CHIPS["v4"].core_bytes == 31 * 2**29


def test_program_has_the_rows_of_one_core_and_a_module_of_fixed_shapes() -> None:
    step = lowering.lower(toy_run(discriminator_repeats=2), 4)
    assert (step.rows, step.images, step.faults) == (2, 4, ())  # 8 over 4 cores, two batches
    assert "tensor<2x2x4x4x1xf32>" in step.text and step.module[:4] == b"ML\xefR"


def test_cores_that_do_not_divide_the_batch_are_refused() -> None:
    with pytest.raises(UserError, match="global_batch_size=8 for 3 replicas. Use 9"):
        lowering.lower(toy_run(), 3)


@pytest.mark.slow
def test_program_of_one_replica_takes_the_step_that_the_stepper_takes() -> None:
    results = []
    for takes_program in (False, True):
        stepper, networks, source = toy_tpu.toy_stepper(discriminator_repeats=2)
        for network in networks.values():
            network.set_weights([np.linspace(-1, 1, w.size).reshape(w.shape) for w in network.get_weights()])
        batches = iter(source.batches(global_batch_size=8, seed=0, start_batch=0))
        if takes_program:
            two = [next(batches), next(batches)]
            images, labels = (tf.stack([batch[name] for batch in two]) for name in ("image", "label"))
            stepper.replica_program(1)(images, labels, tf.constant(0, tf.int64), tf.constant(0))
        else:
            stepper.run(batches, 1)
        results.append([v.numpy() for network in networks.values() for v in network.variables])
    for left, right in zip(*results, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("through_python", r"runs on the host.*EagerPyFunc \(tf.py_function\), made at .*toy_tpu.py:\d+"),
        ("of_the_positive", r"shape of every tensor.*Where .*, made at .*toy_tpu.py:\d+"),
        ("pooled_at_random", r"TensorFlow's XLA refused the operation FractionalMaxPool .*, made at .*toy_tpu.py:\d+"),
    ],
)
def test_step_that_no_tpu_takes_is_told_with_its_line(loss, words, monkeypatch, capsys) -> None:
    run = toy_run(loss=getattr(toy_tpu, loss))
    monkeypatch.setattr(lowering, "built", lambda files, params: run)
    assert tpu_check.main(["--gin_file=toy", "--topology=v5e:2x2"]) == 1
    out = capsys.readouterr().out
    assert "NOT LOWERED for a global batch of 8 over 4 cores, 2 rows each" in out
    assert re.search(words, out)


@pytest.mark.parametrize(
    ("line", "is_dynamic"),
    [
        ("%0 = stablehlo.add %1, %2 : tensor<4x?xf32>", True),
        ("%0 = x : tensor<?x4xf32, #stablehlo.bounds<8, ?>>", True),
        ("%0 = stablehlo.dynamic_reshape %1, %2 : tensor<4xf32>", True),
        ("%0 = stablehlo.dynamic_slice %1, %2, sizes = [4] : tensor<4xf32>", False),
        ("%0 = stablehlo.dynamic_update_slice %1, %2, %3 : tensor<4x8xf32>", False),
    ],
)
def test_shapes_of_a_module_are_fixed_or_the_operation_is_told(line, is_dynamic) -> None:
    assert any(line in fault for fault in lowering.dynamic_shapes(f"module {{\n  {line}\n}}")) == is_dynamic


@pytest.fixture
def checked(monkeypatch, capsys):
    """Return a function that runs the tool on a toy, with an answer of ours for the compiler's: (status, output)."""
    run = toy_run()
    step = lowering.lower(run, V5E.cores)

    def check(found: Answer | None, *flags: str) -> tuple[int, str]:
        monkeypatch.setattr(lowering, "built", lambda files, params: run)
        monkeypatch.setattr(lowering, "lower", lambda run, cores: step)
        monkeypatch.setattr(compilation, "is_installed", lambda: found is not None)
        monkeypatch.setattr(compilation, "compile_for", lambda module, topology, keep: found)
        status = tpu_check.main(["--gin_file=toy.gin", "--topology=v5e:2x2", *flags])
        return status, capsys.readouterr().out

    return check


def test_exit_status_tells_what_was_found(checked, tmp_path) -> None:
    status, out = checked(answer())
    # 3 + 1 + 0.5 MiB; 4e9 operations at 197e12 a second for 2 rows.
    assert status == 0 and "4.5 MiB of 15,360.0 MiB" in out and f"{2 * 197e12 / 4e9:,.0f} images/s" in out
    assert "GLOBAL_BATCH_SIZE = 32 wastes none" in out
    status, out = checked(answer(memory={"argument": 20 * 2**30}))
    assert status == 1 and "NOT FITTING" in out and "Halve GLOBAL_BATCH_SIZE" in out
    error = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.1G of 15.75G hbm."
    status, out = checked(answer(memory={}, cost={}, error=error))
    assert status == 1 and "needs 20.1G of 15.75G of a core's memory" in out
    status, out = checked(answer(memory={}, cost={}, error="UNIMPLEMENTED: no such thing"))
    assert status == 1 and "NOT COMPILED. The TPU's compiler refused the step: UNIMPLEMENTED: no such thing" in out
    status, out = checked(None, f"--output={tmp_path / 'step.mlir'}")
    assert status == 3 and "pip install -e '.[tpu-check]'" in out
    assert "module @" in (tmp_path / "step.mlir").read_text()


@pytest.mark.parametrize(
    ("flags", "words"),
    [(["--topology=v5e"], "CHIP:AxB"), (["--output=step.txt"], "FILE.mlir"), (["--gin_param=("], "gin_param:1")],
)
def test_mistake_in_what_is_asked_exits_2(flags, words, capsys) -> None:
    assert tpu_check.main(["--gin_file=quickstart.gin", *flags]) == 2
    assert words in capsys.readouterr().err


def test_rows_of_a_document_are_replaced_and_others_stay(tmp_path) -> None:
    step = lowering.Lowered(rows=8, images=8, graph=tf.Graph())
    other = chips.topology("v4:2x2x1")
    file = tmp_path / "tpu.md"
    report.write_row(file, "b", answer(), step)
    report.write_row(file, "a", answer(topology=other), step)
    report.write_row(file, "b", answer(memory={}, cost={}, error="UNIMPLEMENTED: a | b"), step)
    rows = [line for line in file.read_text().splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[:3] for row in rows] == [
        ["| a", "v4:2x2x1", "yes"],
        ["| b", "v5e:2x2", "The TPU's compiler refused the step: UNIMPLEMENTED: a / b"],
    ]
    assert {row.count("|") for row in rows} == {10}


def test_answer_that_is_kept_is_not_asked_for_again(tmp_path, monkeypatch) -> None:
    asked = []
    line = {
        "topology": V5E.name,
        "devices": 4,
        "seconds": 1.0,
        "memory": {"argument": 5},
        "cost": {"flops": 1, "bytes": 1},
    }

    def run(command, **options):
        asked.append(command[-1])
        return SimpleNamespace(returncode=0, stdout=f"chatter\n{json.dumps(line)}\n", stderr="")

    monkeypatch.setattr(compilation.subprocess, "run", run)
    first, again = (compilation.compile_for(b"step", V5E, tmp_path) for _ in range(2))
    assert first == again and first.bytes_needed == 5 and asked == ["v5e:2x2"]
    assert compilation.compile_for(b"another", V5E, tmp_path).fits and len(asked) == 2


def test_process_that_dies_is_told(monkeypatch) -> None:
    died = SimpleNamespace(returncode=-9, stdout="", stderr="Killed\n")
    monkeypatch.setattr(compilation.subprocess, "run", lambda *arguments, **options: died)
    assert compilation.compile_for(b"step", V5E).error == "the compiler's process ended with status -9: Killed"


@pytest.mark.slow
@needs_extra
def test_toy_step_compiles_for_one_core() -> None:
    one = chips.topology("v5e:2x2")
    found = compilation.compile_for(lowering.lower(toy_run(), one.cores).module, one)
    assert found.fits, found.error
    weights = 4 * sum(int(np.prod(v.shape)) for n in toy_run().networks.values() for v in n.variables)
    assert weights < found.bytes_needed < 2**26 and found.cost["flops"] > 0


def test_batch_larger_than_this_host_is_rehearsed_all_the_same() -> None:
    stepper = toy_run(batch=2**30).stepper
    stepper.rehearse()  # a tensor of it would take 64 GiB
    assert stepper.metrics


@pytest.mark.slow
@needs_extra
def test_batch_that_is_too_large_is_told() -> None:
    one = chips.topology("v5e:2x2")
    step = lowering.lower(toy_run(batch=4 * 2**28), one.cores)
    found = compilation.compile_for(step.module, one)
    assert found.is_too_large and not found.fits
    assert "Halve GLOBAL_BATCH_SIZE" in "\n".join(report.lines(found, step))
