"""What a room full of people wants to know, in letters that are read from the last row: for projectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vmlab.model.run import RUNNING, AxisValue
from vmlab.tui.state.gauges import Gauge
from vmlab.tui.state.views import NO_RUN, Axes, CellView, RunView
from vmlab.tui.widgets.charts.axis_scale import clock
from vmlab.tui.widgets.glyphs import tone_of
from vmlab.tui.widgets.painted import Line, Piece, Shown

if TYPE_CHECKING:
    from vmlab.report.run.tiles_board import Board

_GLYPHS = {
    "A": "010 101 111 101 101",
    "B": "110 101 110 101 110",
    "C": "011 100 100 100 011",
    "D": "110 101 101 101 110",
    "E": "111 100 110 100 111",
    "F": "111 100 110 100 100",
    "G": "011 100 101 101 011",
    "H": "101 101 111 101 101",
    "I": "111 010 010 010 111",
    "J": "001 001 001 101 010",
    "K": "101 101 110 101 101",
    "L": "100 100 100 100 111",
    "M": "101 111 111 101 101",
    "N": "110 101 101 101 101",
    "O": "010 101 101 101 010",
    "P": "110 101 110 100 100",
    "Q": "010 101 101 110 011",
    "R": "110 101 110 101 101",
    "S": "011 100 010 001 110",
    "T": "111 010 010 010 010",
    "U": "101 101 101 101 111",
    "V": "101 101 101 101 010",
    "W": "101 101 111 111 101",
    "X": "101 101 010 101 101",
    "Y": "101 101 010 010 010",
    "Z": "111 001 010 100 111",
    "0": "111 101 101 101 111",
    "1": "010 110 010 010 111",
    "2": "110 001 010 100 111",
    "3": "110 001 010 001 110",
    "4": "101 101 111 001 001",
    "5": "111 100 110 001 110",
    "6": "011 100 111 101 111",
    "7": "111 001 010 010 010",
    "8": "111 101 111 101 111",
    "9": "111 101 111 001 110",
    "/": "001 001 010 100 100",
    ":": "000 010 000 010 000",
    "-": "000 000 111 000 000",
    ".": "000 000 000 000 010",
    "?": "110 001 010 000 010",
    "+": "000 010 111 010 000",
    "%": "101 001 010 100 101",
    " ": "000 000 000 000 000",
}
_HALVES = {("0", "0"): " ", ("1", "0"): "▀", ("0", "1"): "▄", ("1", "1"): "█"}
ROWS = 3
LARGER_ROWS = 5
COLUMNS = 4
"""Columns of a letter, with the gap behind it."""


def large(text: str, *, twice: bool = False) -> list[str]:
    """Three rows of characters, or `LARGER_ROWS` of letters twice as wide; what has no letter here is a space."""
    points = [_GLYPHS.get(letter, _GLYPHS[" "]).split() for letter in text.upper()]
    if twice:
        return [
            "  ".join("".join("██" if point == "1" else "  " for point in one[row]) for one in points)
            for row in range(LARGER_ROWS)
        ]
    rows = []
    for row in range(ROWS):
        pairs = ((one[2 * row], one[2 * row + 1] if 2 * row + 1 < len(one) else "000") for one in points)
        rows.append(" ".join("".join(_HALVES[pair] for pair in zip(*both, strict=True)) for both in pairs))
    return rows


_GAP = 4
_BAR = 10
"""Columns of a gauge."""


class _Word(NamedTuple):
    """A large text under a caption."""

    caption: str
    text: str
    tone: str

    @property
    def width(self) -> int:
        """Columns that it takes, without the gap behind it."""
        return max(len(self.caption), COLUMNS * len(self.text))


class LargeWords(NamedTuple):
    """`run` as at `now`, in monotonic seconds, with `gauges`; when it is over, what its `board` answers."""

    run: RunView = NO_RUN
    now: float = 0.0
    board: Board | None = None
    gauges: Sequence[Gauge] = ()


class LargeStrip(Shown[LargeWords]):
    """Tiles, cache mode, disk and CPUs, the phase with its time, what comes next; nothing while there is no run."""

    shown = LargeWords()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """A line of captions, and the rows of the large letters."""
        words: list[_Word] = []
        for word in self._words():
            if sum(one.width + _GAP for one in words) + word.width <= width:
                words.append(word)
        yield [(f"{word.caption:<{word.width + _GAP}}", "quiet") for word in words]
        drawn = [large(word.text) for word in words]
        for row in range(len(drawn[0]) if drawn else 0):
            line: list[Piece] = [
                (f"{letters[row]:<{word.width + _GAP}}", word.tone) for word, letters in zip(words, drawn, strict=True)
            ]
            yield line

    def _words(self) -> Iterator[_Word]:
        run, cell = self.shown.run, self.shown.run.cell
        if run.outcome != RUNNING and self.shown.board is not None and self.shown.board.rows:
            for row in self.shown.board.rows:
                yield _Word(row.label, f"{row.carried} {'tile' if row.carried == '1' else 'tiles'}", "accent")
            return
        if run.outcome != RUNNING:
            yield _Word("the run has", run.outcome, tone_of(run.outcome))
            return
        if cell is None:
            return
        tiles = cell.axis("tiles")
        if tiles is None:
            yield _Word("cell", f"{cell.number}/{max(run.cells_planned, cell.number)}", "plain")
        else:
            yield _Word("tiles", str(tiles), "plain")
        name, value = _told(cell)
        now = cell.now.get(name)
        yield _Word(name, value, "accent") if now is None else _Word(f"now {name}", now, "warning")
        for gauge in self.shown.gauges:
            bar = gauge.bar(_BAR, plain=self.glyphs.plain)
            yield _Word(f"{gauge.name} {bar}", f"{gauge.percent:.0f}", gauge.tone)
        if cell.phase:
            yield _Word(cell.phase, clock(self.shown.now - cell.phase_began), "plain")
        if run.coming is not None:
            name, value = _coming(cell, dict(run.coming))
            yield _Word(f"then {name}", value, "warning" if run.next_axes is not None else "quiet")


def _told(cell: CellView) -> tuple[str, str]:
    """The axis that is shown, with its value: the cache mode where the cell has one."""
    cache = cell.axis("cache")
    return ("cache", str(cache)) if cache is not None else _told_of(cell.axes)


def _coming(cell: CellView, axes: Mapping[str, AxisValue]) -> tuple[str, str]:
    """What is shown of the next cell: the axis that is shown of this one, unless only others change."""
    changed = {name: value for name, value in axes.items() if cell.axis(name) != value}
    return _told_of(tuple((changed or axes).items()))


def _told_of(axes: Axes) -> tuple[str, str]:
    known = dict(axes)
    name = "cache" if "cache" in known else next(iter(reversed(known)), "")
    return name, str(known.get(name, ""))
