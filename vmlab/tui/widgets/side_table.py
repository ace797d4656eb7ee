"""The table of the Compare screen: a column for each side, each in its own tone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from vmlab.report.grid import paragraph
from vmlab.tui.state.compared import ComparedSides, TableRow
from vmlab.tui.widgets.painted import Line, Painted, Piece

TONES = ("one", "three", "two", "four")
"""Tones of the sides in order, in the table and in the chart."""
_WIDEST = 36
"""Columns of a side at most: figures that belong together are read together."""


class SideTable(Painted):
    """Rows of figures with their difference to the baseline; warnings stand below."""

    can_focus = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._labels: Sequence[str] = ()
        self._rows: Sequence[TableRow] = ()
        self._warnings: Sequence[str] = ()
        self._hint: Sequence[str] = ()

    def show(self, labels: Sequence[str], compared: ComparedSides, hint: Sequence[str] = ()) -> None:
        """Draw the comparison, or `hint` where there is none."""
        self._labels, self._hint = labels, hint
        self._rows, self._warnings = compared.rows, compared.warnings
        self.repaint()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """Labels on top, then the rows, then the warnings."""
        if not self._labels:
            yield from ([(text, "quiet")] for text in self._hint)
            return
        name = max(18, *(len(row.label) + 1 for row in self._rows if row.entries), 0)
        each = min(_WIDEST, max(16, (width - name) // len(self._labels)))
        yield self._heading(name, each)
        for row in self._rows:
            if row.entries:
                yield [(row.label.ljust(name), "plain"), *self._entries(row, each)]
            else:
                yield from ([(line, row.tone)] for line in paragraph(row.label, width, "  "))
        for warning in self._warnings:
            marks = itertools.chain(["! "], itertools.repeat("  "))
            for mark, text in zip(marks, paragraph(warning, max(20, width - 2)), strict=False):
                yield [(mark, "warning"), (text, "warning")]

    def _heading(self, name: int, each: int) -> list[Piece]:
        line: list[Piece] = [("".ljust(name), "plain")]
        for place, label in enumerate(self._labels):
            role = "" if place else " (base)"
            text = label if len(label) + len(role) < each else label[: each - len(role) - 2] + "…"
            line.append(((text + role).ljust(each), TONES[place % len(TONES)]))
        return line

    def _entries(self, row: TableRow, each: int) -> Iterable[Piece]:
        for entry in row.entries:
            yield (f"{entry.text:>9} ", "plain")
            room = max(0, each - 10)
            whole = f"{entry.difference} {entry.interval}".rstrip()
            yield (f"{whole if len(whole) < room else entry.difference:<{room}}", entry.tone)
