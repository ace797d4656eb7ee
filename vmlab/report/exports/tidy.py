"""The tidy tables of a run: a row a measurement, or a row a sample, each with the configuration that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.counted_cells import as_of
from vmlab.analysis.figures.figure import WALL_SECONDS
from vmlab.analysis.figures.undelivered import undelivered_of, undelivered_words
from vmlab.analysis.record.timeline import RunSpans
from vmlab.analysis.shape import RunDocument
from vmlab.integrity.long_work import current
from vmlab.model.axes import axis_word
from vmlab.model.grouping import grouped
from vmlab.model.ordered import ordered_words
from vmlab.model.run import RUN_TIME, AxisValue
from vmlab.model.sample import split_name, unit_of
from vmlab.model.visible import visible, visible_line
from vmlab.store.reader import RunReader
from vmlab.store.samples import HostReaders, samples
from vmlab.telemetry.domains.neighbours import FIGURES

AXIS = "axis_"
"""What the columns of axes begin with, so that an axis may be called as it likes."""
Cell = str | int | float | bool | datetime | None
Kind = Literal["text", "whole", "number", "flag", "moment"]
SIDE = "side"
"""The column that several sides have."""


@dataclass(frozen=True, slots=True)
class Tidy:
    """A table: the kind of each column by its name, and the rows, to be read once."""

    columns: Mapping[str, Kind]
    rows: Iterator[tuple[Cell, ...]]


_ROWS = 50_000
"""Rows that are in memory at a time."""


def unicode_rows(table: Tidy) -> Iterator[list[tuple[Cell, ...]]]:
    """The rows, many at a time, with text as Unicode: bytes of a broken name are lone surrogates, which Parquet and
    frames cannot hold.
    """
    while rows := list(islice(table.rows, _ROWS)):
        yield [tuple(map(_unicode, row)) for row in rows]


def _unicode(value: Cell) -> Cell:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Exported:
    """A run to be exported: its store, the side on which it stands where there are several, and its one cell or all.

    Where it is `labelled`, rows of its cells have the tags and the note that users gave to the run.
    """

    reader: RunReader
    side: str = ""
    cell: int | None = None
    labelled: bool = True

    def document(self) -> RunDocument:
        """The run with the cells that are exported. Raises StoreError for a damaged store."""
        document = run_document(self.reader)
        if self.cell is None:
            return document
        return replace(document, cells=[cell for cell in document.cells if cell.cell == self.cell])


def measurements(*runs: Exported) -> Tidy:
    """A row for each figure of each workload, and, of no workload, for each cell's wall clock and guests' disks.

    A workload that did not pass has a row for its run time without a value, and `undelivered` says what was set and not
    delivered, so that the figure has no verdict in any comparison. Raises StoreError for a damaged store.
    """
    columns: dict[str, Kind] = {
        "workload": "text",
        "tile": "whole",
        "guest": "text",
        "workload_outcome": "text",
        "metric": "text",
        "unit": "text",
        "undelivered": "text",
        "value": "number",
    }
    return _of_cells(runs, columns, _judged_rows)


def measured(*runs: Exported) -> Iterator[dict[str, Cell]]:
    """The rows of `measurements` that have a value, by the names of their columns."""
    table = measurements(*runs)
    rows = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    return (row for row in rows if row["value"] is not None)


def per_cell(*runs: Exported) -> Tidy:
    """A row for each cell; `reasons` say why it did not pass, in one text. Raises StoreError for a damaged store."""
    columns: dict[str, Kind] = {
        "block": "whole",
        "position": "whole",
        "warm_up": "flag",
        "looped": "flag",
        "reasons": "text",
        "bound_by": "text",
        "wall_seconds": "number",
        "start_skew_ms": "number",
        "speed_percent": "number",
    }
    return _of_cells(runs, columns, lambda cell: [_whole_cell(cell)])


def _of_cells(
    runs: Sequence[Exported],
    columns: Mapping[str, Kind],
    rows_of: Callable[[CellDocument], Iterable[tuple[Cell, ...]]],
) -> Tidy:
    """A table of `rows_of` each cell in `columns`, before which the side, the run and the cell stand."""
    documents = [run.document() for run in runs]
    axes = axis_kinds(documents)
    said_of = [labels_of(document) for run, document in zip(runs, documents, strict=True) if run.labelled]
    labels = [name for name in LABELS if any(name in one for one in said_of)]
    of_cell: dict[str, Kind] = {"cell": "whole", "repeat": "whole", "cell_outcome": "text"}
    rows = (
        (*_of_side(run, runs), *of_run(document, cell.hypervisor), *_of_cell(cell, axes), *row, *said)
        for run, document in zip(runs, documents, strict=True)
        for said in [tuple(labels_of(document).get(name) for name in labels)]
        for cell in document.cells
        for row in rows_of(cell)
    )
    before = {**_side_column(runs), **RUN_COLUMNS, **of_cell, **_axis_columns(axes)}
    return Tidy({**before, **columns, **dict.fromkeys(labels, "text")}, _visible(rows))


def _axis_columns(axes: Mapping[str, Kind]) -> dict[str, Kind]:
    return {f"{AXIS}{name}": kind for name, kind in axes.items()}


def _whole_cell(cell: CellDocument) -> tuple[Cell, ...]:
    bound = cell.bound_by
    return (
        *(cell.block, cell.position, cell.warm_up, cell.looped, "; ".join(cell.reasons)),
        None if bound is None else bound.resource,
        *(cell.wall_seconds, cell.start_skew_ms, cell.speed_percent),
    )


def _judged_rows(cell: CellDocument) -> Iterator[tuple[Cell, ...]]:
    """The rows of a cell with what was not delivered before their values."""
    return ((*row[:-1], _undelivered(cell, row[0]), row[-1]) for row in _rows_of_cell(cell))


def _undelivered(cell: CellDocument, workload: Cell) -> str | None:
    """What was set and not delivered in a cell, as far as it concerns a workload, or, for None, the cell as a whole."""
    cells = [cell] if workload is None else as_of(str(workload), [cell])
    return undelivered_words(undelivered_of(cells)) or None


def _visible(rows: Iterator[tuple[Cell, ...]]) -> Iterator[tuple[Cell, ...]]:
    """The rows without control characters: a scenario, or a guest, may have put them into a name."""
    for row in rows:
        yield tuple(visible(value) if isinstance(value, str) else value for value in row)


RUN_COLUMNS: dict[str, Kind] = {
    "run": "text",
    "scenario": "text",
    "size": "text",
    "started": "moment",
    "host": "text",
    "kernel": "text",
    "qemu": "text",
    "libvirt": "text",
    "accelerator": "text",
    "ordered": "text",
}
"""What is the same in all rows of a run, or of one host of a fleet's run."""


