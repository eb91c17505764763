"""The page as a file: what is in it, and that nothing in it leads out or breaks out."""

import base64
import json

import pytest
from report_pages import Reader, page_of, shown
from run_folders import CONFIG, make, png

from pipeline.reporting import comparison_page, curves, facts, health, pictures, run_page, tables


@pytest.fixture
def folder(tmp_path):
    return make(tmp_path / "run")


def test_page_needs_nothing_outside_itself(folder) -> None:
    reader = Reader(page_of(folder))
    for tag, attributes in reader.elements:
        if tag == "a":  # loads nothing: where it may lead is in test_links.py
            continue
        for name in ("src", "href", "action", "srcset", "poster", "data"):
            assert (attributes.get(name) or "#")[:1] == "#" or attributes[name].startswith("data:"), (tag, attributes)
        assert "url(" not in (attributes.get("style") or "")
    style = "".join(reader.texts["style"])
    assert "@import" not in style and "url(" not in style
    policy = next(one["content"] for tag, one in reader.elements if tag == "meta" and "http-equiv" in one)
    assert policy.startswith("default-src 'none'") and "http" not in policy


def test_page_tells_what_the_run_was_whether_it_is_well_and_how_to_repeat_it(folder) -> None:
    text = shown(page_of(folder))
    for words in ("digits (train): 80 images of 4 × 4 × 1, 2 classes", "generator (1,234 parameters)", "this CPU"):
        assert words in text
    assert "finished" in text and "All finite" in text and "none recorded" in text and "keras 3.9.0" in text
    assert "@adversarial.hinge" in text and "quickstart.gin:14" in text
    assert "--gin_param=&#x27;TRAIN_STEPS = 40&#x27;" in text and "python -m pipeline.main" in text


def test_page_escapes_what_comes_from_the_run(tmp_path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    folder = make(tmp_path / "run", config=CONFIG + f"gan.alternating.note = '{evil}'\n")
    point = {"step": 50, evil: 1.0}
    (folder / "metrics.jsonl").write_text(json.dumps(point) + "\n")
    (folder / "evaluation.json").write_text(json.dumps({evil: {"value": 1.0, "note": evil}}))
    before = sum(tag == "script" for tag, _ in Reader(page_of(make(tmp_path / "tame"))).elements)
    reader = Reader(page_of(folder))
    assert sum(tag == "script" for tag, _ in reader.elements) == before
    assert all("onerror" not in attributes for _, attributes in reader.elements)
    figures = json.loads("".join(reader.texts["figure-data"]))
    assert figures[0]["data"][0]["name"] == evil


def test_slider_has_every_picture_in_order(folder) -> None:
    reader = Reader(page_of(folder))
    slider = next(one for tag, one in reader.elements if one.get("type") == "range")
    held = json.loads("".join(reader.texts["picture-data"]))["samples"]
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "3", "3") and slider["aria-label"]
    assert [one["step"] for one in held] == [0, 10, 20, 40]
    assert [base64.b64decode(one["uri"].partition(",")[2]) for one in held] == [png(s) for s in (0, 10, 20, 40)]
    assert all(attributes.get("alt") for tag, attributes in reader.elements if tag == "img")


