"""Reads a report: its elements and what a reader sees."""

import re
from html.parser import HTMLParser
from pathlib import Path

from pipeline.reporting import facts, run_page


class Reader(HTMLParser):
    """Collects elements and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = dict(attrs).get("id") if dict(attrs).get("type") == "application/json" else tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open, []).append(data)


def page_of(folder: Path) -> str:
    """Return the page of a run."""
    return run_page.write(facts.read(folder))


def shown(page: str) -> str:
    """Return the text of a page without its scripts; an explained word and a link stand in their sentence."""
    page = re.sub(r"</?(abbr|a)\b[^>]*>", "", page)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(script|style).*?</\1>", "", page)))