LABELS = ("tags", "note")
"""The last columns of rows of cells, where a user gave any to one of the runs."""


def labels_of(document: RunDocument) -> dict[str, str]:
    """What users said of a run, by `LABELS`, each on one line."""
    said = {"tags": ", ".join(document.run.tags), "note": document.run.note}
    return {name: visible_line(text) for name, text in said.items() if text}


def of_run(document: RunDocument, hypervisor: str | None = None) -> tuple[Cell, ...]:
    """The values of `RUN_COLUMNS`; of a fleet's run those of the host `hypervisor`, by its name in the fleet."""
    run = document.run
    started = None if run.started is None else datetime.fromisoformat(run.started)
    own = next((one for one in run.hosts if one.name == hypervisor), None)
    host = run.host if own is None else own.facts
    accelerator = run.accelerator if own is None else own.accelerator
    versions = (_text(host.get(name)) for name in ("kernel", "qemu", "libvirt"))
    name = hypervisor if run.hosts else _text(host.get("hostname"))
    before = (run.id, run.scenario, run.size, started, name)
    return (*before, *versions, accelerator, ", ".join(ordered_words(host)))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _side_column(runs: Sequence[Exported]) -> dict[str, Kind]:
    return {SIDE: "text"} if any(run.side for run in runs) else {}


def _of_side(run: Exported, runs: Sequence[Exported]) -> tuple[Cell, ...]:
    return (run.side,) if _side_column(runs) else ()


def _of_cell(cell: CellDocument, axes: Mapping[str, Kind]) -> tuple[Cell, ...]:
    return (cell.cell, cell.repeat, cell.outcome, *axis_values(cell.axes, axes))


def axis_kinds(documents: Sequence[RunDocument]) -> dict[str, Kind]:
    """The kind of each axis of runs, by the values that their cells have; text where they are of several kinds."""
    named: dict[str, Kind] = {name: _kind(()) for document in documents for name in document.run.axes}
    return named | kinds_of([cell.axes for document in documents for cell in document.cells])


def kinds_of(places: Sequence[Mapping[str, AxisValue]]) -> dict[str, Kind]:
    """The kind of each axis that these places have."""
    values = grouped(pair for axes in places for pair in axes.items())
    return {name: _kind(those) for name, those in values.items()}


def _kind(values: Sequence[AxisValue]) -> Kind:
    kinds: dict[type, Kind] = {bool: "flag", int: "whole", float: "number"}
    found = {kinds.get(type(value), "text") for value in values}
    return found.pop() if len(found) == 1 else "text"


