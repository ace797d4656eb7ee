"""The tidy tables of a run: a row a measurement, or a row a sample, each with the configuration that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from vmlab.analysis.document import run_document
from vmlab.analysis.figure import RUN_TIME, WALL_SECONDS
from vmlab.analysis.shape import CellDocument, MeasurementDocument, RunDocument
from vmlab.analysis.spans import RunSpans
from vmlab.model.axes import axis_word
from vmlab.model.ordered import ordered_words
from vmlab.model.run import AxisValue
from vmlab.model.sample import split_name
from vmlab.model.visible import visible
from vmlab.store.reader import RunReader
from vmlab.store.samples import samples

AXIS = "axis_"
"""What the columns of axes begin with, so that an axis may be called as it likes."""
Cell = str | int | float | bool | None
Kind = Literal["text", "whole", "number", "flag"]


@dataclass(frozen=True, slots=True)
class Tidy:
    """A table: the kind of each column by its name, and the rows, to be read once."""

    columns: Mapping[str, Kind]
    rows: Iterator[tuple[Cell, ...]]


def measurements(reader: RunReader) -> Tidy:
    """A row for each figure of each workload, and one for each cell's wall clock, of no workload.

    A workload that did not pass has a row for its run time without a value. Raises StoreError for a damaged store.
    """
    document = run_document(reader)
    axes = axis_kinds(document)
    columns: dict[str, Kind] = {
        **_RUN_COLUMNS,
        **{f"{AXIS}{name}": kind for name, kind in axes.items()},
        "workload": "text",
        "tile": "whole",
        "guest": "text",
        "workload_outcome": "text",
        "metric": "text",
        "unit": "text",
        "value": "number",
    }
    rows = (
        (*_of_run(document), *_of_cell(cell, axes), *row) for cell in document["cells"] for row in _rows_of_cell(cell)
    )
    return Tidy(columns, _visible(rows))


def _visible(rows: Iterator[tuple[Cell, ...]]) -> Iterator[tuple[Cell, ...]]:
    """The rows without control characters: a scenario, or a guest, may have put them into a name."""
    for row in rows:
        yield tuple(visible(value) if isinstance(value, str) else value for value in row)


_RUN_COLUMNS: dict[str, Kind] = {
    "run": "text",
    "scenario": "text",
    "size": "text",
    "accelerator": "text",
    "ordered": "text",
    "cell": "whole",
    "repeat": "whole",
    "cell_outcome": "text",
}


def _of_run(document: RunDocument) -> tuple[Cell, ...]:
    run = document["run"]
    return (run["id"], run["scenario"], run["size"], run["accelerator"], ", ".join(ordered_words(run["host"])))


def _of_cell(cell: CellDocument, axes: Mapping[str, Kind]) -> tuple[Cell, ...]:
    return (cell["cell"], cell["repeat"], cell["outcome"], *axis_values(cell["axes"], axes))


def axis_kinds(document: RunDocument) -> dict[str, Kind]:
    """The kind of each axis of a run, by the values that its cells have; text where they are of several kinds."""
    values: dict[str, list[AxisValue]] = {name: [] for name in document["run"]["axes"]}
    for cell in document["cells"]:
        for name, value in cell["axes"].items():
            values.setdefault(name, []).append(value)
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
    outcomes = {(one["workload"], one["tile"]): one for one in cell["workloads"]}
    for taken in cell["measurements"]:
        ended = outcomes.get((taken["workload"], taken["tile"]))
        yield _row(taken, ended["outcome"] if ended else None)
    timed = {(one["workload"], one["tile"]) for one in cell["measurements"] if one["metric"] == RUN_TIME}
    for place, ended in outcomes.items():
        if place not in timed:
            yield (ended["workload"], ended["tile"], ended["guest"], ended["outcome"], RUN_TIME, "s", None)
    yield (None, None, None, None, WALL_SECONDS, "s", cell["wall_seconds"])


def _row(taken: MeasurementDocument, outcome: str | None) -> tuple[Cell, ...]:
    return (
        *(taken["workload"], taken["tile"], taken["guest"], outcome),
        *(taken["metric"], taken["unit"], taken["value"]),
    )


def sampled(reader: RunReader) -> Tidy:
    """A row for each value of each tick that could be read, with the cell and the phase in which the tick ended.

    `seconds` is the time since the run began, on the monotonic clock. Raises StoreError for a damaged store.
    """
    document = run_document(reader)
    axes = axis_kinds(document)
    columns: dict[str, Kind] = {
        "run": "text",
        "cell": "whole",
        "repeat": "whole",
        **{f"{AXIS}{name}": kind for name, kind in axes.items()},
        "phase": "text",
        "time": "text",
        "seconds": "number",
        "metric": "text",
        "instance": "text",
        "unit": "text",
        "value": "number",
    }
    return Tidy(columns, _visible(_sample_rows(reader, document, axes)))


def _sample_rows(reader: RunReader, document: RunDocument, axes: Mapping[str, Kind]) -> Iterator[tuple[Cell, ...]]:
    spans = RunSpans.read(reader)
    run = document["run"]["id"]
    cells = {
        cell["cell"]: (cell["cell"], cell["repeat"], *axis_values(cell["axes"], axes)) for cell in document["cells"]
    }
    between: tuple[Cell, ...] = (None, None, *(None for _ in axes))
    for _, sample in samples(reader):
        span = spans.at(sample.mono)
        place = between if span is None else cells.get(span.cell, between)
        when = datetime.fromtimestamp(sample.wall, UTC).isoformat(timespec="milliseconds")
        before = (run, *place, None if span is None else span.phase, when, round(sample.mono - spans.began, 3))
        layout = sample.layout
        for name, unit, value in zip(layout.names, layout.units, sample.values, strict=True):
            if value == value:
                metric, instance = split_name(name)
                # As many digits as the store keeps.
                yield (*before, metric, instance, unit, float(f"{value:.8g}"))
