"""Bars of a comparison: each figure on every side, with the interval of its mean, under one sentence on all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vmlab.system.text_width import exactly, first_columns, left, width_of, wrapped
from vmlab.tui.state.bars import Bar, BarRow
from vmlab.tui.widgets.painted import Line, Painted, Piece
from vmlab.tui.widgets.side_table import TONES
from vmlab.tui.widgets.tables.result_board import struck_pieces

_LEAST_NAME = 20
_SIDE = 20
_FIGURE = 15
_DIFFERENCE = 26
_LEAST_BAR = 12


class SideBars(Painted):
    """A sentence, the sides with their colours, and the bars."""

    can_focus = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._labels: Sequence[str] = ()
        self._rows: Sequence[BarRow] = ()
        self._sentence = ""

    def show(self, labels: Sequence[str], rows: Sequence[BarRow], sentence: str) -> None:
        """Draw `rows` of sides with these labels, the baseline first."""
        self._labels, self._rows, self._sentence = labels, rows, sentence
        self.repaint()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The sentence, then a line for each side of each figure."""
        for text in wrapped(self._sentence, max(20, width - 1)):
            yield [(text, "title")]
        airy = len(self._rows) * (len(self._labels) + 1) + 2 <= height
        for row in self._rows:
            if airy:
                yield []
            if not row.bars:
                yield [(row.label, "title")]
            yield from self._figure(row, width)
        yield self._key()

    def _key(self) -> list[Piece]:
        """What the shades of a bar mean."""
        solid, shade = self._signs
        several = any(bar.half for row in self._rows for bar in row.bars)
        mean = f"{self._mark} mean, in {shade} its 95 % interval" if several else f"{solid} one reading, no interval"
        return [(f"{mean}; a difference has a colour only where it is proven", "quiet")]

    @property
    def _mark(self) -> str:
        return "|" if self.glyphs.plain else "┃"

    @property
    def _signs(self) -> tuple[str, str]:
        return ("#", "=") if self.glyphs.plain else ("█", "▒")

    def _figure(self, row: BarRow, width: int) -> Iterator[list[Piece]]:
        name = max(_LEAST_NAME, min(width // 5, max(width_of(one.label) for one in self._rows)))
        longest = max(len(bar.difference) for one in self._rows for bar in one.bars)
        difference = max(_DIFFERENCE, min(width // 4, longest))
        room = max(_LEAST_BAR, width - name - _SIDE - _FIGURE - difference - 3)
        for place, bar in enumerate(row.bars):
            tone = TONES[place % len(TONES)]
            yield [
                (f"{exactly('' if place else row.label, name)} ", "plain"),
                (f"{exactly(self._labels[place], _SIDE)} ", tone),
                *self._bar(bar, row.top, room, tone if bar.counts else "rest"),
                *struck_pieces(f"{bar.text:>{_FIGURE}} ", "plain"),
                (bar.difference if place else "baseline", bar.tone),
            ]

    def _bar(self, bar: Bar, top: float, room: int, tone: str) -> list[Piece]:
        solid, shade = self._signs
        if bar.mean is None or top <= 0:
            return [(" " * room, "plain")]
        half = bar.half or 0.0
        low, high = (round(max(0.0, end) / top * room) for end in (bar.mean - half, bar.mean + half))
        high = max(high, low + (half > 0))
        text = solid * low + shade * (high - low)
        if half:
            place = min(max(low, round(bar.mean / top * room)), high - 1)
            text = text[:place] + self._mark + text[place + 1 :]
        return [(left(first_columns(text, room), room), tone)]
