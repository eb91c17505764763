"""A document that is one table, of which runs of a tool put in row after row."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from components.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Table:
    """The form of a document.

    Attributes:
      title: what stands above the table.
      columns: their names.
      keys: how many of the first columns tell rows apart.
    """

    title: str
    columns: Sequence[str]
    keys: int

    def require_writable(self, file: Path) -> None:
        """Raise UserError where no document can be, before the work for its rows is done."""
        if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
            raise UserError(f"`--markdown` is a file that can be written, in a folder that exists. Received {file}.")

    def put(self, file: Path, cells: Sequence[str]) -> None:
        """Put a row in, in the place of the one with its keys; the document is made where there is none."""
        rows = {self._key(row): row for row in self._rows(file)}
        row = f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
        rows[self._key(row)] = row
        rule = "|" + "---|" * len(self.columns)
        file.write_text("\n".join([self.title, self._header, rule, *(rows[key] for key in sorted(rows))]) + "\n")

    @property
    def _header(self) -> str:
        return f"| {' | '.join(self.columns)} |"

    def _rows(self, file: Path) -> list[str]:
        if not file.exists():
            return []
        found = [line for line in file.read_text().splitlines() if line.startswith("| ")]
        return [line for line in found if line != self._header]

    def _key(self, row: str) -> tuple[str, ...]:
        return tuple(cell.strip() for cell in row.split("|")[1 : 1 + self.keys])
