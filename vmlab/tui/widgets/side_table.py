"""The table of the Compare screen: a column for each side, each in its own tone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from vmlab.report.writers.text import paragraph
from vmlab.system.text_width import ends_of, left, shortened, width_of, wrapped
from vmlab.tui.state.compared import ComparedSides, SideRow
from vmlab.tui.widgets.painted import Line, Piece, Shown, hint_lines, line_width
from vmlab.tui.widgets.tables.result_board import struck_pieces

TONES = ("one", "three", "two", "four")
"""Tones of the sides in order, in the table and in the chart."""
_BASE, _TITLE = " (base)", "title"
_FIGURE, _DIFFERENCE = 9, 11
"""Columns of a figure at least, and of a difference without its interval."""
_LEAST, _GAP = 16, 4
_LEAST_NAME = 18
_WIDEST = 40
"""Columns of a side at most: figures that belong together are read together."""


class SideTable(Shown[ComparedSides]):
    """Rows of figures with their difference to the baseline; sides without room stand below, and then the warnings."""

    can_focus = True

    shown = ComparedSides()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """Labels above the first figures, the rows, then the warnings.

        Sentences leave the last column to the scroll bar, which would cover it.
        """
        if not self.shown.labels:
            yield from hint_lines(self.shown.hint, width)
            return
        rows = self.shown.rows
        yield from ([(line, _TITLE)] for line in wrapped(self.shown.sentence, max(20, width - 1)))
        name = max(_LEAST_NAME, *(width_of(row.label) + 1 for row in rows if row.entries), 0)
        # A difference that is cut would read as another figure, and a name as long as that says enough.
        name = min(name, max(_LEAST_NAME, width - self._least_room()))
        bands = self._bands(width - name)
        for number, sides in enumerate(bands):
            widths = self._widths(width - name, sides)
            if len(bands) == 1 and 2 * (name + sum(widths)) + _GAP <= width:
                yield from self._in_two(name, sides, widths, width)
                break
            yield from ([("", "plain")] for _ in range(min(number, 1)))
            figures = next((place for place, row in enumerate(rows) if row.entries or row.tone == _TITLE), 0)
            for place, row in enumerate(rows):
                if place == figures:
                    yield self._heading(name, sides, widths)
                if row.entries:
                    yield self._row(row, name, sides, widths)
                elif number == 0 or row.tone == _TITLE:
                    yield from ([(line, row.tone)] for line in paragraph(row.label, width - 1, "  "))
        for warning in self.shown.warnings:
            marks = itertools.chain(["! "], itertools.repeat("  "))
            for mark, text in zip(marks, paragraph(warning, max(20, width - 3)), strict=False):
                yield [(mark, "warning"), (text, "warning")]

    def _in_two(self, name: int, sides: Sequence[int], widths: Sequence[int], width: int) -> Iterable[Line]:
        """The rows below each other as far as they are sentences, and those with figures in two columns."""
        rows = self.shown.rows
        for row in (row for row in rows if not row.entries and row.tone != _TITLE):
            yield from ([(line, row.tone)] for line in paragraph(row.label, width - 1, "  "))
        figures = [row for row in rows if row.entries or row.tone == _TITLE]
        titles = [place for place, row in enumerate(figures) if row.tone == _TITLE and not row.entries]
        middle = (len(figures) + 1) // 2
        # Between two groups where there are several.
        middle = min(titles[1:], key=lambda place: abs(place - middle), default=middle)
        half = name + sum(widths)
        columns = [
            [self._heading(name, sides, widths), *(self._row(row, name, sides, widths) for row in part)]
            for part in (figures[:middle], figures[middle:])
        ]
        for one, other in itertools.zip_longest(*columns, fillvalue=()):
            yield [*one, (" " * (half + _GAP - line_width(one)), "plain"), *other]

    def _row(self, row: SideRow, name: int, sides: Sequence[int], widths: Sequence[int]) -> list[Piece]:
        if not row.entries:
            return [(shortened(row.label, name + sum(widths)), row.tone)]
        return [(left(ends_of(row.label, name - 1), name), "plain"), *self._entries(row, sides, widths)]

    def _least_room(self) -> int:
        """The columns of the baseline and another side, with its differences whole."""
        differences = [width_of(entry.difference) for row in self.shown.rows for entry in row.entries]
        return self._base(_WIDEST, 2) + self._figure(_WIDEST) + max(differences, default=0) + 2

    def _bands(self, room: int) -> list[list[int]]:
        """The sides that stand beside each other, by their numbers: the baseline with as many others as there is room
        for, and the next ones below.
        """
        others = range(1, len(self.shown.labels))
        each = max(1, (room - self._base(room, 2)) // (self._figure(_WIDEST) + _DIFFERENCE))
        return [[0, *others[at : at + each]] for at in range(0, len(others), each)] or [[0]]

    def _widths(self, room: int, sides: Sequence[int]) -> list[int]:
        """The columns of each side."""
        base, others = self._base(room, len(sides)), len(sides) - 1
        return [base, *[min(_WIDEST, max(_LEAST, (room - base) // others))] * others] if others else [base]

    def _base(self, room: int, sides: int) -> int:
        """The columns of the baseline, which has no differences and takes no more than it needs."""
        needed = max(self._figure(_WIDEST) + 2, width_of(self.shown.labels[0]) + len(_BASE) + 2)
        return min(needed, _WIDEST, max(_LEAST, room // sides))

    def _figure(self, each: int) -> int:
        """The columns of a figure in a side of so many."""
        longest = max((len(entry.text) for row in self.shown.rows for entry in row.entries), default=0)
        return max(_FIGURE, min(longest, each - _DIFFERENCE))

    def _heading(self, name: int, sides: Sequence[int], widths: Sequence[int]) -> list[Piece]:
        line: list[Piece] = [(left("", name), "plain")]
        for place, each in zip(sides, widths, strict=True):
            label = self.shown.labels[place]
            role = "" if place else _BASE
            text = shortened(label, each - len(role) - 1)
            line.append((left(text + role, each), TONES[place % len(TONES)]))
        return line

    def _entries(self, row: SideRow, sides: Sequence[int], widths: Sequence[int]) -> Iterable[Piece]:
        for place, each in zip(sides, widths, strict=True):
            entry = row.entries[place]
            figure = self._figure(each if place else each + _DIFFERENCE - 2)
            room = max(0, each - figure - 1)
            yield from struck_pieces(f"{entry.text:>{figure}} ", "plain")
            told = entry.whole if len(entry.whole) < room else entry.difference
            yield (f"{told:<{room}}", entry.tone)
