"""Pages as plain text of a width: columns that do not fit side by side continue below, with the row labels again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest

from vmlab.report.blocks import Beside, Block, Chart, Column, Heading, Notes, Section, Table, Text, shown
from vmlab.system.text_width import (
    UNCUT,
    WIDTH,
    centred,
    first_columns,
    last_columns,
    left,
    right,
    shortened,
    width_of,
    wrapped,
)

_GAP = "  "
_BETWEEN = "   "
_LONGEST_LABEL = 30


def text_lines(blocks: Iterable[Block], width: int = WIDTH) -> list[str]:
    """Blocks as lines of which none is wider than `width`; there are no charts."""
    lines: list[str] = []
    before: Block | None = None
    for block in shown(blocks):
        match block:
            case Heading():
                lines += paragraph(block.text, width, "  ")
            case Text():
                lines += _sentence(block.text, block, width)
            case Notes():
                lines += [line for text in block.texts for line in _sentence(text, block, width)]
            case Table():
                lines += [""] if isinstance(before, Table) else []
                lines += paragraph(block.caption, width, "  ") if block.caption else []
                lines += _table(block, width)
            case Section():
                inner = text_lines(block.blocks, width)
                title = [block.title] if block.title and not block.folded else []
                lines += ["", *title, *inner] if inner else []
            case Beside():
                lines += _side_by_side(block, width)
            case Chart():
                continue
        before = block
    return lines


def _side_by_side(block: Beside, width: int) -> list[str]:
    first, second = (text_lines([one], width)[1:] for one in (block.first, block.second))
    room = max(map(width_of, first), default=0)
    if not (first and second) or room + len(_BETWEEN) + max(map(width_of, second)) > width:
        return text_lines([block.first, block.second], width)
    rows = zip_longest(first, second, fillvalue="")
    return ["", *(f"{left(one, room)}{_BETWEEN}{other}".rstrip() for one, other in rows)]


def _table(table: Table, width: int) -> list[str]:
    longest = UNCUT if width == UNCUT else width // 2 if table.wide else _LONGEST_LABEL
    labels = [
        f"{shortened(label, longest - len(tail))}{tail}" if tail else label
        for label, tail in zip(table.labels, table.tails, strict=True)
    ]
    return grid(table.corner, labels, table.columns, width, longest=longest)


def _sentence(text: str, block: Text | Notes, width: int) -> list[str]:
    return [shortened(text, width)] if block.cut else paragraph(text, width, block.indent)


def grid(
    corner: str, labels: Sequence[str], columns: Sequence[Column], width: int = WIDTH, *, longest: int = _LONGEST_LABEL
) -> list[str]:
    """The lines of a grid: row `labels` to the left under `corner`, figures to the right of their columns.

    Labels that are longer than `longest` are cut, but for output of any width.

    Raises ValueError where a column has another number of rows than there are labels.
    """
    if any(len(column.texts) != len(labels) for column in columns):
        raise ValueError("every column needs a text for every row")
    longest = UNCUT if width == UNCUT else longest
    shown = [shortened(corner, longest), *_distinct(labels, longest)]
    label_width = max(width_of(label) for label in shown)
    lines: list[str] = []
    for group in _groups(columns, width - label_width):
        if lines:
            lines.append("")
        widths = _widths(group)
        lines += (first_columns(f"{' ' * label_width}{_GAP}{line}".rstrip(), width) for line in _above(group, widths))
        for place, label in enumerate(shown):
            texts = [column.texts[place - 1] if place else column.heading for column in group]
            figures = (right(text, size) for text, size in zip(texts, widths, strict=True))
            lines.append(first_columns(_GAP.join([left(label, label_width), *figures]).rstrip(), width))
    return lines


def _distinct(labels: Sequence[str], longest: int) -> list[str]:
    """Labels cut to their room: at the end, or in the middle where the end tells them apart."""
    shown = [shortened(label, longest) for label in labels]
    same = {text for text, label in zip(shown, labels, strict=True) if shown.count(text) > labels.count(label)}
    return [_middle_out(label, longest) if text in same else text for text, label in zip(shown, labels, strict=True)]


def _middle_out(label: str, longest: int) -> str:
    before = longest // 4
    return f"{first_columns(label, before)}…{last_columns(label, longest - before - 1)}"


def _spans(columns: Sequence[Column], widths: Sequence[int], level: int) -> Iterator[tuple[str, int, int, int]]:
    """Each heading of a level, its first and last column, and its room; neighbours share one where all above it is the
    same, too.
    """
    for _, group in groupby(range(len(columns)), key=lambda place: columns[place].above[: level + 1]):
        places = list(group)
        first, last, above = places[0], places[-1], columns[places[0]].above
        room = sum(widths[first : last + 1]) + len(_GAP) * (last - first)
        yield above[level] if level < len(above) else "", first, last, room


def _levels(columns: Sequence[Column]) -> int:
    return max((len(column.above) for column in columns), default=0)


def _widths(columns: Sequence[Column]) -> list[int]:
    """The width of each column; the last below a heading that is wider than its columns together is widened."""
    widths = [column.width for column in columns]
    for level in range(_levels(columns)):
        for text, _, last, room in _spans(columns, widths, level):
            widths[last] += max(0, width_of(text) - room)
    return widths


def _above(columns: Sequence[Column], widths: Sequence[int]) -> Iterator[str]:
    """The lines of shared headings, each in the middle of its columns; none where no column has one."""
    for level in range(_levels(columns)):
        parts = []
        for text, first, last, room in _spans(columns, widths, level):
            parts.append(right(text, room) if first == last else centred(text, room))
        yield _GAP.join(parts)


def _groups(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    """Groups of columns that fit into `room`; columns that belong together stay together if they fit."""
    bundles: list[list[Column]] = []
    for column in columns:
        if bundles and _belongs(column, bundles[-1][-1]) and _needed([*bundles[-1], column]) <= room:
            bundles[-1].append(column)
        else:
            bundles.append([column])
    group: list[Column] = []
    for bundle in bundles:
        if group and _needed([*group, *bundle]) > room:
            yield group
            group = []
        group = [*group, *bundle]
    if group:
        yield group


def _belongs(column: Column, before: Column) -> bool:
    return column.beside or (bool(column.above) and column.above == before.above)


def _needed(columns: Sequence[Column]) -> int:
    return sum(len(_GAP) + width for width in _widths(columns))


def paragraph(text: str, width: int = WIDTH, indent: str = "") -> list[str]:
    """`text` broken at words into lines of at most `width`; later lines are indented by `indent`."""
    return wrapped(text, width, indent=indent, hyphens=False) or [""]
