"""Numbers into characters: stacked areas from eighth blocks, lines from braille dots, both with plain fallbacks.

Everything here is pure. A row is a list of cells; a cell is a character with the index of the series that gives its
foreground and of the one that gives its background, None for the chart's own ground.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, groupby

Cell = tuple[str, int | None, int | None]
Rows = list[list[Cell]]

_EIGHTHS = " ▁▂▃▄▅▆▇█"
AREAS = {True: "#+o:.x", False: "⣿⢕⠶⠒⠂⠄"}
"""Textures that tell areas apart without colour, by whether only ASCII is shown."""
IDLE = "░"
PLAIN_LINES = "*o+x"
"""Signs that tell lines apart without colour."""
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
_EMPTY: Cell = (" ", None, None)


def stack(series: Sequence[Sequence[float]], top: float, width: int, height: int, idle: int | None = None) -> Rows:
    """Areas that lie on each other, the first one lowest; one column a value, the newest at the right.

    A cell has room for two areas: where three meet in it, the two that fill most of it are drawn. The area number
    `idle`, the uppermost, is shaded where it fills most of a cell, and nothing elsewhere.
    """
    blank = (_EMPTY,) * height
    columns = [blank] * width
    for x, edges in _levels(series, top, width, height * 8):
        columns[x] = _column(tuple(edges), height, idle)
    return [list(row) for row in zip(*columns, strict=True)]


@lru_cache(maxsize=4096)
def _column(edges: tuple[int, ...], height: int, idle: int | None) -> tuple[Cell, ...]:
    """The cells of one column from top to bottom; kept, as a column moves on many times before it leaves the chart."""
    return tuple(_block(edges, y * 8, idle) for y in range(height - 1, -1, -1))


def _levels(series: Sequence[Sequence[float]], top: float, width: int, steps: int) -> list[tuple[int, list[int]]]:
    """For each column its place and the upper edge of every area in whole steps; columns of NaN are left out."""
    count = min(width, min((len(values) for values in series), default=0))
    found = []
    columns = zip(*(values[len(values) - count :] for values in series), strict=True)
    for place, column in enumerate(columns, start=width - count):
        if all(map(math.isnan, column)):
            continue
        # What is not known adds nothing.
        totals = accumulate(value if value > 0 else 0.0 for value in column)
        found.append((place, [min(steps, round(total / top * steps)) if top > 0 else 0 for total in totals]))
    return found


def _block(edges: Sequence[int], base: int, idle: int | None) -> Cell:
    parts: list[tuple[int | None, int]] = []
    below = base
    for index, edge in enumerate(edges):
        inside = min(edge, base + 8) - below
        if index == idle and (inside < 5 or below > base):
            continue
        if index == idle:
            return (IDLE, index, None)
        if inside > 0:
            parts.append((index, inside))
            below += inside
    if below < base + 8:
        parts.append((None, base + 8 - below))
    if len(parts) == 1:
        only = parts[0][0]
        return _EMPTY if only is None else ("█", only, only)
    if len(parts) > 2:
        parts = _two_largest(parts)
    return (_EIGHTHS[parts[0][1]], parts[0][0], parts[1][0])


def _two_largest(parts: list[tuple[int | None, int]]) -> list[tuple[int | None, int]]:
    """The two areas that fill most of a cell, in their order, the lower one grown by its share of the rest."""
    kept = sorted(sorted(range(len(parts)), key=lambda place: -parts[place][1])[:2])
    (lower, low), (upper, high) = parts[kept[0]], parts[kept[1]]
    size = min(7, max(1, round(8 * low / (low + high))))
    return [(lower, size), (upper, 8 - size)]


def textured(series: Sequence[Sequence[float]], top: float, width: int, height: int, *, ascii_only: bool) -> Rows:
    """The same areas distinguished only by their texture, for terminals without colour or without Unicode."""
    marks = AREAS[ascii_only]
    rows: Rows = [[_EMPTY] * width for _ in range(height)]
    for x, edges in _levels(series, top, width, height * 2):
        for y in range(height):
            middle = y * 2
            index = next((place for place, edge in enumerate(edges) if edge > middle), None)
            if index is not None:
                rows[height - 1 - y][x] = (marks[index % len(marks)], index, None)
    return rows


def lines(series: Sequence[Sequence[float]], top: float, width: int, height: int) -> Rows:
    """Lines of braille dots: two values a column, four steps a row; the later series is in front."""
    dots = [[0] * width for _ in range(height)]
    owners: list[list[int | None]] = [[None] * width for _ in range(height)]
    steps = height * 4 - 1
    for index, values in enumerate(series):
        before: int | None = None
        for x, value in enumerate(values[-2 * width :], start=2 * width - min(2 * width, len(values))):
            if value != value:
                before = None
                continue
            level = max(0, min(steps, round(value / top * steps) if top > 0 else 0))
            column, bits = x // 2, _DOTS[x % 2]
            # From where the line was to where it is, so that it does not break.
            near = level if before is None or before == level else before + (1 if before < level else -1)
            for step in range(min(near, level), max(near, level) + 1):
                row = height - 1 - step // 4
                dots[row][column] |= bits[step % 4]
                owners[row][column] = index
            before = level
    return [
        [(chr(0x2800 + dot), owner, None) if dot else _EMPTY for dot, owner in zip(row, owned, strict=True)]
        for row, owned in zip(dots, owners, strict=True)
    ]


def plain_lines(series: Sequence[Sequence[float]], top: float, width: int, height: int) -> Rows:
    """Lines of plain characters: the larger of two values a column, one step a row."""
    rows: Rows = [[_EMPTY] * width for _ in range(height)]
    for index, values in enumerate(series):
        merged = pairs(values, larger=True)
        for x, value in enumerate(merged[-width:], start=width - min(width, len(merged))):
            if not math.isnan(value):
                step = max(0, min(height - 1, int(value / top * height) if top > 0 else 0))
                rows[height - 1 - step][x] = (PLAIN_LINES[index % len(PLAIN_LINES)], index, None)
    return rows


def mark_column(rows: Rows, column: int, sign: str) -> None:
    """A line from top to bottom in one column, over whatever is drawn there."""
    for row in rows:
        row[column] = (sign, None, None)


def pairs(values: Sequence[float], *, larger: bool = False, odd: int = 0) -> list[float]:
    """Two values into one: their mean, or the larger of them.

    `odd` (0 or 1) is how many of the newest belong to a pair that has only begun, so that pairs stay the same as time
    goes on; the pair is drawn with what it has.
    """
    cut = len(values) - odd
    whole = values[cut % 2 : cut]
    merged = [_both(a, b, larger) for a, b in zip(whole[::2], whole[1::2], strict=True)]
    return [*merged, values[-1]] if odd and values else merged


def _both(a: float, b: float, larger: bool) -> float:
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return max(a, b) if larger else (a + b) / 2


def means_of(values: list[float], count: int, taken: int) -> list[float]:
    """The means of `count` values each, of those that are known. `taken` values came so far, so that a group stays one
    as time goes on.
    """
    if count == 1:
        return values
    first = taken - len(values)
    groups = groupby(enumerate(values, first), lambda numbered: numbered[0] // count)
    known = ([value for _, value in group if value == value] for _, group in groups)
    return [math.fsum(group) / len(group) if group else math.nan for group in known]


def mark_behind(rows: Rows, column: int, sign: str) -> None:
    """A line down a chart, behind what is drawn."""
    for row in rows:
        if column < len(row) and row[column] == (" ", None, None):
            row[column] = (sign, None, None)
