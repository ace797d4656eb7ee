"""What a room full of people wants to know, in letters that are read from the last row: for projectors.

Letters are three by five points: two points a character, three rows high, or larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vmlab.model.run import RUNNING, AxisValue
from vmlab.system.text_width import wrapped
from vmlab.tui.state.history import Gauge
from vmlab.tui.state.views import NO_RUN, Axes, CellView, RunView
from vmlab.tui.widgets.charts.axis_scale import clock
from vmlab.tui.widgets.glyphs import tone_of
from vmlab.tui.widgets.painted import Line, Picture, Piece, Shown

if TYPE_CHECKING:
    from vmlab.report.run.tiles_board import Board

_LETTERS = (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    ".#. ##. .## ##. ### ### .## #.# ### ..# #.# #.. #.# ##. .#. ##. .#. ##. .## ### #.# #.# #.# #.# #.# ###",
    "#.# #.# #.. #.# #.. #.. #.. #.# .#. ..# #.# #.. ### #.# #.# #.# #.# #.# #.. .#. #.# #.# #.# #.# #.# ..#",
    "### ##. #.. #.# ##. ##. #.# ### .#. ..# ##. #.. ### #.# #.# ##. #.# ##. .#. .#. #.# #.# ### .#. .#. .#.",
    "#.# #.# #.. #.# #.. #.. #.# #.# .#. #.# #.# #.. #.# #.# #.# #.. ##. #.# ..# .#. #.# #.# ### #.# .#. #..",
    "#.# ##. .## ##. ### #.. .## #.# ### .#. #.# ### #.# #.# .#. #.. .## #.# ##. .#. ### .#. #.# #.# .#. ###",
)
_SIGNS = (
    "0123456789/:-.?+%,;' ",
    "### .#. ##. ##. #.# ### .## ### ### ### ..# ... ... ... ##. ... #.# ... ... .#. ...",
    "#.# ##. ..# ..# #.# #.. #.. ..# #.# #.# ..# .#. ... ... ..# .#. ..# ... .#. .#. ...",
    "#.# .#. .#. .#. ### ##. ### .#. ### ### .#. ... ### ... .#. ### .#. ... ... ... ...",
    "#.# .#. #.. ..# ..# ..# #.# .#. #.# ..# #.. .#. ... ... ... .#. #.. .#. .#. ... ...",
    "### ### ### ##. ..# ##. ### .#. ### ##. #.. ... ... .#. .#. ... #.# #.. #.. ... ...",
)
_GLYPHS = {
    letter: [row.split()[place] for row in rows]
    for letters, *rows in (_LETTERS, _SIGNS)
    for place, letter in enumerate(letters)
}
_HALVES = {"..": " ", "#.": "▀", ".#": "▄", "##": "█"}
ROWS = 3
LARGER_ROWS = 5
COLUMNS = 4
"""Columns of a letter, with the gap behind it."""


def large(text: str, *, twice: bool = False) -> list[str]:
    """Three rows of characters, or `LARGER_ROWS` of letters twice as wide; what has no letter here is a space."""
    points = [_GLYPHS.get(letter, _GLYPHS[" "]) for letter in text.upper()]
    if twice:
        return [
            "  ".join(one[row].replace("#", "██").replace(".", "  ") for one in points) for row in range(LARGER_ROWS)
        ]
    rows = []
    for row in range(0, 2 * ROWS, 2):
        # The sixth row of points is empty.
        letters = ([*one, "..."][row : row + 2] for one in points)
        halves = ("".join(_HALVES[upper + lower] for upper, lower in zip(*both, strict=True)) for both in letters)
        rows.append(" ".join(halves))
    return rows


def large_lines(text: str, width: int, most: int) -> list[str]:
    """`text` in at most `most` lines of letters on `width` columns, three rows each; [] where it does not fit so."""
    if any(letter not in _GLYPHS for letter in text.upper()):
        return []
    lines = wrapped(text, max(1, (width + 1) // COLUMNS))
    return [row for line in lines for row in large(line)] if len(lines) <= most else []


_GAP = 4
_BAR = 10
"""Columns of a gauge."""


class Word(NamedTuple):
    """A large text under a caption, or a `small` one."""

    caption: str
    text: str
    tone: str
    small: bool = False

    @property
    def width(self) -> int:
        """Columns that it takes, without the gap behind it."""
        return max(len(self.caption), len(self.text) if self.small else COLUMNS * len(self.text))

    @property
    def rows(self) -> list[str]:
        """Its text."""
        return ["", self.text, ""] if self.small else large(self.text)


class LargeWords(NamedTuple):
    """`run` as at `now`, in monotonic seconds, with `gauges`; when it is over, what its `board` answers."""

    run: RunView = NO_RUN
    now: float = 0.0
    board: Board | None = None
    gauges: Sequence[Gauge] = ()


class LargeStrip(Shown[Picture]):
    """Words in large letters beside each other, as many as have room."""

    def words(self, width: int) -> Iterator[Word]:
        """All of them, on a strip of so many columns."""
        raise NotImplementedError

    @staticmethod
    def room(words: Sequence[Word]) -> int:
        """The columns that `words` take."""
        return sum(one.width + _GAP for one in words) - _GAP

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """A line of captions, and the rows of the large letters."""
        words: list[Word] = []
        for word in self.words(width):
            if self.room([*words, word]) <= width:
                words.append(word)
        yield [(f"{word.caption:<{word.width + _GAP}}", "quiet") for word in words]
        drawn = [word.rows for word in words]
        for row in range(len(drawn[0]) if drawn else 0):
            line: list[Piece] = [
                (f"{letters[row]:<{word.width + _GAP}}", word.tone) for word, letters in zip(words, drawn, strict=True)
            ]
            yield line


class RunStrip(LargeStrip[LargeWords]):
    """Tiles, cache mode, disk and CPUs, the phase with its time, what comes next; nothing while there is no run."""

    shown = LargeWords()

    def words(self, width: int) -> Iterator[Word]:
        """Those of the run; when it is over, those of its board."""
        run, cell = self.shown.run, self.shown.run.cell
        if run.outcome != RUNNING and self.shown.board is not None and self.shown.board.rows:
            for row in self.shown.board.rows:
                yield Word(row.label, f"{row.carried} {'tile' if row.carried == '1' else 'tiles'}", "accent")
            return
        if run.outcome != RUNNING:
            yield Word("the run has", run.outcome, tone_of(run.outcome))
            return
        if cell is None:
            return
        tiles = cell.axis("tiles")
        if tiles is None:
            yield Word("cell", f"{cell.number}/{max(run.cells_planned, cell.number)}", "plain")
        else:
            yield Word("tiles", str(tiles), "plain")
        name, value = _told(cell)
        now = cell.now.get(name)
        yield Word(name, value, "accent") if now is None else Word(f"now {name}", now, "warning")
        for gauge in self.shown.gauges:
            bar = gauge.bar(_BAR, plain=self.glyphs.plain)
            yield Word(f"{gauge.name} {bar}", f"{gauge.percent:.0f}%", gauge.tone)
        if cell.phase:
            yield Word(cell.phase, clock(self.shown.now - cell.phase_began), "plain")
        if run.coming is not None:
            name, value = _coming(cell, dict(run.coming))
            yield Word(f"then {name}", value, "warning" if run.next_axes is not None else "quiet")


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
