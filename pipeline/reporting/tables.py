"""Tables: of evaluation.json, whatever its structure, and of anything else with rows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.reporting.markup import Html, join, tag

_FIRST = ("metric", "step", "value", "spread", "real", "real_against_real", "better")

Row = Mapping[str, Any]


def rows(value: Any) -> list[Row]:
    """Return the rows that a JSON value tells, each flat: {column: scalar or list of scalars}.

    A mapping with a number under "value" is one row, and the keys that lead to it are its columns "metric" and "entry",
    or "step" where they are numbers; what stands beside such mappings belongs to each of them. Without any, each
    mapping of a list is a row.
    """
    return list(_rows(value, {}))


def _rows(value: Any, around: Row) -> Iterator[Row]:
    if isinstance(value, list):
        for item in value:
            yield from _rows(item, around)
    elif isinstance(value, dict):
        inner = {} if _is_row(value) else {key: item for key, item in value.items() if _holds_rows(item)}
        own = _flat({key: item for key, item in value.items() if key not in inner})
        if "metric" in around and "metric" in own:  # two scores of one metric are told apart by their keys alone
            own["settings"] = own.pop("metric")
        beside = {**around, **own}
        for key, item in inner.items():
            yield from _rows(item, {**beside, **_column(key, item, beside)})
        if not inner and beside:
            yield beside
    elif value is not None:
        yield {**around, "value": value}


def _is_row(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("value"), (int, float))


def _holds_rows(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_row(value) or any(_holds_rows(item) for item in value.values())
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _column(key: str, item: Any, around: Row) -> Row:
    """Return what the key of rows says of them; that of a list says nothing."""
    if key.isdecimal():
        return {"step": int(key)}
    if isinstance(item, list):
        return {}
    return {"metric": key} if _is_row(item) else {"entry": f"{around['entry']}/{key}" if "entry" in around else key}


def _flat(value: Mapping[str, Any], lead: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = key if key == "certificate" or not lead else f"{lead}.{key}"
        if isinstance(item, dict):
            found |= _flat(item, "" if key == "certificate" else name)
        else:
            found[name] = item
    return found


def of_evaluation(value: Any) -> Html | None:
    """Return the table of an evaluation, and below it what is the same for all its rows; None where there are none."""
    found = rows(value)
    if not found:
        return None
    columns = list(dict.fromkeys(name for row in found for name in row))
    same = [name for name in columns if name not in _FIRST and len({repr(row.get(name)) for row in found}) == 1]
    same = same if len(found) > 1 else [name for name in columns if name not in _FIRST]
    shown = [name for name in _FIRST if name in columns]
    shown += [name for name in columns if name not in (*_FIRST, *same)]
    cells = [[row.get(name) for name in shown] for row in found]
    certificate = pairs([(name, found[0].get(name)) for name in same])
    return join(
        table([name.replace("_", " ") for name in shown], cells, "Evaluation") if shown else None,
        tag("h3", "The same for every row") if shown and same else None,
        certificate if same else None,
    )


def table(heads: Sequence[Any], cells: Sequence[Sequence[Any]], caption: str) -> Html:
    """Return a table whose first column names its rows; a keyboard can scroll it sideways."""
    head = tag("tr", *(tag("th", one, scope="col") for one in heads))
    body = [
        tag("tr", tag("th", shown(row[0]), scope="row"), *(tag("td", shown(one), class_=_kind(one)) for one in row[1:]))
        for row in cells
    ]
    whole = tag("table", tag("caption", caption, class_="unseen"), tag("thead", head), tag("tbody", *body))
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def pairs(items: Sequence[tuple[str, Any]]) -> Html:
    """Return names and their values."""
    return tag("dl", *(tag("div", tag("dt", name.replace("_", " ")), tag("dd", shown(value))) for name, value in items))


def shown(value: Any) -> Any:
    """Return a value as a person reads it; markup as it is."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}" if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(shown(one)) for one in value)
    return value if isinstance(value, Html) else str(value)


def _kind(value: Any) -> str | None:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else None
