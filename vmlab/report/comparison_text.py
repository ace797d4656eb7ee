"""A comparison as blocks: its sides, its tables, and the notes on what is known of the differences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from vmlab.analysis.comparison.comparison import AT_BEST, Comparison, Row
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.figures.figure import WALL_SECONDS, Figure
from vmlab.model.axes import axes_words, places_words
from vmlab.model.grouping import grouped
from vmlab.model.run import RUN_TIME, AxisValue
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Block, Column, Notes, Section, Table
from vmlab.report.figures import figure_text, form_of, mark_words
from vmlab.report.heading import behind_notes
from vmlab.report.run.notice_text import at_best_notes, short_notices
from vmlab.report.verdicts import (
    difference_notes,
    difference_parts,
    look_notes,
    outlier_notes,
    overall_words,
    verdict_words,
)
from vmlab.report.words import MARK, moment, plural
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH, width_of
from vmlab.telemetry.domains.neighbours import GUESTS_OF_HOST, took_words

_LONGEST_NAME = 24
EXPLORATORY = (
    "these metrics were chosen, and are corrected together; chosen after the results were seen, they are exploratory: "
    "measure again to confirm what they show"
)
_RUN_TIMES = (RUN_TIME, WALL_SECONDS)


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A row with its figures as they are written, and the unit of these."""

    row: Row
    unit: str
    figures: tuple[str, ...]

    @property
    def place(self) -> str:
        """``cache none, tiles 1``; empty where there are no axes."""
        return axes_words(self.row.axes) if self.row.axes else ""

    @property
    def label(self) -> str:
        """``web (s)``: the name with the unit."""
        return f"{row_name(self.row)} ({self.unit})" if self.unit else row_name(self.row)


def compared_rows(comparison: Comparison, metrics: Collection[str] = ()) -> list[ComparedRow]:
    """The rows in order, of `metrics` or all. A figure has one unit at all places, as all run times have."""
    rows = comparison.told(metrics)
    alike = grouped((_written_alike(row), figure) for row in rows for figure in row.figures)
    forms = {key: form_of(key[1], figures) for key, figures in alike.items()}
    found = []
    for row in rows:
        form = forms[_written_alike(row)]
        found.append(ComparedRow(row, form.unit, tuple(figure_text(one, row.unit, form) for one in row.figures)))
    return found


def _written_alike(row: Row) -> tuple[str, str]:
    return "" if row.metric in _RUN_TIMES else row_name(row), row.unit


def row_name(row: Row) -> str:
    """The name of a row's figure."""
    return figure_name(row.workload, row.metric)


def figure_name(workload: str, metric: str) -> str:
    """``web`` for its run time, ``web latency_p95`` for another figure, as conditions of a gate name it."""
    return workload if metric in (*_RUN_TIMES, workload) else f"{workload} {metric}"


def comparison_table(comparison: Comparison, width: int = WIDTH) -> str:
    """A comparison as plain text of which no line is wider than `width`."""
    comparison = visible_values(comparison)
    return "\n".join(text_lines(comparison_blocks(comparison), width)) + "\n"


def comparison_blocks(
    comparison: Comparison, first: Collection[str] = (WALL_SECONDS,), told: Collection[str] = ()
) -> Iterator[Block]:
    """The sides, a table for each combination of axis values, differences in percent of the baseline, and notes.

    Before all tables stands each figure of the metrics `first` at all places. `told` are notes that stand elsewhere.
    """
    yield Notes(side_lines(comparison.labels), tone="sub")
    yield from compared_sections(comparison, first)
    notes = [
        *mark_words(figure for row in comparison.told() for figure in row.figures),
        *behind_sides(comparison),
        *comparison_notes(comparison),
        *at_best_notes(comparison.speed, comparison.told()),
        *side_doubts(comparison),
    ]
    yield Section("", [Notes([note for note in notes if note not in told])])


def compared_sections(
    comparison: Comparison, first: Collection[str] = (WALL_SECONDS,), metrics: Collection[str] = ()
) -> Iterator[Section]:
    """The tables alone: each figure of the metrics `first` at all places, then all or those of `metrics` at each."""
    names = side_names(comparison.labels)
    yield from _overviews(names, compared_rows(comparison, first))
    for place, rows in groupby(compared_rows(comparison, metrics), key=lambda row: row.place):
        own = list(rows)
        units = [row.unit for row in own]
        labels = [row_name(one.row) for one in own]
        overall = overall_lines(comparison, own[0].row.axes)
        yield Section(place, [Table("metric", labels, _columns(names, own), units=units), Notes(overall)])


def compared_alone(comparison: Comparison, width: int = WIDTH) -> str:
    """The tables of a comparison as plain text, and nothing else."""
    return "\n".join(text_lines(compared_sections(visible_values(comparison)), width)).lstrip("\n") + "\n"


def overall_lines(comparison: Comparison, at: Mapping[str, AxisValue] | None = None) -> list[str]:
    """The overall figures of a place, or of all with their places."""
    baseline, *candidates = side_names(comparison.labels)
    found = [one for one in comparison.overall if at is None or one.axes == at]
    places = [f"{axes_words(one.axes)}: " if at is None and len(found) > 1 else "" for one in found]
    return [
        f"{place}{line}"
        for place, one in zip(places, found, strict=True)
        for line in overall_words(one, baseline, candidates)
    ]


def side_doubts(comparison: Comparison) -> list[str]:
    """What makes a comparison doubtful."""
    return [f"{MARK} {text}" for text in short_notices(comparison.warnings)]


