"""The table of a sweep: every mistake in it is told before anything is trained, with the variant it is in."""

from pathlib import Path

import pytest

from components.errors import UserError
from tools import sweep, sweep_table

GOOD = """
[sweep]
title = "Two"
steps = 2
seeds = [0, 1]
num_images = 200
params = ["GLOBAL_BATCH_SIZE = 8"]

[[variant]]
name = "plain"
doc = "as shipped"
gin_file = "quickstart.gin"

[[variant]]
name = "hinge"
doc = "with the hinge loss"
gin_file = "quickstart.gin"
params = ["gan.alternating.loss = @adversarial.hinge"]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.toml"
    path.write_text(text)
    return path


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(UserError) as caught:
        sweep_table.read(written(tmp_path, text))
    return str(caught.value)


def test_read_of_a_good_table_fills_in_defaults(tmp_path: Path) -> None:
    table = sweep_table.read(written(tmp_path, GOOD))
    assert [variant.name for variant in table.variant] == ["plain", "hinge"]
    assert table.variant[0].conditional
    assert table.sweep.seeds == [0, 1]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("steps = 2", "stepz = 2", ["`sweep.stepz` is no key of it", "known are title", "`sweep.steps` must be set"]),
        ("steps = 2", "steps = '2'", ["`sweep.steps`", "valid integer", "'2'"]),
        ("steps = 2", "steps = 0", ["`sweep.steps`", "greater than or equal to 1", "Received 0"]),
        ("seeds = [0, 1]", "seeds = []", ["`sweep.seeds`", "at least 1 item"]),
        ("seeds = [0, 1]", "seeds = [1, 1]", ["stands once", "Received 1 2 times"]),
        ('name = "hinge"', 'name = "plain"', ["a name of its own", "`plain` 2 times"]),
        ('name = "hinge"', 'name = "../x"', ["Variant `../x`: `variant.name`", "folder's name"]),
        ('name = "hinge"', "", ["Variant number 2: `variant.name` must be set. Received nothing"]),
        ('doc = "with', 'dok = "with', ["Variant `hinge`: `variant.dok` is no key", "known are name, doc"]),
        ("[sweep]", "[swep]", ["`sweep` must be set", "`swep` is no key", "known are sweep, variant"]),
        ('title = "Two"', "title =", ["TABLE must be a file of TOML", "line 3"]),
    ],
)
def test_read_of_a_wrong_table_tells_rule_received_and_remedy(
    old: str, new: str, told: list[str], tmp_path: Path
) -> None:
    assert old in GOOD
    message = refusal(tmp_path, GOOD.replace(old, new, 1))
    assert "table.toml" in message
    for words in told:
        assert words in message


def test_read_tells_all_faults_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, GOOD.replace("steps = 2", "").replace("seeds = [0, 1]", "seeds = []"))
    assert "sweep.steps" in message
    assert "sweep.seeds" in message


def test_read_of_no_variant_is_refused(tmp_path: Path) -> None:
    assert "`variant` must be set" in refusal(tmp_path, GOOD.partition("[[variant]]")[0])


def test_read_of_no_file_names_a_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"No such file.*docs/zoo/digits\.toml"):
        sweep_table.read(tmp_path / "none.toml")


def test_cells_are_variants_times_seeds_of_different_configurations(tmp_path: Path) -> None:
    cells = sweep_table.cells(sweep_table.read(written(tmp_path, GOOD)))
    assert [str(cell.folder) for cell in cells] == ["plain/seed-0", "plain/seed-1", "hinge/seed-0", "hinge/seed-1"]
    assert len({cell.fingerprint for cell in cells}) == 4
    assert cells[3].params[-2:] == ("TRAIN_STEPS = 2", "SEED = 1")


def test_cells_fingerprint_ignores_how_a_line_is_written(tmp_path: Path) -> None:
    first = sweep_table.cells(sweep_table.read(written(tmp_path, GOOD)))
    again = sweep_table.cells(sweep_table.read(written(tmp_path, GOOD.replace("SIZE = 8", "SIZE   =  8 # small"))))
    assert [cell.fingerprint for cell in first] == [cell.fingerprint for cell in again]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gan.alternating.loss = @adversarial.hingge", "hinge"),
        ("experiment.Experiment.steps_per_loop = 7", "must divide"),  # a check between parts
        ("GLOBAL_BATCH_SIZE = 16", "bound once"),
    ],
)
def test_main_with_a_wrong_binding_in_the_last_row_trains_nothing(
    line: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sweep.quiet, "start", lambda: None)
    path = written(tmp_path, GOOD.replace("gan.alternating.loss = @adversarial.hinge", line))
    assert sweep.main([str(path), f"--workdir={tmp_path / 'runs'}"]) == 2
    error = capsys.readouterr().err
    assert error.count("Error:") == 1
    assert "Variant `hinge`" in error
    assert "Variant `plain`" not in error
    assert told in error
    assert not (tmp_path / "runs").exists()


def test_shipped_tables_are_good(repository: Path) -> None:
    paths = sorted((repository / "docs" / "zoo").glob("*.toml"))
    assert paths
    for path in paths:
        assert sweep_table.cells(sweep_table.read(path))
