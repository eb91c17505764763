"""Lists what can be bound where: `python -m tools.list_components [NAME]`.

Without NAME: every parameter that takes a component and, a line each, the components that fit it. With NAME, a
component (`hinge`, `adversarial.hinge`), a module, an area, or a parameter (`gan.alternating.loss`): all about it.

Exit status: 0; 2 where nothing has that name.
"""

import difflib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline import quiet
from pipeline.configs.locate import shipped_root

if TYPE_CHECKING:
    from tools.catalogue import Fit, Part, Slot

_MOST_SIGNATURE = 60


def main(argv: Sequence[str]) -> int:
    """Print what `argv` asks for; return the exit status."""
    names = argv[1:]
    if any(name in ("-h", "--help") for name in names):
        print(__doc__)
        return 0
    if len(names) > 1 or any(name.startswith("-") for name in names):
        print(f"Error: At most one NAME is taken. Received {' '.join(names)}.", file=sys.stderr)
        return 2
    quiet.start()
    from tools import catalogue

    known = catalogue.parts()
    found = catalogue.slots(known)
    lines = list(_about(names[0].removeprefix("@"), known, found) if names else _all(found))
    if not lines:
        print(_miss(names[0], known, found), file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


def _all(slots: "Sequence[Slot]") -> Iterator[str]:
    """Yield everything, by the area of what is bound; parameters that take the same stand together."""
    together: dict[tuple, list] = {}
    for slot in slots:
        for area in dict.fromkeys(fit.part.area for fit in slot.fits):
            fits = [fit for fit in slot.fits if fit.part.area == area]
            together.setdefault((area, slot.takes, tuple(fit.part.name for fit in fits)), []).append((slot, fits))
    text = "".join(path.read_text() for path in shipped_root().rglob("*.gin"))
    for same in together.values():  # the best known comes first
        same.sort(key=lambda pair: -text.count(f"{pair[0].name} = "))
    for area in dict.fromkeys(key[0] for key in together):
        yield area
        for (_, takes, _), same in ((key, value) for key, value in together.items() if key[0] == area):
            others = ", ".join(slot.name for slot, _ in same[1:])
            yield f"  {same[0][0].name}: {takes}" + (f"; the same in {others}" if others else "")
            yield from _table(*same[0])


def _table(slot: "Slot", fits: "Sequence[Fit]") -> Iterator[str]:
    """Yield a line for each component: gin line, signature, paper, what it is."""
    rows = [(f"{slot.name} = {fit.value}", _signature(fit.part), *_doc(fit.part)) for fit in fits]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for gin_line, signature, paper, summary in rows:
        yield f"    {gin_line:<{widths[0]}}  {signature:<{widths[1]}}  {paper:<{widths[2]}}  {summary}"


def _about(name: str, known: "Mapping[str, Part]", slots: "Sequence[Slot]") -> Iterator[str]:
    """Yield all about a parameter, or about the components of a name, a module or an area."""
    for slot in slots:
        if slot.name == name:
            yield f"{slot.name} takes {slot.takes}"
            yield from _table(slot, slot.fits)
            return
    for part in known.values():
        module, _, short = part.name.rpartition(".")
        if name in (part.name, short, module, part.area, f"{part.area}.{part.name}", part.target.__module__):
            yield from _whole(part, slots)


def _whole(part: "Part", slots: "Sequence[Slot]") -> Iterator[str]:
    from pipeline.configs.signatures import readable

    takes = [f"{name}: {readable(one.annotation)}{_default(one)}" for name, one in part.signature.parameters.items()]
    yield f"{part.name}({', '.join(takes)}) -> {readable(part.signature.result)}"
    yield ""
    yield from (f"  {line}".rstrip() for line in (inspect.getdoc(part.target) or "").splitlines())
    yield ""
    yield f"  {part.import_line}"
    fitting = [(slot, fit) for slot in slots for fit in slot.fits if fit.part is part]
    yield from (f"  {slot.name} = {fit.value}" for slot, fit in fitting)
    yield ""


def _signature(part: "Part") -> str:
    """Return the parameters with their defaults, without annotations."""
    shown = []
    for parameter in inspect.signature(part.target).parameters.values():
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else stars
        shown.append(f"{stars}{parameter.name}{_default(parameter)}")
    text = f"({', '.join(shown)})"
    return text if len(text) <= _MOST_SIGNATURE else text[: _MOST_SIGNATURE - 4] + "...)"


def _default(parameter: inspect.Parameter) -> str:
    return "" if parameter.default is parameter.empty else f"={parameter.default!r}"


def _doc(part: "Part") -> tuple[str, str]:
    """Return (the paper that a docstring refers to, its first line); a module's paper stands for all it holds."""
    text = inspect.getdoc(part.target) or ""
    module = inspect.getdoc(sys.modules[part.target.__module__]) or ""
    return _paper(text) or _paper(module), text.partition("\n")[0]


def _paper(text: str) -> str:
    flat = " ".join(text.partition("Reference")[2].split())
    found = re.match(r"[^:]*: ([^\[\]]*?\d{4}(?:, arXiv:[\d.]+\d)?)", flat)
    return found[1] if found else ""


def _miss(name: str, known: "Mapping[str, Part]", slots: "Sequence[Slot]") -> str:
    full = [*known, *(slot.name for slot in slots)]
    short = {one.rpartition(".")[2]: one for one in known}
    near = difflib.get_close_matches(name, full, n=3)
    near += [short[one] for one in difflib.get_close_matches(name.rpartition(".")[2], short, n=3)]
    hint = f"Did you mean {', '.join(dict.fromkeys(near))}?" if near else "Without NAME all are listed."
    return (
        f"Error: NAME must be a component, a module, an area, or a parameter that takes one. Received {name!r}. {hint}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv))
