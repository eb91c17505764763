"""The page of one run."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.reporting import config_view, curves, health, pace, pictures, tables
from pipeline.reporting.facts import RunFacts, commit_of
from pipeline.reporting.links import Links
from pipeline.reporting.markup import Html, join, tag
from pipeline.reporting.page import Page, image, marked

_SHOWN_STARTS = 20
_MB = 2**20


def write(facts: RunFacts, *, is_over: bool = False, fault: str = "", place: Path | None = None) -> str:
    """Return the page of a run.

    Args:
      facts: of the run.
      is_over: whether training has ended, though its process still holds the folder.
      fault: what ended it, where that was a fault.
      place: the folder in which the page will lie; None: that of the run.
    """
    links = Links(folder=facts.path, page=place or facts.path)
    page = Page(f"{facts.name} · Gantry")
    state = health.state(facts, is_over=is_over, fault=fault)
    main = join(
        tag("div", _health(page, facts, state), _about(page, facts, links), class_="two"),
        _pictures(page, facts),
        _curves(page, facts),
        _evaluation(page, facts),
        _repeat(page, facts),
        _config(page, facts),
        _starts(page, facts),
    )
    header, main = (links.within(one, facts.previews) for one in (_header(facts, state), main))
    return page.html(header, main)


def sentence(facts: RunFacts) -> str:
    """Say in one sentence what the run trains on what."""
    names = [f"{name} ({count:,} parameters)" for name, count in facts.networks.items()]
    objective = facts.value("experiment.Experiment.updates").strip("@()[]").removesuffix("()")
    subject = f"{objective} trains {_listed(names)}" if names and objective else objective or "A run"
    return f"{subject} on {data(facts)}." if facts.data else f"{subject}."


def data(facts: RunFacts) -> str:
    """Say in a few words what the data are."""
    told = facts.data
    shape = told.get("image_shape")
    count = told.get("num_examples")
    images = f"{count:,} images" if isinstance(count, int) and count else "images"
    size = f" of {' × '.join(map(str, shape))}" if isinstance(shape, list) else ""
    classes = f", {told['num_classes']} classes" if told.get("num_classes") else ""
    return f"{told.get('name', 'data not told')} ({told.get('split', 'split not told')}): {images}{size}{classes}"


def command(arguments: Any, *, between: str = " ") -> str:
    """Return a command line as a shell takes it, from the arguments that a start wrote down.

    Args:
      arguments: `sys.argv` of the start.
      between: stands between the arguments.
    """
    if not isinstance(arguments, list) or not arguments:
        return ""
    first, *rest = [str(one) for one in arguments]
    program = shlex.quote(first)
    if first.endswith("pipeline/main.py"):
        program = "python -m pipeline.main"
    elif first.endswith("/gantry"):
        program = "gantry"
    return between.join([program, *(_quoted(argument) for argument in rest)])


def _quoted(argument: str) -> str:
    """Return an argument in a shell's quotes, which stand around the value of a flag where that is what needs them."""
    flag, equals, value = argument.partition("=")
    return f"{flag}={shlex.quote(value)}" if equals and shlex.quote(flag) == flag else shlex.quote(argument)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _header(facts: RunFacts, state: health.State) -> Html:
    last = facts.number("experiment.Experiment.train_steps")
    bar = tag("progress", value=min(facts.step, last), max=last, aria_label="Steps done") if last else None
    badge = tag("span", state.word, class_=f"badge {state.level}")
    return join(
        tag("p", "Report of a run", class_="kicker"),
        tag("div", tag("h1", facts.name), badge, class_="title"),
        tag("p", sentence(facts), class_="lead"),
        tag("p", state.sentence, class_="soft"),
        bar,
        tag(
            "dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in _numbers(facts)), class_="numbers"
        ),
        tag("p", told, class_="soft") if (told := pace.explanation(facts)) else None,
    )


