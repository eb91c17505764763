"""Relative links from a page to what lies in a run folder: extras, without which the page is whole."""

import html
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pipeline.reporting.markup import Html, tag, with_texts

_FILES = ("config.gin", "manifest.json", "metrics.jsonl", "evaluation.json", "history.png")
_FOLDERS = ("checkpoints", "events", "history")


@dataclass(frozen=True, kw_only=True)
class Links:
    """Makes links to one run.

    Attributes:
      folder: of the run.
      page: the folder in which the page lies.
    """

    folder: Path
    page: Path

    def to(self, name: str, text: str) -> Html:
        """Return a link to a file or a folder of the run; the text alone where there is none."""
        target = self.folder / name
        if not target.exists():
            return Html(html.escape(text))
        way = quote(os.path.relpath(target, self.page))
        return tag("a", text, href=f"{way}/" if target.is_dir() else way)

    def names(self, previews: Iterable[str]) -> list[str]:
        """Return the files and the folders that are there, as a page names them: a folder ends in a slash.

        Args:
          previews: whose folders there may be.
        """
        folders = [f"{name}/" for name in dict.fromkeys([*_FOLDERS, *previews])]
        return [name for name in [*_FILES, *folders] if (self.folder / name).exists()]

    def within(self, markup: Html, previews: Iterable[str]) -> Html:
        """Return markup in which every file and folder of the run that a text names is a link.

        Args:
          markup: as it is; titles, commands and configurations stay so.
          previews: whose folders there may be.
        """
        ways = {html.escape(name): self.to(name, name) for name in self.names(previews)}
        if not ways:
            return markup
        named = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, ways))})(?![\w-])")
        return with_texts(markup, lambda text: named.sub(lambda one: ways[one[1]], text), leaving=("a", "h1", "pre"))
