"""The comparison of replicas: what is alike, what is not, and what cannot be compared."""

import numpy as np
import pytest

from tools import invariance, markdown_table
from tools.replicas import Difference, difference

SMALL = [
    "--gin_file=quickstart.gin",
    "--gin_param=GLOBAL_BATCH_SIZE = 8",
    "--gin_param=tfds_source.TFDSSource.image_size = (8, 8)",
    "--gin_param=dcgan.generator.widths = (4,)",
    "--gin_param=dcgan.discriminator.widths = (4,)",
    "--replicas=2",
]


def test_difference_is_relative_to_the_number_or_to_one() -> None:
    left = {"a": np.array([100.0, 0.5]), "b": np.array(1.0)}
    found = difference(left, {"a": np.array([110.0, 0.45]), "b": np.array(1.01)})
    assert (found.where, found.value) == ("a", pytest.approx(0.1))


def test_number_that_is_lost_on_one_side_only_differs_by_infinity() -> None:
    left = {"a": np.array([1.0, 2.0]), "b": np.array(1.0)}
    assert difference(left, {"a": np.array([1.0, np.nan]), "b": np.array(5.0)}) == Difference(np.inf, "a")


@pytest.mark.parametrize("place", ["nowhere/table.md", "."])
def test_document_that_cannot_be_written_is_refused_before_the_work(place, tmp_path, capsys) -> None:
    assert invariance.main([*SMALL, f"--markdown={tmp_path / place}"]) == 2
    assert "can be written" in capsys.readouterr().err


@pytest.mark.slow
def test_shipped_file_is_alike_and_has_its_row(tmp_path, capsys) -> None:
    file = tmp_path / "table.md"
    assert invariance.main([*SMALL, "--loss_steps=10", f"--markdown={file}"]) == 0
    assert "Alike." in capsys.readouterr().out
    (row,) = [line for line in file.read_text().splitlines() if line.startswith("| quickstart")]
    assert row.startswith("| quickstart | 2 | 4 | 3 |") and row.count("|") == 10
    assert "| `GLOBAL_BATCH_SIZE = 8`; `tfds_source.TFDSSource.image_size = (8, 8)`; `dcgan" in row


@pytest.mark.slow
def test_layer_that_looks_across_the_rows_of_its_replica_is_found(capsys) -> None:
    per_replica = "--gin_param=dcgan.generator.normalisation = 'batch_per_replica'"
    assert invariance.main([*SMALL, per_replica, "--loss_steps=0"]) == 1
    assert "NOT ALIKE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reason"), [(["--steps=0"], "at least 1"), (["--loss_steps=5"], "multiple of 10")]
)
def test_numbers_of_steps_out_of_range_are_refused(arguments, reason, capsys) -> None:
    assert invariance.main([*SMALL, *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_one_replica_is_nothing_to_compare_with(capsys) -> None:
    with pytest.raises(SystemExit):
        invariance.main(["--gin_file=quickstart.gin", "--replicas=1,2"])
    assert "at least 2" in capsys.readouterr().err


def test_row_takes_the_place_of_the_one_with_its_keys_and_rows_are_sorted(tmp_path) -> None:
    file, table = tmp_path / "t.md", markdown_table.Table(title="# T\n", columns=("a", "b", "c"), keys=2)
    for cells in (["y", "1", "old"], ["x", "2", "p|q"], ["y", "1", "new"]):
        table.put(file, cells)
    assert file.read_text().splitlines()[2:] == ["| a | b | c |", "|---|---|---|", "| x | 2 | p/q |", "| y | 1 | new |"]
