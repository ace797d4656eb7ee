"""A comparison as blocks: its sides, its tables, and the notes on what is known of the differences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from vmlab.analysis.comparison.comparison import INDEX, Comparison, Row
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.figures.figure import WALL_SECONDS, Figure
from vmlab.model.axes import axes_words, places_words
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Block, Column, Notes, Section, Table
from vmlab.report.compared_rows import ComparedRow, compared_rows, row_name
from vmlab.report.heading import behind_notes
from vmlab.report.run.notice_text import AT_BEST, at_best_notes, short_notices
from vmlab.report.run.score_rows import throughput_words
from vmlab.report.verdicts import difference_notes, long_text, outlier_notes, verdict_words
from vmlab.report.words import MARK, apart_words, moment, plural
from vmlab.report.writers.text import WIDTH, text_lines
from vmlab.system.text_width import width_of
from vmlab.telemetry.domains.neighbours import GUESTS_OF_HOST, took_words

_LONGEST_NAME = 24


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
    names = side_names(comparison.labels)
    yield Notes(side_lines(comparison.labels), tone="sub")
    yield from _overviews(names, compared_rows(comparison, first))
    for place, rows in groupby(compared_rows(comparison), key=lambda row: row.place):
        own = list(rows)
        units = [row.unit for row in own]
        yield Section(place, [Table("figure", [row.name for row in own], _columns(names, own), units=units)])
    notes = [
        *behind_sides(comparison),
        *comparison_notes(comparison),
        *index_notes(comparison, names[0]),
        *at_best_notes(comparison.speed, comparison.rows),
        *side_doubts(comparison),
    ]
    left = [note for note in notes if note not in told]
    yield Section("", [Notes(left)] if left else [])


def side_doubts(comparison: Comparison) -> list[str]:
    """What makes a comparison doubtful."""
    return [f"{MARK} {text}" for text in short_notices(comparison.warnings)]


def comparison_notes(comparison: Comparison, names: Sequence[str] = (), *, metrics: Sequence[str] = ()) -> list[str]:
    """What is known of the differences, and which readings lie far from the others.

    `names` are those of the sides, their labels unless given; only the rows of `metrics`, or all.
    """
    names = names or side_names(comparison.labels)
    rows = [row for row in comparison.rows if not metrics or row.metric in metrics]
    several = len({str(row.axes) for row in rows}) > 1
    found: list[tuple[str, Difference]] = []
    figures: list[tuple[str, Figure, str]] = []
    for row in rows:
        name = ", ".join([*([axes_words(row.axes)] if several else []), row_name(row)])
        for side, one in zip(names[1:], row.differences, strict=True):
            found.append((f"{name} ({side})" if len(names) > 2 else name, one))
        figures += [(f"{name} ({side})", figure, row.unit) for side, figure in zip(names, row.figures, strict=True)]
    beside = _neighbour_notes(comparison, names)
    return [*difference_notes(found), *_noise_notes(comparison, rows), *outlier_notes(figures), *beside]


def behind_sides(comparison: Comparison) -> list[str]:
    """Whether guests were emulated, and which parts of a host were not its own, on any side."""
    return behind_notes(comparison.accelerators, comparison.ordered, "a part of the sides")


def _neighbour_notes(comparison: Comparison, names: Sequence[str]) -> Iterator[str]:
    """What the host's own guests took of each side, a line for each, where any of them took much."""
    of_sides = comparison.neighbours
    if any(one.took_cpu or one.used_disks for uses in of_sides for one in uses or ()):
        for name, uses in zip(names, of_sides, strict=True):
            took = "not known" if uses is None else took_words(uses)
            yield f"{GUESTS_OF_HOST} took, on average of the cells of {name}: {took}"


def _noise_notes(comparison: Comparison, rows: Sequence[Row]) -> Iterator[str]:
    """Where the noise comes from up to which no difference is called real, and how large it is for each figure."""
    noise = comparison.noise
    if noise is None:
        return
    known = {row_name(row): noise.percents.get((row.workload, row.metric)) for row in rows}
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
    roles = ["baseline", *["candidate"] * (len(labels) - 1)]
    sides = zip(side_names(labels), labels, roles, strict=True)
    return [f"{name}: {label}, {role}" if name != label else f"{label}: {role}" for name, label, role in sides]


def _overviews(names: Sequence[str], rows: Sequence[ComparedRow]) -> Iterator[Section]:
    """Each figure at each place, a row each; nothing for one place alone."""
    for label in dict.fromkeys(row.label for row in rows):
        own = [row for row in rows if row.label == label]
        if len(own) > 1:
            axes, places = places_words([row.axes for row in own])
            yield Section(label, [Table(axes, places, _columns(names, own), wide=True)])


def _columns(names: Sequence[str], rows: Sequence[ComparedRow]) -> list[Column]:
    """The baseline's figures, and each candidate's with its differences.

    Where there are differences at the best speed, too, the name stands above all columns of its side.
    """
    several = any(any(row.at_best_speed) for row in rows)
    columns: list[Column] = []
    for place, name in enumerate(names):
        heading, above = ("", (name,)) if several else (name, ())
        columns.append(Column(heading, [row.figures[place] for row in rows], above=above))
        if place:
            columns.append(_differences("difference", [row.differences[place - 1] for row in rows], above))
            at_best = [row.at_best_speed[place - 1] for row in rows]
            columns += [_differences(AT_BEST, at_best, above)] if any(at_best) else []
    return columns


def _differences(heading: str, differences: Sequence[Difference | None], above: tuple[str, ...]) -> Column:
    texts = [long_text(found) if found else "" for found in differences]
    notes = [verdict_words(found) if found else "" for found in differences]
    return Column(heading, texts, beside=True, above=above, notes=notes)


def index_notes(comparison: Comparison, baseline: str) -> Iterator[str]:
    """What the tile index is measured by, and whether its tiles ran together; nothing where there is none.

    `baseline` is the baseline's name in the table.
    """
    if not comparison.indexed:
        return
    counts = sorted({one.reference.tiles for one in comparison.indexed})
    of = " or ".join(plural(count, "tile") for count in counts)
    yield (
        f"{INDEX}: geometric mean of a tile's throughputs over those of a tile of {baseline} (its cells of "
        f"{of}, with the same other axes), summed over the tiles, as in VMmark; ± is of each side's own repeats"
    )
    yield throughput_words(
        {name: metric for one in comparison.indexed for name, metric in one.reference.metrics.items()}
    )
    apart = [one.together for one in comparison.indexed if one.apart]
    if apart:
        yield f"{INDEX}: {apart_words(apart)}"