def test_numbers_that_are_not_finite_are_told_and_leave_gaps(folder) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 50, "generator/loss": NaN}\n{"step": 60, "generator/loss": Infinity}\n{"step": 70, "gen')
    read = facts.read(folder)
    assert "generator/loss at 2 log points, first at step 50" in shown(run_page.write(read))
    assert curves.curve(read.points, "generator/loss")[1][-2:] == [None, None]
    assert read.lost_lines == 0  # the last line is half written, no fault


def test_run_without_metrics_pictures_or_manifest_still_has_a_page(tmp_path) -> None:
    (tmp_path / "config.gin").write_text("this is = = no gin")
    text = shown(page_of(tmp_path))
    assert "no MetricsFile writer" in text and "No pictures were kept" in text and "holds no checkpoint" in text


@pytest.mark.parametrize(
    ("saved", "lock", "word"),
    [(40, "", "finished"), (30, "", "cut short"), (30, '{"pid": 1, "host": "elsewhere"}', "running")],
)
def test_state_is_read_off_checkpoints_and_lock(saved, lock, word, tmp_path) -> None:
    folder = make(tmp_path / "run", saved=saved)
    (folder / "run.lock").write_text(lock)
    assert health.state(facts.read(folder)).word == word


def test_resumed_run_and_its_events_are_told(tmp_path) -> None:
    folder = make(tmp_path / "run", starts=3)
    (folder / "events.jsonl").write_text('{"step": 20, "kind": "rollback", "why": "collapse"}\n')
    text = shown(page_of(folder))
    assert "3 starts; resumed at step 20" in text and "kind: rollback, why: collapse" in text


@pytest.mark.parametrize(
    ("commits", "said"), [(("a1", "a1-dirty"), ""), (("a1", "b2-dirty", "b2"), "of 2 different commits")]
)
def test_source_of_a_run_is_told_with_what_no_commit_has(commits, said, tmp_path) -> None:
    folder = make(tmp_path / "run", starts=len(commits))
    manifest = json.loads((folder / "manifest.json").read_text())
    for start, commit in zip(manifest["starts"], commits, strict=True):
        start["commit"] = commit
    (folder / "manifest.json").write_text(json.dumps(manifest))
    text = shown(page_of(folder))
    assert said in text and ("different commits" in text) == bool(said)
    dirty = "with changes that no commit has" in text
    assert dirty == commits[-1].endswith("-dirty") and f"at commit {commits[-1][:2]}" in text
    assert "Begun 2026-01-02 03:04:05 +0000 Last point 20" in text
    assert text.index("-again") < text.index("As it was last started")  # what repeats a run that is done comes first


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_accuracy_that_stays_at_an_end_is_told(end, folder) -> None:
    points = [{"step": step, "discriminator/accuracy": end} for step in range(5)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    assert [one for one in health.findings(facts.read(folder)) if one.what == "Stuck" and one.level == "bad"]


@pytest.mark.parametrize(
    "name", ["generator/class_accuracy", "recognition/class_accuracy", "evaluation/class_accuracy"]
)
def test_class_that_is_always_read_rightly_is_no_fault(name, folder) -> None:
    points = [{"step": step, name: 1.0} for step in range(9)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    assert not [one for one in health.findings(facts.read(folder)) if one.what == "Stuck"]


def test_long_curve_keeps_its_ends_and_its_peaks() -> None:
    points = [{"step": step, "loss": float(step == 7777) - float(step == 3333)} for step in range(10_000)]
    steps, values = curves.curve(points, "loss")
    assert len(steps) <= 1502 and steps == sorted(set(steps)) and (steps[0], steps[-1]) == (0, 9999)
    assert values[steps.index(7777)] == 1 and values[steps.index(3333)] == -1


def test_figures_are_valid_for_plotly(folder) -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    for one in curves.by_family(facts.read(folder).points):
        graph_objects.Figure(one.figure)


@pytest.mark.parametrize(
    ("sizes", "budget", "most", "places"),
    [([1] * 9, 100, 5, [0, 2, 4, 6, 8]), ([1] * 9, 3, 60, [0, 4, 8]), ([5, 5], 4, 60, []), ([9, 1], 1, 60, [1])],
)
def test_pictures_are_evenly_spaced_within_the_budget(sizes, budget, most, places) -> None:
    assert pictures.choose(sizes, budget, most) == places


@pytest.mark.parametrize(
    "value",
    [
        {"7": {"distance": {"value": 2.5, "spread": 0.1, "certificate": {"seeds": [0, 1], "of": {"hash": "ab"}}}}},
        [{"step": 7, "metric": "distance", "value": 2.5, "spread": 0.1, "seeds": [0, 1], "of.hash": "ab"}],
        {
            "step": 7,
            "metrics": [{"metric": "distance", "value": 2.5, "spread": 0.1, "seeds": [0, 1], "of": {"hash": "ab"}}],
        },
    ],
)
def test_evaluation_of_any_structure_is_a_row_for_each_number(value) -> None:
    expected = {"step": 7, "metric": "distance", "value": 2.5, "spread": 0.1, "seeds": [0, 1], "of.hash": "ab"}
    assert tables.rows(value) == [expected]


def test_scores_of_one_metric_are_named_by_their_keys_and_its_settings_stand_beside() -> None:
    of = {"certificate": {"metric": "PrecisionRecall(k=3)"}}
    entry = {"step": 7, "metrics": {"precision": {"value": 0.5, **of}, "recall": {"value": 0.25, **of}}}
    common = {"step": 7, "entry": "metrics", "settings": "PrecisionRecall(k=3)"}
    expected = [{"metric": "precision", "value": 0.5, **common}, {"metric": "recall", "value": 0.25, **common}]
    assert tables.rows({"evaluations": [entry]}) == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [({"evaluations": []}, "evaluations"), ({"recall": 0.5}, "recall 0.5"), ([{"metric": "a", "value": 2}], "a 2")],
)
def test_evaluation_without_rows_or_without_common_settings_is_shown_as_it_is(value, words) -> None:
    text = shown(tables.of_evaluation(value)).strip()
    assert words in text and "[]" not in text


def test_comparison_shows_what_differs_and_both_runs_curves(tmp_path) -> None:
    one = make(tmp_path / "one")
    other = make(tmp_path / "other", config=CONFIG.replace("hinge", "wasserstein"))
    runs = [facts.read(folder) for folder in (one, other)]
    named = dict(zip(comparison_page.names(runs), runs, strict=True))
    assert comparison_page.differences(named) == [
        ["gan.alternating.loss", "@adversarial.hinge", "@adversarial.wasserstein"]
    ]
    reader = Reader(comparison_page.write(runs))
    figures = json.loads("".join(reader.texts["figure-data"]))
    assert [[trace["name"] for trace in figure["data"]] for figure in figures] == [["one", "other"]] * 2
    assert sum(tag == "img" for tag, _ in reader.elements) == 2