def _numbers(facts: RunFacts) -> list[tuple[str, str]]:
    """Return the few numbers that stand on top."""
    last = facts.number("experiment.Experiment.train_steps")
    batch = pace.images_per_step(facts, facts.step) or facts.number("experiment.Experiment.global_batch_size")
    found = [("Step", f"{facts.step:,}" + (f" of {last:,}" if last else ""))]
    examples = facts.data.get("num_examples")
    if batch and isinstance(examples, int) and examples:
        found.append(("Epochs", f"{facts.step * batch / examples:.1f}"))
    paces = (("Time in training", pace.duration(facts)), ("Images a second, median", pace.speed(facts)))
    found += [(name, value) for name, value in paces if value]
    newest = facts.points[-1] if facts.points else {}
    told = [name for name in curves.metrics(facts.points) if curves.family(name) in ("Losses", "VAE terms")]
    found += [(f"Last {name}", f"{newest[name]:.4g}") for name in told[:4] if name in newest]
    return found


def _health(page: Page, facts: RunFacts, state: health.State) -> Html:
    found = health.findings(facts)
    words = {
        "good": "Nothing to worry about.",
        "note": "Sound, with notes.",
        "bad": "Look at this before using the run.",
    }
    level = health.level_of(found, state)
    items = [marked(state.level, "State", f"{state.word.capitalize()}. {state.sentence}")]
    items += [marked(one.level, one.what, one.detail) for one in found]
    return page.section("Health", tag("p", words[level], class_=level), tag("ul", *items, class_="findings"))


def _about(page: Page, facts: RunFacts, links: Links) -> Html:
    start = facts.starts[-1] if facts.starts else {}
    items: list[tuple[str, Any]] = [("Data", data(facts))]
    if facts.starts:
        items.append(("Begun", _moment(facts.starts[0].get("time"))))
    if facts.last_written:
        items.append(("Last point", _moment(facts.last_written)))
    items += [(f"Network {name}", f"{count:,} parameters") for name, count in facts.networks.items()]
    items.append(("Made by", facts.value("experiment.Experiment.networks") or "not told"))
    items += _objective(facts.values)
    items += [
        (name, facts.value(f"experiment.Experiment.{key}").strip("'\"") or "not told")
        for name, key in (("Batch size", "global_batch_size"), ("Precision", "precision"), ("Seed", "seed"))
    ]
    items += [(key.capitalize(), start.get(key, "not told")) for key in ("hardware", "strategy", "commit")]
    items.append(("Versions", facts.versions or "not told"))
    items.append(("Fingerprint", f"{facts.data.get('fingerprint', 'not told')} (of the data)"))
    items.append(("Folder", links.to("", str(facts.path))))
    items.append(("Files", ", ".join(links.names(facts.previews)) or "none"))
    return page.section("What it was", tables.pairs(items))


def _objective(values: Mapping[str, str]) -> list[tuple[str, Any]]:
    """Return the updates, and which functions were bound to the parts that make them."""
    updates = values.get("experiment.Experiment.updates", "")
    found: list[tuple[str, Any]] = [("Updates", updates)] if updates else []
    for name, value in values.items():
        part, _, parameter = name.rpartition(".")
        if part and f"@{part}" in updates and "@" in value and "Player" not in value:
            found.append((parameter.capitalize(), value))
    return found


def _pictures(page: Page, facts: RunFacts) -> Html:
    shares = pictures.BUDGET_MB * _MB // max(1, len(facts.previews))
    shown = []
    for preview, all_ in facts.previews.items():
        loaded = pictures.load(all_, shares)
        note = f"{len(loaded)} of {len(all_)} pictures in {preview}/, evenly spaced."
        if len(loaded) == len(all_):
            note = f"All pictures in {preview}/."
        shown.append(page.slides(preview, loaded, note) if loaded else tag("p", f"{preview}: too large to be shown."))
    history = pictures.picture(0, facts.history) if facts.history else None
    if history and len(history.uri) < pictures.BUDGET_MB * _MB:
        text = "One row of the pictures at each kept step, the first one on top"
        shown.append(
            tag(
                "figure",
                tag("h3", "history"),
                image(history, text),
                tag("figcaption", f"{text}, as in history.png.", class_="soft"),
                class_="history",
            )
        )
    nothing = tag("p", "No pictures were kept: the run has no preview, or no PictureFolder writer.", class_="soft")
    return page.section("Pictures", tag("div", *shown, class_="album") if shown else nothing)


