"""What surrounds a report: one file with its style, its scripts and the plotting library inside."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from pipeline.reporting import glossary
from pipeline.reporting.curves import Figure
from pipeline.reporting.markup import Html, join, json_text, tag
from pipeline.reporting.pictures import Picture

_HERE = Path(__file__).parent
_SMALL = 600  # pixels: a narrower picture is shown larger than it is, with its pixels as they are

_MARKS = {"good": "✓", "note": "•", "bad": "✗"}


class Page:
    """Collects the sections of a page, its figures and its pictures.

    Args:
      title: of the browser's tab.
    """

    def __init__(self, title: str) -> None:
        """Begin with nothing."""
        self._title = title
        self._sections: list[tuple[str, str]] = []
        self._figures: list[Mapping[str, Any]] = []
        self._pictures: dict[str, Sequence[Picture]] = {}

    def section(self, title: str, *inside: Any) -> Html:
        """Return a section that the page's list of contents names."""
        name = title.lower().replace(" ", "-")
        self._sections.append((name, title))
        return tag("section", tag("h2", title, id=f"{name}-title"), *inside, id=name, aria_labelledby=f"{name}-title")

    def plots(self, figures: Sequence[Figure]) -> Html:
        """Return the places of figures, each with a switch between a linear and a logarithmic axis."""
        return tag("div", *(self._plot(figure) for figure in figures), class_="plots")

    def _plot(self, figure: Figure) -> Html:
        number = len(self._figures)
        self._figures.append(figure.figure)
        choices = [
            tag("label", tag("input", type="radio", name=f"axis-{number}", value=kind, checked=kind == "linear"), word)
            for kind, word in (("linear", "linear"), ("log", "logarithmic"))
        ]
        switch = tag("fieldset", tag("legend", f"Vertical axis of {figure.title}", class_="unseen"), *choices)
        names = ", ".join(str(trace["name"]) for trace in figure.figure["data"])
        drawing = tag("div", class_="drawing", data_figure=number, role="img", aria_label=f"Curves over steps: {names}")
        return tag(
            "figure",
            tag("figcaption", tag("span", figure.title, tag("span", " over steps", class_="soft")), switch),
            drawing,
            class_="plot",
        )

    def slides(self, preview: str, pictures: Sequence[Picture], note: str) -> Html:
        """Return a picture with a slider over its steps; the last one is shown first."""
        self._pictures[preview] = pictures
        last, text = pictures[-1], f"step {pictures[-1].step:,}"
        slider = tag(
            "input",
            type="range",
            min=0,
            max=len(pictures) - 1,
            step=1,
            value=len(pictures) - 1,
            aria_label=f"Step of {preview}",
            aria_valuetext=text,
        )
        controls = [tag("button", "Play", type="button"), slider] if len(pictures) > 1 else []
        return tag(
            "figure",
            tag("h3", preview),
            image(last, f"{preview} at {text}"),
            tag("div", *controls, tag("output", text), class_="controls"),
            tag("figcaption", note, class_="soft"),
            class_="slides",
            data_preview=preview,
        )

    def html(self, header: Html, main: Html) -> str:
        """Return the whole file."""
        from plotly.offline import get_plotlyjs

        contents = tag("nav", *(tag("a", title, href=f"#{name}") for name, title in self._sections), aria_label="Page")
        no_script = tag("noscript", tag("p", "Curves and sliders need JavaScript; all else is here.", class_="note"))
        top = tag("header", header, contents, no_script)
        body, words = glossary.explained(join(top, tag("main", main, id="main")))
        written = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        moment = tag("time", time.strftime("%Y-%m-%d %H:%M:%S %Z"), datetime=written, data_age=True)
        told = ". It needs no network; its links to files are extras, and hold while it lies where it was written."
        footer = tag("footer", _words(words), tag("p", "This page was written ", moment, tag("span"), told))
        uris = {name: [{"step": one.step, "uri": one.uri} for one in all_] for name, all_ in self._pictures.items()}
        library = tag("script", Html(get_plotlyjs())) if self._figures else ""
        return Template(_text("page.html")).substitute(
            title=join(self._title),
            style=_text("page.css"),
            body=join(body, footer),
            figures=json_text(self._figures),
            pictures=json_text(uris),
            plotly=library,
            script=_text("page.js"),
        )


def image(picture: Picture, alt: str) -> Html:
    """Return an image."""
    small = "small" if picture.width < _SMALL else None
    return tag("img", src=picture.uri, alt=alt, width=picture.width, height=picture.height, class_=small)


def marked(level: str, what: str, detail: str) -> Html:
    """Return one finding of a list of class `findings`: its level shows as a sign and as a colour, and can be heard."""
    words = {"good": "good", "note": "to note", "bad": "bad"}
    mark = tag("span", tag("span", _MARKS[level], aria_hidden="true"), tag("span", words[level], class_="unseen"))
    cells = [tag("span", mark, class_=f"mark {level}"), tag("span", what, class_="what")]
    return tag("li", *cells, tag("span", detail, class_="detail"))


def _words(words: Sequence[tuple[str, str]]) -> Html | None:
    """Return the words that the page explains, in their order: a finger cannot rest on one."""
    meanings = [tag("div", tag("dt", word), tag("dd", meaning)) for word, meaning in words]
    return tag("details", tag("summary", "Words on this page"), tag("dl", *meanings)) if words else None


def _text(name: str) -> str:
    return (_HERE / name).read_text()
