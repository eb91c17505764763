"""HTML in which every text is escaped where it enters, unless it is markup already."""

import html
import json
import re
from collections.abc import Callable, Collection
from typing import Any

_TAG = re.compile(r"(<[^>]*>)")  # in an attribute no ">" stands: it is escaped
_NAME = re.compile(r"</?(\w+)")
_VOID = frozenset({"img", "input", "br", "hr", "meta", "link"})


class Html(str):
    """Text that is markup already."""


def tag(name: str, /, *inside: Any, **attributes: Any) -> Html:
    """Return an element.

    Args:
      name: of the element.
      *inside: `Html` passes as it is; None and False are left out; any other value is shown as text.
      **attributes: `class_`, `for_` and `aria_label` become class, for and aria-label; True is an attribute without a
        value; None and False leave it out.
    """
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(opening if name in _VOID else f"{opening}{join(*inside)}</{name}>")


def join(*parts: Any) -> Html:
    """Return parts one after the other, each escaped unless it is `Html`."""
    return Html("".join(_escaped(part) for part in parts if part is not None and part is not False))


def json_text(value: Any) -> Html:
    """Return JSON that may stand in a script element: no text in it can end the element.

    Raises:
      ValueError: a number that is not finite, which JSON does not have.
    """
    return Html(json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"))


def with_texts(markup: Html, change: Callable[[str], str], *, leaving: Collection[str]) -> Html:
    """Return markup with its texts changed, and its elements as they are.

    Args:
      markup: elements and texts.
      change: takes an escaped text and returns markup.
      leaving: names of elements whose texts stay as they are.
    """
    parts, depth = _TAG.split(markup), 0
    for index, part in enumerate(parts):
        name = _NAME.match(part)
        if not name:
            parts[index] = part if depth else change(part)
        elif name[1] in leaving:
            depth += -1 if part.startswith("</") else 1
    return Html("".join(parts))


def _escaped(part: Any) -> str:
    return part if isinstance(part, Html) else html.escape(str(part))


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'
