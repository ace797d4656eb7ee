"""The tables of a run's results: heads on both sides, and figures with their differences from the baseline."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.difference import NO_DIFFERENCE, Difference, Sides, differences
from vmlab.analysis.comparison.families import asked_metrics
from vmlab.analysis.comparison.overall import Overall, Part, overall_of
from vmlab.analysis.figures.figure import MISSING, WALL_CLOCK, WALL_SECONDS, Figure, workloads_of
from vmlab.analysis.figures.reading import Asked, Reading, of_cells_alone, read
from vmlab.analysis.figures.table_layout import Block, Place, TableLayout, absent_reason, cells_at, layout_of
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.target_results import first_metric, timed_of
from vmlab.model.jsonable import picked
from vmlab.model.run import RUN_TIME, AxisValue
from vmlab.model.scenarios.table_words import METRICS, PARTS, STATISTICS, WORKLOADS, Relative, Statistic

Head = tuple[tuple[str, AxisValue], ...]
"""The head of a column or row: parts of the table with their values, the outermost first."""
_Figure = tuple[AxisValue | None, str]
"""A workload, None for a figure of the cell as a whole, and a metric."""
_COMPARED: tuple[Statistic, ...] = ("mean", "sum", "best", "worst")
"""Statistics that are compared with those of the baseline; a ratio of others has no meaning."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A reading in its place. `difference` is None for the baseline itself and where nothing is compared."""

    reading: Reading
    difference: Difference | None = None
    relative: float | None = None
    """The difference in the form that the table asks for."""

    @property
    def figure(self) -> Figure:
        """The figure of the reading."""
        return self.reading.figure

    def json_fields(self) -> dict[str, Any]:
        """The entry as it stands in ``vmlab.run/1``."""
        return {
            **self.figure.json_fields(),
            **picked(self.reading, "unit", "more_is_better"),
            "relative": self.relative,
            "better": self.difference.better if self.difference else None,
            "difference": self.difference,
            "one_span": not self.reading.apart,
        }


@dataclass(frozen=True, slots=True)
class ResultTable:
    """One table. `axes` are those of its block, `fixed` the parts that are on neither side, such as its workload.

    `entries` has a row for each of `rows`, with an entry for each of `columns`. `absent` has the reason why a row has
    no figures, and `absent_columns` why a column has none, by their number from 0. `overall` has the figure over all
    workloads of each place that is compared, where the table has several of them.
    """

    axes: dict[str, AxisValue]
    fixed: dict[str, AxisValue]
    columns: tuple[Head, ...]
    rows: tuple[Head, ...]
    entries: tuple[tuple[Entry, ...], ...]
    relative: Relative | None
    baseline: dict[str, AxisValue]
    absent: dict[int, str]
    absent_columns: dict[int, str]
    overall: tuple[Overall, ...] = ()

    def each(self) -> Iterator[tuple[Head, Head, Entry]]:
        """Every entry with the heads of its row and its column, row by row."""
        for row, line in zip(self.rows, self.entries, strict=True):
            for column, entry in zip(self.columns, line, strict=True):
                yield row, column, entry

    def json_fields(self) -> dict[str, Any]:
        """The table as it stands in ``vmlab.run/1``."""
        rows = enumerate(zip(self.rows, self.entries, strict=True))
        return {
            **picked(self, "axes", "fixed"),
            "columns": [dict(head) for head in self.columns],
            "rows": [
                {"head": dict(head), "absent": self.absent.get(place), "entries": line} for place, (head, line) in rows
            ],
            **picked(self, "relative", "baseline", "overall"),
        }


def result_tables(document: RunDocument) -> list[ResultTable]:
    """All tables of a run, block by block."""
    layout = layout_of(document)
    return [table for block in layout.blocks for table in _tables_of(document, layout, block)]


def _tables_of(document: RunDocument, layout: TableLayout, block: Block) -> Iterator[ResultTable]:
    """The tables of one block: one for each workload, where workloads are on no side."""
    workloads = workloads_of(block.cells)
    if WORKLOADS in (*layout.columns, *layout.rows):
        fixed: list[dict[str, AxisValue]] = [{}]
    elif all(map(of_cells_alone, layout.metrics)):
        fixed = [{}]
    else:
        fixed = [{WORKLOADS: name} for name in workloads]
    for parts in fixed:
        table = _Maker(document, layout, block, parts).table()
        if table is not None:
            yield table


