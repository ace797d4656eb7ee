"""How long requests of the guests' disks took, in tables and in a sentence: 50th, 95th and 99th percentile in ms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from vmlab.analysis.cell_shape import (
    CellDocument,
    DiskLatencyDocument,
    OneDiskLatency,
    PercentilesDocument,
    SpanDocument,
)
from vmlab.analysis.figures.figure import figure_of
from vmlab.analysis.figures.table_layout import Block, TableLayout, axis_title
from vmlab.analysis.shape import RunDocument
from vmlab.report.blocks import Beside, Column, Section, Table
from vmlab.report.run.host_rows import HOST_TITLE, Groups, means_table, moved_table, shown_groups
from vmlab.report.words import NOT_MEASURED, capital
from vmlab.telemetry.latency_bins import OPERATIONS

KEYS = ("p50_ms", "p95_ms", "p99_ms")
_ALL = ", p50 / p95 / p99"
_DIGITS = 2
"""Significant digits: more would say what the bins do not know."""


def milliseconds(value: float | None) -> str:
    """A percentile with two significant digits: ``0.089``, ``4.5``, ``140``, ``11000``."""
    if value is None:
        return NOT_MEASURED
    rounded = float(f"{value:.{_DIGITS}g}")
    places = _DIGITS - 1 - math.floor(math.log10(rounded)) if rounded > 0 else 0
    return f"{rounded:.{max(0, places)}f}"


def percentiles_text(values: Sequence[float | None]) -> str:
    """``0.089 / 0.45 / 2.8``; the sign for what was not measured where there was no request."""
    return NOT_MEASURED if None in values else " / ".join(map(milliseconds, values))


def title(known: Sequence[DiskLatencyDocument], whose: str = "the guests' disks", which: str = _ALL) -> str:
    """The line above such figures, with the error of their bins; `which` percentiles these are, all in one figure."""
    error = max(one.error_percent for one in known)
    return f"latency of {whose}{which} in ms, each ± {error:.0f} %"


def latency_section(document: RunDocument, layout: TableLayout, block: Block) -> Section:
    """The mean of each percentile over a column's cells, as in `host_section`; empty where nobody counted."""
    return latency_of(axis_title(document, layout.main_axis), shown_groups(document, layout, block))


def latency_of(corner: str, groups: Groups) -> Section:
    """The same of groups of cells, a column each."""
    of_rows = mean_percentiles(list(groups.values()))
    columns = [
        Column(name, [percentiles_text(of_row[place]) for of_row in of_rows.values()])
        for place, name in enumerate(groups)
    ]
    return _section(known_of(*groups.values()), corner, list(of_rows), columns)


def host_beside(corner: str, groups: Groups) -> Beside:
    """The host's means, and beside them the guests' disks: percentiles as ``14/60/140``, and what they moved."""
    means, latency = means_table(corner, groups), latency_of(corner, groups)
    known = known_of(*groups.values())
    percentiles = [_without_blanks(table) for table in latency.blocks if isinstance(table, Table)]
    title = brief_title(known) if latency.title else ""
    return Beside(
        Section(HOST_TITLE, [means] if means.labels else []), Section(title, [*percentiles, moved_table(groups)])
    )


def _without_blanks(table: Table) -> Table:
    columns = [replace(one, texts=[text.replace(" / ", "/") for text in one.texts]) for one in table.columns]
    return replace(table, columns=columns)


def _section(
    known: Sequence[DiskLatencyDocument], corner: str, rows: Sequence[str], columns: Sequence[Column]
) -> Section:
    return Section(title(known), [Table(corner, rows, columns)]) if rows else Section("", [])


def brief_title(known: Sequence[DiskLatencyDocument]) -> str:
    """The same in few words, for a table beside another one."""
    error = max((one.error_percent for one in known), default=0.0)
    return f"guests' disks, p50/p95/p99 in ms ± {error:.0f} %"


def known_of(*groups: Sequence[CellDocument]) -> list[DiskLatencyDocument]:
    """What is known of the disks in groups of cells; [] where nobody counted."""
    return [one for cells in groups for cell in cells if (one := cell.disk_latency) is not None]


def mean_percentiles(groups: Sequence[Sequence[CellDocument]]) -> dict[str, list[list[float | None]]]:
    """For each operation and group of cells the mean of each percentile, in the order of `KEYS` and in ms.

    Only operations of which there were requests.
    """
    known = known_of(*groups)
    rows = [operation for operation in OPERATIONS if any(_of(one, operation) for one in known)]
    return {row: [[_mean(cells, row, key) for key in KEYS] for cells in groups] for row in rows}


def _of(known: DiskLatencyDocument | None, operation: str) -> PercentilesDocument | None:
    """What is known of an operation over all disks; None without a request."""
    found = () if known is None else known.over_disks
    return next((one for one in found if one.operation == operation and one.requests), None)


def _mean(cells: Sequence[CellDocument], operation: str, key: str) -> float | None:
    return figure_of(cells, lambda cell: _value(_of(cell.disk_latency, operation), key)).mean


def _value(known: PercentilesDocument | None, key: str) -> float | None:
    value: float | None = getattr(known, key, None)
    return value


def latency_sentence(cell: CellDocument) -> str:
    """The percentiles over all disks of a cell; empty where nobody counted."""
    known = cell.disk_latency
    found = [] if known is None else [one for one in known.over_disks if one.requests]
    if known is None or not found:
        return ""
    texts = (f"{one.operation} {percentiles_text([_value(one, key) for key in KEYS])}" for one in found)
    return f"{capital(title([known]))}: {', '.join(texts)}."


def disk_section(cell: CellDocument) -> Section:
    """A row for each disk of a cell, and what was asked of it."""
    known = cell.disk_latency
    if known is None or not known.disks:
        return Section("", [])
    disks = known.disks
    columns = [
        Column("operation", [one.found.operation for one in disks]),
        Column("requests", [str(one.found.requests) for one in disks], beside=True),
        *(
            Column(key.removesuffix("_ms"), [milliseconds(_value(one.found, key)) for one in disks], beside=True)
            for key in KEYS
        ),
    ]
    return Section(title([known], "each disk"), [Table("disk", list(map(disk_name, disks)), columns)])


def disk_name(disk: OneDiskLatency) -> str:
    """``file-a root``, and its tile where that is not the first."""
    tile = "" if disk.tile == 1 else f" of tile {disk.tile}"
    return f"{disk.guest} {disk.disk}{tile}"


def span_latency_section(spans: Sequence[SpanDocument], heads: Sequence[str], corner: str) -> Section:
    """The percentiles over all disks in each span between changes, a column each; empty where nobody counted."""
    known = [one for span in spans if (one := span.disk_latency) is not None]
    rows = [operation for operation in OPERATIONS if any(_of(one, operation) for one in known)]
    columns = [
        Column(head, [percentiles_text([_value(_of(span.disk_latency, row), key) for key in KEYS]) for row in rows])
        for span, head in zip(spans, heads, strict=True)
    ]
    return _section(known, corner, rows, columns)