def _curves(page: Page, facts: RunFacts) -> Html:
    if not facts.points:
        return page.section("Curves", tag("p", "There are no numbers in metrics.jsonl to draw.", class_="soft"))
    newest = facts.points[-1]
    names = curves.metrics(facts.points)
    rows = [[name, newest.get(name), *_least_and_greatest(facts, name)] for name in names]
    heads = ["metric", f"at step {int(newest['step']):,}", "least", "greatest"]
    numbers = tag("details", tag("summary", "The numbers"), tables.table(heads, rows, "Metrics in numbers"))
    hint = "Drag over a plot to zoom, double-click to zoom out, click a name to hide its curve."
    return page.section("Curves", tag("p", hint, class_="soft"), page.plots(curves.by_family(facts.points)), numbers)


def _least_and_greatest(facts: RunFacts, name: str) -> tuple[float | None, float | None]:
    known = [value for value in curves.curve(facts.points, name)[1] if value is not None]
    return (min(known), max(known)) if known else (None, None)


def _evaluation(page: Page, facts: RunFacts) -> Html:
    found = tables.of_evaluation(facts.evaluation)
    if found is None:
        return page.section("Evaluation", tag("p", "No evaluation.json yet.", class_="soft"))
    late = tag("p", said, class_="note") if (said := health.unscored(facts)) else None
    source = tag("p", "Every score, with its certificate, is in evaluation.json.", class_="soft")
    return page.section("Evaluation", late, found, source)


def _repeat(page: Page, facts: RunFacts) -> Html:
    start = facts.starts[-1] if facts.starts else {}
    exact = command(start.get("command"), between=" \\\n  ")
    folder = shlex.quote(str(facts.path))
    again = f"python -m pipeline.main --gin_file={folder}/config.gin --workdir={folder}-again"
    more = f"python -m pipeline.main --mode=sample --workdir={folder} --output=images.png"
    last = [
        tag("h3", f"As it was last started{_source(start)}"),
        tag("p", "In the folder that it has, it goes on from there, or says that it is done.", class_="soft"),
        tag("pre", exact, class_="command"),
    ]
    return page.section(
        "Repeat",
        tag("h3", "From its folder alone, into a new one"),
        tag("pre", again, class_="command"),
        *(last if exact else []),
        tag("h3", "Draw more images from its weights"),
        tag("pre", more, class_="command"),
    )


def _source(start: Mapping[str, Any]) -> str:
    """Say which source tree a start was of."""
    name, is_dirty = commit_of(start)
    return f", at commit {name[:12]}{' with changes that no commit has' if is_dirty else ''}" if name else ""


def _config(page: Page, facts: RunFacts) -> Html:
    if not facts.config:
        return page.section("Configuration", tag("p", "config.gin cannot be read.", class_="bad"))
    where = " In italics: the file and line, or the flag, that a value comes from." if facts.sources else ""
    hint = f"config.gin: every value that took effect. Dim lines are defaults.{where}"
    return page.section("Configuration", tag("p", hint, class_="soft"), config_view.view(facts.config, facts.sources))


def _starts(page: Page, facts: RunFacts) -> Html:
    starts = facts.starts[-_SHOWN_STARTS:]
    if not starts:
        return page.section("Starts", tag("p", "manifest.json cannot be read, or tells of none.", class_="bad"))
    rows = [
        [
            _moment(start.get("time")),
            start.get("step"),
            start.get("hardware"),
            start.get("commit"),
            command(start.get("command")),
        ]
        for start in starts
    ]
    left_out = len(facts.starts) - len(starts)
    note = tag("p", f"{left_out} earlier ones are in manifest.json.", class_="soft") if left_out else None
    heads = ["time", "from step", "hardware", "commit", "command"]
    return page.section("Starts", note, tables.table(heads, rows, "Starts of the run"))


def _moment(text: Any) -> str:
    try:
        return datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%S%z").strftime("%Y-%m-%d %H:%M:%S %z")
    except ValueError:
        return str(text or "not told")
