"""A user's mistake, told in a sentence a newcomer understands, and all of them at once."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from components.errors import UserError


@dataclass(frozen=True)
class Place:
    """Where a statement stands."""

    file: str  # as shown to the user
    line: int  # 1 is the first; 0: the file as a whole
    text: str = ""  # the line itself

    def __str__(self) -> str:
        """Return file:line, which editors and terminals make clickable."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Fault:
    """One mistake: the rule and what was received, then the remedy."""

    place: Place
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return the message as the user reads it."""
        lines = [f"{self.place}: {self.message}"]
        if self.place.text.strip():
            lines.append(f"    {self.place.text.strip()}")
        if self.remedy:
            lines.append(f"  {self.remedy}")
        return "\n".join(lines)


def refuse(faults: Sequence[Fault]) -> None:
    """Raise one UserError that tells every fault; does nothing where there is none.

    Args:
      faults: in any order; told in the order of file and line, each once.

    Raises:
      UserError: there is at least one fault.
    """
    if faults:
        told = _merged(sorted(faults, key=lambda fault: (fault.place.file, fault.place.line)))
        head = f"The configuration has {len(told)} faults.\n" if len(told) > 1 else ""
        raise_user_error(head + "\n".join(told))


def _merged(faults: Iterable[Fault]) -> list[str]:
    """Tell each fault; the same one on several lines of a file once, with the other lines named."""
    groups: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((fault.place.file, fault.message, fault.remedy), []).append(fault)
    told = []
    for first, *others in groups.values():
        lines = dict.fromkeys(str(other.place.line) for other in others if other.place.line != first.place.line)
        told.append("\n".join([str(first), *([f"  The same on line {', '.join(lines)}."] if lines else [])]))
    return told


def raise_user_error(message: str, cause: BaseException | None = None) -> NoReturn:
    """Raise UserError."""
    raise UserError(message) from cause


def nearest(name: str, candidates: Iterable[str], count: int = 3, likeness: float = 0.6) -> list[str]:
    """Return at most `count` candidates most like `name`, best first; none below a likeness in [0, 1]."""
    by_key: dict[str, str] = {}
    for candidate in candidates:
        by_key.setdefault(candidate.lower(), candidate)
    found = difflib.get_close_matches(name.lower(), by_key, n=count, cutoff=likeness)
    if not found and len(name) > 2 and likeness <= 0.6:
        found = sorted(key for key in by_key if name.lower() in key)[:count]
    return [by_key[key] for key in found]


def did_you_mean(name: str, candidates: Iterable[str], mark: str = "", *, is_short_listed: bool = True) -> str:
    """Return "Did you mean `x`?", or the whole choice where it is short, or nothing.

    Args:
      name: what was received.
      candidates: what would have been right.
      mark: written before each candidate, such as % for macros.
      is_short_listed: whether a short choice is told in whole where nothing in it is near.
    """
    choice = sorted(set(candidates) - {name})
    found = nearest(name, choice)
    if found:
        return f"Did you mean {listed(found, mark)}?"
    if is_short_listed and 0 < len(choice) <= 12:
        return f"There is {listed(choice, mark, 'and')}."
    return ""


def listed(names: Iterable[str], mark: str = "", last: str = "or") -> str:
    """Return "`a`, `b` or `c`"."""
    quoted = [f"`{mark}{name}`" for name in names]
    return f" {last} ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
