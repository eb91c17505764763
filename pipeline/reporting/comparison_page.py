"""The page that compares runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline import configs
from pipeline.reporting import curves, health, pace, pictures, tables
from pipeline.reporting.facts import RunFacts
from pipeline.reporting.links import Links
from pipeline.reporting.markup import Html, join, tag
from pipeline.reporting.page import Page, image
from pipeline.reporting.run_page import data, sentence

_MB = 2**20


def write(runs: Sequence[RunFacts], *, place: Path | None = None) -> str:
    """Return the page that compares two or more runs.

    Args:
      runs: facts of each.
      place: the folder in which the page will lie; None: the working directory.
    """
    links = [Links(folder=facts.path, page=place or Path()) for facts in runs]
    named = dict(zip(names(runs), runs, strict=True))
    page = Page(f"{' · '.join(named)} · Gantry")
    main = join(
        _runs(page, named, links),
        _differences(page, named),
        _pictures(page, named),
        _curves(page, named),
        _metrics(page, named),
        _evaluation(page, named, links),
    )
    header = join(
        tag("p", "Comparison of runs", class_="kicker"),
        tag("h1", f"{len(named)} runs: {', '.join(named)}"),
        tag("p", "The colour of a run is the same in all plots that have all runs.", class_="soft"),
    )
    return page.html(header, main)


def names(runs: Sequence[RunFacts]) -> list[str]:
    """Return what the runs are called: the folder's name, or its path where two folders have one name."""
    short = [facts.name for facts in runs]
    return [name if short.count(name) == 1 else str(facts.path) for name, facts in zip(short, runs, strict=True)]


def differences(named: Mapping[str, RunFacts]) -> list[list[Any]]:
    """Return a row [name, value of each run] for each binding in which a run differs from the first."""
    first, *others = named.values()
    found: dict[str, None] = {}
    for other in others:
        if first.config and other.config:
            found |= {line.partition(": ")[0]: None for line in configs.differences(first.config, other.config)}
    return [[name, *(facts.values.get(name, "unset") for facts in named.values())] for name in sorted(found)]


def _runs(page: Page, named: Mapping[str, RunFacts], links: Sequence[Links]) -> Html:
    rows = []
    for (name, facts), link in zip(named.items(), links, strict=True):
        state = health.state(facts)
        level = health.level_of(health.findings(facts), state)
        word = {"good": "well", "note": "notes", "bad": "see its report"}[level]
        start = facts.starts[-1] if facts.starts else {}
        badge = tag("span", f"{state.word}, {word}", class_=level)
        paces = [pace.duration(facts) or None, pace.speed(facts) or None]
        about = [sentence(facts), start.get("hardware"), start.get("commit"), link.to("", str(facts.path))]
        rows.append([link.to("report.html", name), badge, facts.step, *paces, *about])
    told = tag("p", pace.EXPLANATION, class_="soft") if any(pace.speeds(facts) for facts in named.values()) else None
    heads = ["run", "state", "step", "time in training", "images a second, median", "what", "hardware", "commit"]
    return page.section("Runs", tables.table([*heads, "folder"], rows, "The runs"), told)


def _differences(page: Page, named: Mapping[str, RunFacts]) -> Html:
    rows = differences(named)
    for name, told in (
        ("data", [data(facts) for facts in named.values()]),
        ("data's fingerprint", [facts.data.get("fingerprint") for facts in named.values()]),
        ("commit", [(facts.starts[-1] if facts.starts else {}).get("commit") for facts in named.values()]),
        ("versions", [facts.versions for facts in named.values()]),
    ):
        if len(set(told)) > 1:
            rows.append([name, *told])
    nothing = tag("p", "None: the same bindings, data, commit and versions.", class_="soft")
    table = tables.table(["binding", *named], rows, "Bindings that differ") if rows else nothing
    return page.section("Differences", table)


def _pictures(page: Page, named: Mapping[str, RunFacts]) -> Html:
    budget = pictures.BUDGET_MB * _MB // max(1, sum(len(facts.previews) for facts in named.values()))
    shelves = []
    for preview in dict.fromkeys(preview for facts in named.values() for preview in facts.previews):
        books = []
        for name, facts in named.items():
            loaded = pictures.load(facts.previews.get(preview, [])[-1:], budget)
            books += [_book(name, preview, one) for one in loaded]
        shelves += [tag("h3", preview), tag("div", *books, class_="shelf")]
    return page.section("Last pictures", *(shelves or [tag("p", "No run kept any.", class_="soft")]))


def _book(name: str, preview: str, picture: pictures.Picture) -> Html:
    caption = tag("figcaption", name, tag("span", f", step {picture.step:,}", class_="soft"))
    return tag("figure", caption, image(picture, f"{preview} of {name} at step {picture.step:,}"))


def _curves(page: Page, named: Mapping[str, RunFacts]) -> Html:
    figures = curves.by_metric({name: facts.points for name, facts in named.items()})
    nothing = tag("p", "No run has numbers in metrics.jsonl.", class_="soft")
    return page.section("Curves", page.plots(figures) if figures else nothing)


def _metrics(page: Page, named: Mapping[str, RunFacts]) -> Html:
    last = [facts.points[-1] if facts.points else {} for facts in named.values()]
    rows = [[name, *(point.get(name) for point in last)] for name in curves.metrics(last)]
    heads = [
        "metric",
        *(f"{name}, step {int(p['step']):,}" if p else name for name, p in zip(named, last, strict=True)),
    ]
    return page.section("Last metrics", tables.table(heads, rows, "Last metrics"))


def _evaluation(page: Page, named: Mapping[str, RunFacts], links: Sequence[Links]) -> Html:
    found = []
    for (name, facts), link in zip(named.items(), links, strict=True):
        if (table := tables.of_evaluation(facts.evaluation)) is not None:
            late = tag("p", said, class_="note") if (said := health.unscored(facts)) else None
            source = tag("p", "All of it is in ", link.to("evaluation.json", "evaluation.json"), ".", class_="soft")
            found.append(join(tag("h3", name), late, table, source))
    return page.section("Evaluation", *(found or [tag("p", "No run has an evaluation.json.", class_="soft")]))