def axis_values(axes: Mapping[str, AxisValue], kinds: Mapping[str, Kind]) -> tuple[Cell, ...]:
    """The values of a cell in the order of `kinds`; None for an axis that it does not have."""
    return tuple(
        None if name not in axes else axis_word(axes[name]) if kind == "text" else axes[name]
        for name, kind in kinds.items()
    )


def _rows_of_cell(cell: CellDocument) -> Iterator[tuple[Cell, ...]]:
    outcomes = {(one.workload, one.tile): one for one in cell.workloads}
    for taken in cell.measurements:
        ended = outcomes.get((taken.workload, taken.tile))
        outcome = ended.outcome if ended else None
        yield (taken.workload, taken.tile, taken.guest, outcome, taken.metric, taken.unit, taken.value)
    timed = {(one.workload, one.tile) for one in cell.measurements if one.metric == RUN_TIME}
    for place, ended in outcomes.items():
        if place not in timed:
            yield (ended.workload, ended.tile, ended.guest, ended.outcome, RUN_TIME, "s", None)
    yield (None, None, None, None, WALL_SECONDS, "s", cell.wall_seconds)
    yield from _latency_rows(cell)
    for use in cell.neighbours or ():
        for metric in FIGURES:
            yield (None, None, use.name, None, f"neighbour_{metric}", unit_of(metric), getattr(use, metric))


def _latency_rows(cell: CellDocument) -> Iterator[tuple[Cell, ...]]:
    """The percentiles of each disk of a guest, of no workload."""
    known = cell.disk_latency
    for disk in known.disks if known else ():
        of = disk.found
        for percent, value in ((50, of.p50_ms), (95, of.p95_ms), (99, of.p99_ms)):
            metric = f"{disk.disk}_disk_{of.operation}_latency_p{percent}"
            yield (None, disk.tile, disk.guest, None, metric, "s", None if value is None else value / 1e3)


def sampled(*runs: Exported) -> Tidy:
    """A row for each value of each tick that could be read, with the cell and the phase in which it was read.

    `seconds` is the time since the run began, on the monotonic clock; values of guests have that of libvirt's answer.
    Raises StoreError for a damaged store.
    """
    documents = [run.document() for run in runs]
    axes = axis_kinds(documents)
    columns: dict[str, Kind] = {
        **_side_column(runs),
        **RUN_COLUMNS,
        "cell": "whole",
        "repeat": "whole",
        **_axis_columns(axes),
        "phase": "text",
        "time": "moment",
        "seconds": "number",
        "metric": "text",
        "instance": "text",
        "unit": "text",
        "value": "number",
    }
    rows = (
        row
        for run, document in zip(runs, documents, strict=True)
        for row in _sample_rows(run, document, axes, _of_side(run, runs))
    )
    return Tidy(columns, _visible(rows))


def _sample_rows(
    run: Exported, document: RunDocument, axes: Mapping[str, Kind], side: tuple[Cell, ...]
) -> Iterator[tuple[Cell, ...]]:
    with HostReaders(run.reader) as readers:
        for reader in readers.all():
            yield from _rows_of_reader(reader, run.cell, document, axes, (*side, *of_run(document, reader.host)))


def _rows_of_reader(
    reader: RunReader, only: int | None, document: RunDocument, axes: Mapping[str, Kind], of: tuple[Cell, ...]
) -> Iterator[tuple[Cell, ...]]:
    """The rows of one host, of the cell `only` where it is given; `of` are their first columns."""
    spans = RunSpans.read(reader)
    cells = {cell.cell: (cell.cell, cell.repeat, *axis_values(cell.axes, axes)) for cell in document.cells}
    between: tuple[Cell, ...] = (None, None, *(None for _ in axes))
    current().begin(f"writing the samples of {document.run.id}", reader.sample_count(), "samples")
    for _, sample in samples(reader):
        layout = sample.layout
        places: dict[float, tuple[Cell, ...] | None] = {}
        for name, unit, value in zip(layout.names, layout.units, sample.values, strict=True):
            if value != value:
                continue
            metric, instance = split_name(name)
            _, read_at = sample.span_of(metric)
            if read_at not in places:
                span = spans.at(read_at)
                left_out = only is not None and (span is None or span.cell != only)
                place = between if span is None else cells.get(span.cell, between)
                when = datetime.fromtimestamp(round(sample.wall + read_at - sample.mono, 3), UTC)
                seconds = round(read_at - spans.began, 3)
                phase = None if span is None else span.phase
                places[read_at] = None if left_out else (*of, *place, phase, when, seconds)
            if (before := places[read_at]) is not None:
                # The name of another's guest or disk, which does not end its row for who reads lines.
                part = instance and visible_line(instance)
                # As many digits as the store keeps.
                yield (*before, metric, part, unit, float(f"{value:.8g}"))