def comparison_notes(comparison: Comparison, *, metrics: Sequence[str] = ()) -> list[str]:
    """What is known of the differences, and which readings lie far from others; of the rows of `metrics`, or all."""
    names = side_names(comparison.labels)
    rows = comparison.told(metrics)
    several = len({str(row.axes) for row in rows}) > 1
    found: list[tuple[str, Difference]] = []
    figures: list[tuple[str, Figure, str]] = []
    for row in rows:
        name = ", ".join([*([axes_words(row.axes)] if several else []), row_name(row)])
        for side, one in zip(names[1:], row.differences, strict=True):
            found.append((f"{name} ({side})" if len(names) > 2 else name, one))
        figures += [(f"{name} ({side})", figure, row.unit) for side, figure in zip(names, row.figures, strict=True)]
    beside = neighbour_notes(comparison, names)
    looks = look_notes(comparison.within) if comparison.within else ()
    notes = [*looks, *difference_notes(found), *_noise_notes(comparison, rows), *outlier_notes(figures), *beside]
    return [*notes, EXPLORATORY] if comparison.chosen else notes


def behind_sides(comparison: Comparison) -> list[str]:
    """Whether guests were emulated, and which parts of a host were not its own, on any side."""
    return behind_notes(comparison.accelerators, comparison.ordered, "some of the sides")


def neighbour_notes(comparison: Comparison, names: Sequence[str], *, brief: bool = False) -> Iterator[str]:
    """What the host's own guests took of each side, a line for each, where any of them took much."""
    of_sides = comparison.neighbours
    took = "beside" if brief else "took on average, in the cells of"
    if any(one.took_cpu or one.used_disks for uses in of_sides for one in uses or ()):
        for name, uses in zip(names, of_sides, strict=True):
            yield f"{GUESTS_OF_HOST} {took} {name}: {'not known' if uses is None else took_words(uses)}"


def _noise_notes(comparison: Comparison, rows: Sequence[Row]) -> Iterator[str]:
    """Where the noise comes from up to which no difference is called real, and how large it is for each figure."""
    noise = comparison.noise
    if noise is None:
        return
    known = {row_name(row): noise.percents.get(row.key) for row in rows}
    words = ", ".join(f"{name} {'not known' if size is None else f'{size:.1f} %'}" for name, size in known.items())
    blocks = plural(noise.blocks, "block")
    counted = blocks if noise.repeats == noise.blocks else f"{noise.repeats} of {blocks}"
    yield (
        f"this host's noise, up to which no difference is called real, by {counted} of {noise.what} {noise.run}, "
        f"{moment(noise.of.started)}: {words}"
    )


def side_names(labels: Sequence[str]) -> list[str]:
    """Names of sides in headings: the labels, of long groups the first run and how many more there are.

    Letters where these are too long to stand side by side, or the same.
    """
    letters = [chr(ord("A") + place) if place < 26 else str(place + 1) for place in range(len(labels))]
    return _short_names(labels) or letters


def side_title(labels: Sequence[str]) -> str:
    """The title of a report: the sides as in headings, and in full where headings have letters."""
    first, *others = _short_names(labels) or labels
    return f"{first} against {', '.join(others)}"


def _short_names(labels: Sequence[str]) -> list[str]:
    names = [label if width_of(label) <= _LONGEST_NAME else _group_name(label) for label in labels]
    return names if all(width_of(name) <= _LONGEST_NAME for name in names) and len({*names}) == len(names) else []


def _group_name(label: str) -> str:
    first, *others = label.split(",")
    return f"{first} and {len(others)} more" if others else label


def side_lines(labels: Sequence[str]) -> list[str]:
    """What the names of the sides stand for, and which of them is the baseline, a line each."""
    roles = ["baseline" if len(labels) > 1 else "the only side", *["candidate"] * (len(labels) - 1)]
    sides = zip(side_names(labels), labels, roles, strict=True)
    return [f"{name}: {label}, {role}" if name != label else f"{label}: {role}" for name, label, role in sides]


def _overviews(names: Sequence[str], rows: Sequence[ComparedRow]) -> Iterator[Section]:
    """Each figure at each place, a row each; nothing for one place alone."""
    for label, own in grouped((row.label, row) for row in rows).items():
        if len(own) > 1:
            axes, places = places_words([one.row.axes for one in own])
            yield Section(label, [Table(axes, places, _columns(names, own), wide=True)])


class SideColumn(NamedTuple):
    """What stands beside the figure of each candidate: its heading, and the differences of a row that it is about.

    `words` are what it says of one, and what stands behind that where there is room.
    """

    heading: str
    of: Callable[[Row], Sequence[Difference | None]]
    words: Callable[[Difference], tuple[str, str]] = difference_parts


COLUMNS = (
    SideColumn("difference", lambda row: row.differences),
    SideColumn(AT_BEST, lambda row: row.differences_at_best),
)
"""The columns of every comparison, in text, on the page, in Markdown and on the console's screen."""


def _columns(names: Sequence[str], rows: Sequence[ComparedRow]) -> list[Column]:
    """The baseline's figures, and each candidate's with its differences.

    Where there are further columns, the name stands above all columns of its side.
    """
    shown = [one for one in COLUMNS if any(any(one.of(compared.row)) for compared in rows)]
    columns: list[Column] = []
    for place, name in enumerate(names):
        heading, above = ("", (name,)) if len(shown) > 1 else (name, ())
        columns.append(Column(heading, [one.figures[place] for one in rows], above=above))
        if place:
            columns += [_of_candidate(one, [one.of(each.row)[place - 1] for each in rows], above) for one in shown]
    return columns


def _of_candidate(column: SideColumn, differences: Sequence[Difference | None], above: tuple[str, ...]) -> Column:
    texts = [" ".join(column.words(found)).rstrip() if found else "" for found in differences]
    notes = [verdict_words(found) if found else "" for found in differences]
    return Column(column.heading, texts, beside=True, above=above, notes=notes)
