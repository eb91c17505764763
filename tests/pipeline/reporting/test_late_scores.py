"""A page says where its scores are older than the weights."""

import json

import pytest
from report_pages import page_of, shown
from run_folders import make

from pipeline.reporting import comparison_page, facts, health


def scored(folder, steps, *, saved: int):
    """Make a run that saved a step, with scores of others."""
    make(folder, saved=saved)
    entries = [{"step": step, "metrics": {"recall": {"value": 0.5, "spread": 0.1}}} for step in steps]
    (folder / "evaluation.json").write_text(json.dumps({"evaluations": entries}))
    return folder


def test_scores_of_an_older_step_than_the_last_checkpoint_are_told(tmp_path) -> None:
    said = "The last scores are of step 900; the run went on to step 1,200, which was not scored."
    folder = scored(tmp_path / "run", [300, 900, 600], saved=1200)
    text = shown(page_of(folder))
    assert f"Scores {said}" in text and f"Evaluation {said}" in text  # among the findings, and over the table
    assert "Sound, with notes." in text


@pytest.mark.parametrize(("steps", "saved"), [([40], 40), ([20, 40], 40), ([], 40), ([60], 40)])
def test_scores_of_the_last_checkpoint_need_no_word(steps, saved, tmp_path) -> None:
    folder = scored(tmp_path / "run", steps, saved=saved)
    assert health.unscored(facts.read(folder)) == "" and "not scored" not in shown(page_of(folder))


def test_comparison_tells_which_run_has_late_scores(tmp_path) -> None:
    folders = [scored(tmp_path / "late", [20], saved=40), scored(tmp_path / "whole", [40], saved=40)]
    text = shown(comparison_page.write([facts.read(folder) for folder in folders]))
    assert "late The last scores are of step 20; the run went on to step 40" in text
    assert text.count("not scored") == 1