@dataclass(slots=True)
class _Maker:
    """Makes one table."""

    document: RunDocument
    layout: TableLayout
    block: Block
    fixed: dict[str, AxisValue]
    known: dict[frozenset[tuple[str, AxisValue]], Reading] = field(default_factory=dict)
    beside: dict[tuple[str, AxisValue], list[CellDocument]] = field(default_factory=dict)
    families: dict[frozenset[tuple[str, AxisValue]], dict[_Figure, Difference]] = field(default_factory=dict)

    timed: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A table that names its figures has those.
        asked = self.document.run.table
        if not (asked and asked.metrics) and self.layout.metrics == (RUN_TIME,):
            self.timed = timed_of(self.block.cells, self.document.run.throughput)

    def table(self) -> ResultTable | None:
        layout = self.layout
        columns, rows = self._heads(layout.columns), self._row_heads()
        entries = {(row, column): self._entry(row, column) for row in rows for column in columns}
        if not layout.simple:
            measured = {place for place, entry in entries.items() if entry.figure.state != MISSING}
            if not measured and not any(map(self._absent, rows)):
                return None
            rows = [row for row in rows if not _of_work(row) or any((row, column) in measured for column in columns)]
            columns = [one for one in columns if not _of_work(one) or any((row, one) in measured for row in rows)]
        return ResultTable(
            axes=self.block.axes,
            fixed=self.fixed if len(layout.metrics) > 1 else {METRICS: self._only_metric(), **self.fixed},
            columns=tuple(columns),
            rows=tuple(rows),
            entries=tuple(tuple(entries[row, column] for column in columns) for row in rows),
            relative=layout.relative,
            baseline=layout.baseline,
            absent=dict(self._reasons(rows)),
            absent_columns=dict(self._reasons(columns)),
            overall=tuple(self._overall(itertools.product(rows, columns))),
        )

    def _overall(self, heads: Iterable[tuple[Head, Head]]) -> Iterator[Overall]:
        """That of each place that is compared with another; none in the table of one workload."""
        if WORKLOADS in self.fixed or self.layout.relative is None:
            return
        known: list[dict[str, AxisValue]] = []
        for row, column in heads:
            place = {**dict(row), **dict(column)}
            axes = {part: value for part, value in place.items() if part not in PARTS}
            if place.get(STATISTICS, "mean") == "mean" and self._base(axes) != axes and axes not in known:
                known.append(axes)
                found = overall_of(axes, list(self._parts(axes)))
                yield from [found] if found else []

    def _parts(self, axes: Place) -> Iterator[Part]:
        """Of each workload the first figure of the table that it has, and of which an end is better."""
        for workload in workloads_of(self.block.cells):
            for metric in self.layout.metrics:
                place = {**axes, METRICS: metric, WORKLOADS: workload}
                found, before = self._read(place), self._read(self._base(place))
                more = before.more_is_better if found.more_is_better is None else found.more_is_better
                if more is not None and not of_cells_alone(metric):
                    unit = found.unit or before.unit
                    yield Part(workload, self._metric(place), unit, more, (before.figure, found.figure))
                    break

    def _row_heads(self) -> list[Head]:
        """The heads of the rows; simple rows of workloads have the mean and the worst of many tiles, and the wall."""
        layout = self.layout
        if not (layout.simple and layout.rows == (WORKLOADS,)):
            return self._heads(layout.rows)
        tiles = max((over.tiles for cell in self.block.cells for over in cell.over_tiles), default=1)
        heads: list[Head] = []
        for name in workloads_of(self.block.cells):
            of_tiles = ("mean", "worst") if tiles > 1 else ()
            own: Head = ((WORKLOADS, name),)
            if (rate := self.timed.get(name)) and rate != self._only_metric():
                own = (*own, (METRICS, rate))
            heads += [(*own, (STATISTICS, part)) for part in of_tiles] or [own]
        return heads if WALL_CLOCK in self.timed else [*heads, ((METRICS, WALL_SECONDS),)]

    def _heads(self, parts: Sequence[str]) -> list[Head]:
        values = [[(part, value) for value in self._values(part)] for part in parts]
        return list(itertools.product(*values))

    def _values(self, part: str) -> Sequence[AxisValue]:
        if part == WORKLOADS:
            return workloads_of(self.block.cells)
        if part == METRICS:
            return self.layout.metrics
        return self.layout.statistics if part == STATISTICS else self.layout.values[part]

    def _entry(self, row: Head, column: Head) -> Entry:
        place = {**self.fixed, **dict(row), **dict(column)}
        found = self._read(place)
        base, statistic = self._base(place), place.get(STATISTICS, "mean")
        if self.layout.relative is None or base == place or statistic not in _COMPARED:
            return Entry(found)
        family = self._family({part: value for part, value in place.items() if part not in (WORKLOADS, METRICS)})
        difference = family.get((place.get(WORKLOADS), self._metric(place)), NO_DIFFERENCE)
        return Entry(found, difference, difference.as_asked(self.layout.relative))

    def _base(self, place: Place) -> dict[str, AxisValue]:
        """The place that a place is compared with; itself for the baseline."""
        return {**place, **{part: value for part, value in self.layout.baseline.items() if part in place}}

    def _metric(self, place: Place) -> str:
        metric = str(place.get(METRICS, self.layout.metrics[0]))
        return first_metric(metric, str(place.get(WORKLOADS)), self.timed)

    def _only_metric(self) -> str:
        """What the figures of a table of one metric are: a throughput where all of its workloads have that one."""
        metric = self.layout.metrics[0]
        own = self.fixed.get(WORKLOADS)
        names = [str(own)] if own is not None else workloads_of(self.block.cells)
        shown = {first_metric(metric, name, self.timed) for name in names}
        return shown.pop() if len(shown) == 1 else metric

    def _family(self, axes: Place) -> dict[_Figure, Difference]:
        """The differences of all figures that the scenario asks for, of all workloads, at one place.

        They do not depend on how the table is laid out.
        """
        key = frozenset(axes.items())
        if key not in self.families:
            sides = dict(self._sides(axes))
            self.families[key] = dict(zip(sides, differences(list(sides.values())), strict=True))
        return self.families[key]

    def _sides(self, axes: Place) -> Iterator[tuple[_Figure, Sides]]:
        workloads = workloads_of(self.block.cells)
        for metric in sorted({*asked_metrics(self.document.run), *self.layout.metrics}):
            alone = of_cells_alone(metric)
            if metric == WALL_SECONDS and WALL_CLOCK in self.timed:
                continue
            if alone and self.layout.over == "tiles" and axes.get(STATISTICS, "mean") != "mean":
                continue
            for workload in (None,) if alone else workloads:
                place = {**axes, METRICS: metric} | ({} if workload is None else {WORKLOADS: workload})
                before, found = self._read(self._base(place)), self._read(place)
                if self._base(place) != place and before.unit == found.unit:
                    more = found.more_is_better
                    sides = Sides(before.figure, found.figure, more, amount=more is None)
                    yield (workload, self._metric(place)), sides

    def _read(self, place: Place) -> Reading:
        """The reading of a place; cached, because a baseline is read many times."""
        key = frozenset(place.items())
        if key not in self.known:
            self.known[key] = self._read_cells(place)
        return self.known[key]

    def _read_cells(self, place: Place) -> Reading:
        layout = self.layout
        workload = place.get(WORKLOADS)
        asked = Asked(
            metric=self._metric(place),
            workload=None if workload is None else str(workload),
            statistic=cast(Statistic, place.get(STATISTICS, "mean")),
            over=layout.over,
            best_of=layout.best_of,
        )
        return read(self._at({name: value for name, value in place.items() if name not in PARTS}), asked)

    def _at(self, axes: Place) -> list[CellDocument]:
        """The block's cells at a place; those of its first axis are searched only once."""
        first = next(iter(axes.items()), None)
        if first is None:
            return list(self.block.cells)
        if first not in self.beside:
            self.beside[first] = self.block.at(dict([first]))
        return cells_at(self.beside[first], axes)

    def _reasons(self, heads: Sequence[Head]) -> Iterator[tuple[int, str]]:
        for place, head in enumerate(heads):
            if (reason := self._absent(head)) is not None:
                yield place, reason

    def _absent(self, head: Head) -> str | None:
        """Why the point of a head has no cells; None where it should have."""
        reasons = (absent_reason(self.document, part, value) for part, value in head)
        return next((reason for reason in reasons if reason is not None), None)


def _of_work(head: Head) -> bool:
    """Whether a head is shown only if its workload measured something."""
    return any(part in (WORKLOADS, METRICS) for part, _ in head)
