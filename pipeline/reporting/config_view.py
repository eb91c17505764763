"""config.gin as markup: defaults are dim, and each value tells where it comes from."""

import re
from collections.abc import Mapping

from pipeline.reporting.markup import Html, join, tag

_WORDS = re.compile(
    r"(?P<string>'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")|(?P<reference>[@%][\w./]+(?:\(\))?)"
    r"|(?P<number>(?<![\w.])-?\d[\d.]*(?:e[-+]?\d+)?(?![\w.]))|(?P<word>\b(?:True|False|None|from|import|include)\b)"
)
_BINDING = re.compile(r"(?P<dim># )?(?P<name>[\w./]+) =")


def view(text: str, sources: Mapping[str, str]) -> Html:
    """Return gin text as a block of lines.

    Args:
      text: of config.gin.
      sources: {name of a binding or macro: where it comes from}.
    """
    return tag("pre", tag("code", *(_line(line, sources) for line in text.splitlines())), class_="config", tabindex="0")


def _line(line: str, sources: Mapping[str, str]) -> Html:
    if line.startswith("#"):
        return tag("span", line + "\n", class_="default")
    found = _BINDING.match(line)
    source = sources.get(found["name"]) if found else None
    aside = tag("span", f"  {source}", class_="source") if source else None
    name = tag("span", found["name"], class_="name") if found else None
    return tag("span", name, _words(line[found.end("name") :] if found else line), aside, "\n")


def _words(text: str) -> Html:
    parts: list[str | Html] = []
    end = 0
    for word in _WORDS.finditer(text):
        parts += [text[end : word.start()], tag("span", word.group(), class_=word.lastgroup)]
        end = word.end()
    return join(*parts, text[end:])
