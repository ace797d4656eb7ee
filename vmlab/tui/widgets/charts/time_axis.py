"""The time axis below charts: how long ago, and what began when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vmlab.tui.state.views import Moment
from vmlab.tui.widgets.painted import Piece

_LEAST_GAP = 2


def columns_of(moments: Iterable[Moment], newest: float, seconds_a_column: float, width: int) -> dict[int, Moment]:
    """The column of each moment on a chart whose last column ends at `newest`; the later of two in one column.

    A phase is left out where its word does not fit before the next mark: many short ones would hide the chart.
    """
    found: dict[int, Moment] = {}
    for moment in moments:
        column = width - 1 - int((newest - moment.mono) / seconds_a_column)
        if 0 <= column < width and moment.mono <= newest:
            found[column] = moment
    places = sorted(found)
    ends = dict(zip(places, [*places[1:], width], strict=False))
    return {
        column: moment
        for column, moment in found.items()
        if moment.tone != "quiet" or len(moment.word) + _LEAST_GAP <= ends[column] - column
    }


def axis_line(marks: dict[int, Moment], seconds: float, width: int, sign: str) -> list[Piece]:
    """One line of `width` columns for charts over `seconds`: its ends, and each mark with its word where that fits."""
    texts: list[str] = [" "] * width
    tones: list[str] = ["quiet"] * width
    begin, end = f"-{seconds:.0f} s", "now"
    ends = sorted(marks)
    for place, column in enumerate(ends):
        moment = marks[column]
        room = (ends[place + 1] if place + 1 < len(ends) else width) - column
        word = moment.word if len(moment.word) + _LEAST_GAP <= room else ""
        _put(texts, tones, column, sign + word, moment.tone)
    if not "".join(texts[: len(begin) + 1]).strip():
        _put(texts, tones, 0, begin, "quiet")
    if not "".join(texts[width - len(end) - 1 :]).strip():
        _put(texts, tones, width - len(end), end, "quiet")
    return _pieces(texts, tones)


def _put(texts: list[str], tones: list[str], column: int, text: str, tone: str) -> None:
    for place, character in enumerate(text, start=column):
        if place < len(texts):
            texts[place], tones[place] = character, tone


def _pieces(texts: Sequence[str], tones: Sequence[str]) -> list[Piece]:
    pieces: list[Piece] = []
    for text, tone in zip(texts, tones, strict=True):
        if pieces and pieces[-1][1] == tone:
            pieces[-1] = (pieces[-1][0] + text, tone)
        else:
            pieces.append((text, tone))
    return pieces
