"""How many tiles the host carries: a line over the charts while a run climbs, and the whole board at its end."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from vmlab.tui.widgets.large_text import COLUMNS, ROWS, large
from vmlab.tui.widgets.painted import Line, Painted, Piece

if TYPE_CHECKING:
    from vmlab.report.run.tiles_board import Board, BoardRow

_SQUARES = {True: ("■", "#"), False: ("□", "-"), None: ("·", ".")}
_BLOCKS = {True: ("██████",) * ROWS, False: ("┌────┐", "│    │", "└────┘"), None: ("      ", "  ··  ", "      ")}
_TONES = {True: "good", False: "quiet", None: "quiet"}
_LARGE_WIDTH = 84
"""Columns that a row of the board takes in large letters."""


class TilesAnswer(Painted):
    """The question, and the board as far as it is known; in one line where there is room for one."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._question = ""
        self._board: Board | None = None

    def show(self, question: str, board: Board | None) -> None:
        """Draw `question`, and `board` below or behind it."""
        if (question, board) != (self._question, self._board):
            self._question, self._board = question, board
            self.repaint()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The line, or the board with large letters where they fit."""
        question = self._question.upper()
        if height < 2 or self._board is None:
            return [list(self._line(question, width))]
        return list(self._whole(question, self._board, width, height))

    def _line(self, question: str, width: int) -> Iterator[Piece]:
        rows = self._board.rows if self._board else ()
        pieces = [[(f"  {row.label} ", "plain"), *self._squares(row), (f" {row.carried}", "title")] for row in rows]
        room = width - len(question) - sum(len(text) for piece in pieces for text, _ in piece)
        if room >= 0 or not rows:
            yield question[:width], "title"
        else:
            yield "TILES CARRIED:", "title"
        for piece in pieces:
            yield from piece

    def _squares(self, row: BoardRow) -> Iterator[Piece]:
        for square in row.squares:
            yield _SQUARES[square][self.glyphs.plain], _TONES[square]

    def _whole(self, question: str, board: Board, width: int, height: int) -> Iterator[Line]:
        wide = max((len(row.label) for row in board.rows), default=0)
        tall = len(board.rows) * (ROWS + 2) + ROWS + 4 <= height and width >= _LARGE_WIDTH and not self.glyphs.plain
        yield []
        if tall and len(question) * COLUMNS <= width - 2:
            yield from ([(f" {line}", "title")] for line in large(question))
        else:
            yield [(f" {question}", "title")]
        for row in board.rows:
            yield []
            yield from self._large_row(row, wide) if tall else self._row(row, wide)
        yield []
        yield from ([(f" {line}", "quiet")] for line in textwrap.wrap(" · ".join(board.notes), max(20, width - 2)))

    def _row(self, row: BoardRow, wide: int) -> Iterator[Line]:
        squares = [(f"{text} ", tone) for text, tone in self._squares(row)]
        said = [(row.stopped, "bad" if row.share else "quiet"), (f"  {row.share}", "title")]
        yield [(f" {row.label:<{wide}}  ", "plain"), *squares, (f" {row.carried}   ", "title"), *said]

    def _large_row(self, row: BoardRow, wide: int) -> Iterator[Line]:
        count = large(row.carried)
        said = ("", row.stopped, "")
        share = large(row.share) if row.share else [""] * ROWS
        for line in range(ROWS):
            yield [
                (f" {row.label if line == 1 else '':<{wide}}  ", "title"),
                *((f"{_BLOCKS[square][line]} ", _TONES[square]) for square in row.squares),
                (f"  {count[line]}   ", "title"),
                (f"{said[line]:<{len(row.stopped)}}  ", "bad" if row.share else "quiet"),
                (share[line], "bad"),
            ]
