"""Plain text grids that fit a width: what does not fit side by side stands below, under the row labels again."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WIDTH = 80
"""Columns of the smallest terminal that everything must fit."""

_GAP = "  "
_LONGEST_LABEL = 30


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and the texts below it, one for each row. `beside` keeps it next to the column before it."""

    heading: str
    texts: Sequence[str]
    beside: bool = False

    @property
    def width(self) -> int:
        """Characters of its widest text."""
        return max(len(text) for text in (self.heading, *self.texts))


def grid(corner: str, labels: Sequence[str], columns: Sequence[Column], width: int = WIDTH) -> list[str]:
    """The lines of a grid: row `labels` to the left under `corner`, figures to the right of their columns.

    Raises ValueError where a column has another number of rows than there are labels.
    """
    if any(len(column.texts) != len(labels) for column in columns):
        raise ValueError("every column needs a text for every row")
    shown = [shorten(label, _LONGEST_LABEL) for label in (corner, *labels)]
    label_width = max(len(label) for label in shown)
    lines: list[str] = []
    for group in _groups(columns, width - label_width):
        if lines:
            lines.append("")
        for place, label in enumerate(shown):
            texts = ((column.texts[place - 1] if place else column.heading).rjust(column.width) for column in group)
            lines.append(_GAP.join([label.ljust(label_width), *texts]).rstrip()[:width])
    return lines


def _groups(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    """Columns that fit into `room` together; those that belong together stay so where they fit at all."""
    bundles: list[list[Column]] = []
    for column in columns:
        if column.beside and bundles and _needed([*bundles[-1], column]) <= room:
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


def _needed(columns: Sequence[Column]) -> int:
    return sum(len(_GAP) + column.width for column in columns)


def shorten(text: str, longest: int) -> str:
    """`text`, with its end cut off and an ellipsis put there where it is longer than `longest`."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def paragraph(text: str, width: int = WIDTH, indent: str = "") -> list[str]:
    """`text` broken at words into lines of at most `width`; later lines are indented by `indent`."""
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
