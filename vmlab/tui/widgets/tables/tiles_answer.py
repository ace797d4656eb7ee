"""How many tiles the host carries: a line over the charts while a run climbs, and the whole board at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vmlab.report.run.load_bars import ASCII, BLOCKS, factor_text, load_bar
from vmlab.report.run.tiles_board import QUESTION, Board, BoardRow, TargetBar
from vmlab.system.text_width import centred, left, width_of, wrapped
from vmlab.tui.widgets.large_strip import LARGER_ROWS, ROWS, large, large_lines
from vmlab.tui.widgets.painted import Line, Piece, Shown, line_width

_QUESTION = QUESTION.upper()
_SQUARES = {True: ("■", "#"), False: ("□", "-"), None: ("·", ".")}
_TONES = {True: "good", False: "quiet", None: "quiet"}
_SQUARE_COLUMNS = {ROWS: 6, LARGER_ROWS: 12}
"""Of a square in large letters of so many rows."""
_TWO_LINES = 20
"""Rows from which on the question may take two lines of large letters."""


class TilesAnswer(Shown[Board]):
    """The question, and the board as far as it is known; in one line where there is room for one."""

    shown = Board((), ())

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The line, or the board with large letters where they fit."""
        if height < 2:
            return [list(self._line(self.shown.rows, width))]
        return list(self._whole(self.shown, width, height))

    def _line(self, rows: Sequence[BoardRow], width: int) -> Iterator[Piece]:
        pieces = [[(f"  {row.label} ", "plain"), *self._squares(row), (f" {row.carried}", "title")] for row in rows]
        room = width - width_of(_QUESTION) - sum(map(line_width, pieces))
        if room >= 0 or not rows:
            yield _QUESTION[:width], "title"
        else:
            yield "TILES CARRIED:", "title"
        for piece in pieces:
            yield from piece

    def _squares(self, row: BoardRow) -> Iterator[Piece]:
        for square in row.squares:
            yield _SQUARES[square][self.glyphs.plain], _TONES[square]

    def _whole(self, board: Board, width: int, height: int) -> Iterator[Line]:
        wide = max((width_of(row.label) for row in board.rows), default=0)
        rows = self._letter_rows(board, wide, width, height)
        notes = wrapped(" · ".join(board.notes), max(20, width - 2))
        asked = (large_lines(_QUESTION, width - 2, 2 if height >= _TWO_LINES else 1) if rows else []) or [_QUESTION]
        # What is left over stands between the rows.
        spare = height - len(asked) - len(board.rows) * max(1, rows) - len(notes)
        gap: list[Line] = [[]] * (max(1, spare // (len(board.rows) + 2)) if rows else 1)
        yield from gap
        yield from ([(f" {line}", "title")] for line in asked)
        for row in board.rows:
            yield from gap
            yield from self._large_row(row, wide, rows) if rows else self._row(row, wide)
        yield from gap
        yield from ([(f" {line}", "quiet")] for line in notes)

    def _letter_rows(self, board: Board, wide: int, width: int, height: int) -> int:
        """How high the letters of the rows can be; 0 where there is no room for large ones."""
        for rows in () if self.glyphs.plain else (LARGER_ROWS, ROWS):
            high = len(board.rows) * (rows + 2) + ROWS + 4
            if high <= height and all(self._width(row, wide, rows) <= width for row in board.rows):
                return rows
        return 0

    def _width(self, row: BoardRow, wide: int, rows: int) -> int:
        return line_width(next(iter(self._large_row(row, wide, rows))))

    def _row(self, row: BoardRow, wide: int) -> Iterator[Line]:
        squares = [(f"{text} ", tone) for text, tone in self._squares(row)]
        said = [(row.stopped, "bad" if row.share else "quiet"), (f"  {row.share}", "title")]
        yield [(f" {left(row.label, wide)}  ", "plain"), *squares, (f" {row.carried}   ", "title"), *said]

    def _large_row(self, row: BoardRow, wide: int, rows: int) -> Iterator[Line]:
        twice = rows == LARGER_ROWS
        stopped = max(width_of(one.stopped) for one in self.shown.rows)
        count = large(row.carried, twice=twice)
        share = large(row.share.replace(" ", ""), twice=twice) if row.share else [""] * rows
        blocks = [(_block(square, _SQUARE_COLUMNS[rows], rows), _TONES[square]) for square in row.squares]
        for line in range(rows):
            said = line == rows // 2
            yield [
                (f" {left(row.label if said else '', wide)}  ", "title"),
                *((f"{block[line]} ", tone) for block, tone in blocks),
                (f"  {count[line]}   ", "title"),
                (f"{left(row.stopped if said else '', stopped)}  ", "bad" if row.share else "quiet"),
                (share[line], "bad"),
            ]


def _block(square: bool | None, columns: int, rows: int) -> list[str]:
    """A large square: filled, empty, or a dot for what is not known."""
    if square:
        return ["█" * columns] * rows
    if square is None:
        return [centred("··" if line == rows // 2 else "", columns) for line in range(rows)]
    return [f"┌{'─' * (columns - 2)}┐", *[f"│{' ' * (columns - 2)}│"] * (rows - 2), f"└{'─' * (columns - 2)}┘"]


_LEAST, _MOST = 10, 60


class TargetMeter(Shown[Sequence[TargetBar]]):
    """A line for each workload: how much of its limit the nearest target took, as a bar and as a factor."""

    shown: Sequence[TargetBar] = ()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """``mail p95 ██████┃███████████ 23.7 s  limit 10 s  2.4x  MISSED``."""
        name = max((width_of(bar.name) for bar in self.shown), default=0)
        value = max((len(bar.value) for bar in self.shown), default=0)
        limit = max((len(bar.limit) for bar in self.shown), default=0)
        factors = [factor_text(bar.load) for bar in self.shown]
        factor = max(map(len, factors), default=0)
        columns = max(_LEAST, min(_MOST, width - name - value - limit - factor - 22))
        for bar, times in zip(self.shown, factors, strict=True):
            drawn = load_bar(bar.load, columns, ASCII if self.glyphs.plain else BLOCKS, met=bar.met)
            tone = "good" if bar.met else "bad"
            yield [
                (f" {left(bar.name, name)} ", "plain"),
                (drawn.within, tone),
                (drawn.limit, "title"),
                (drawn.over, tone),
                (f" {bar.value:>{value}}  ", "title"),
                (f"limit {bar.limit:<{limit}}  ", "quiet"),
                (f"{times:>{factor}}  ", tone),
                ("met" if bar.met else "MISSED", tone),
            ]
