"""Sets runs, or cells of runs, against each other, and says what else differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vmlab.analysis.figure import Figure, difference_percent, figure_of, over_tiles, wall_seconds, workloads_of
from vmlab.analysis.shape import CellDocument, RunDocument, RunPart
from vmlab.model.errors import UsageError
from vmlab.model.run import AxisValue, Outcome

SCHEMA = "vmlab.compare/1"
WALL_CLOCK = "total wall clock"
"""Stands in a comparison's rows in place of a workload."""

Place = tuple[tuple[str, AxisValue], ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a run, or one cell of it, under the label that the user gave it."""

    label: str
    run: RunPart
    cells: tuple[CellDocument, ...]

    @classmethod
    def of(cls, label: str, document: RunDocument, cell: int | None = None) -> Side:
        """All cells of a run, or the one numbered `cell`. Raises UsageError where there is no such cell."""
        cells = [c for c in document["cells"] if cell is None or c["cell"] == cell]
        if not cells:
            raise UsageError(f"{label}: has no cell" + (f" {cell}" if cell is not None else " yet"))
        return cls(label, document["run"], tuple(cells))


@dataclass(frozen=True, slots=True)
class Row:
    """One figure on every side, the baseline first; `axes` is where all sides have it, {} for single cells."""

    axes: dict[str, AxisValue]
    workload: str
    metric: str
    unit: str
    figures: tuple[Figure, ...]

    @property
    def differences(self) -> list[float | None]:
        """Percent against the baseline, for every candidate; None unless both sides passed."""
        return [difference_percent(self.figures[0], candidate) for candidate in self.figures[1:]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The labels of the sides, the baseline first, the rows, and one line for everything that makes it doubtful."""

    labels: tuple[str, ...]
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The document ``vmlab.compare/1``."""
        return {
            "schema": SCHEMA,
            "baseline": self.labels[0],
            "candidates": list(self.labels[1:]),
            "warnings": list(self.warnings),
            "rows": [_row_json(row) for row in self.rows],
        }


def _row_json(row: Row) -> dict[str, Any]:
    baseline, *candidates = (_figure_json(figure) for figure in row.figures)
    for candidate, figure, difference in zip(candidates, row.figures[1:], row.differences, strict=True):
        before, after = row.figures[0].comparable, figure.comparable
        candidate["difference_percent"] = difference
        candidate["intervals_overlap"] = before.overlaps(after) if before and after else None
    return {
        "axes": row.axes,
        "workload": row.workload,
        "metric": row.metric,
        "unit": row.unit,
        "baseline": baseline,
        "candidates": candidates,
    }


def _figure_json(figure: Figure) -> dict[str, Any]:
    return {
        "state": figure.state,
        "mean": figure.spread.mean if figure.spread else None,
        "half_width_95": figure.spread.half_width if figure.spread else None,
        "count": figure.spread.count if figure.spread else 0,
        "left_out": figure.left_out,
    }


def compare(sides: Sequence[Side]) -> Comparison:
    """The first side is the baseline. Cells meet where their axes agree; single cells meet whatever their axes say.

    Raises UsageError for less than two sides, and where no cells meet.
    """
    if len(sides) < 2:
        raise UsageError("a comparison needs two runs or cells; `vmlab ls` lists the runs")
    single = all(len(side.cells) == 1 for side in sides)
    places: list[Place] = [()] if single else _common_places(sides)
    if not places:
        raise UsageError("the runs have no cell with the same axes; name cells to compare, such as last:1 last:2")
    rows: list[Row] = []
    for place in places:
        rows += _rows(place, [side.cells if single else _at(side, place) for side in sides])
    return Comparison(tuple(side.label for side in sides), tuple(rows), tuple(_warnings(sides, places, single)))


def _place(cell: CellDocument) -> Place:
    return tuple(sorted(cell["axes"].items()))


def _at(side: Side, place: Place) -> tuple[CellDocument, ...]:
    return tuple(cell for cell in side.cells if _place(cell) == place)


def _common_places(sides: Sequence[Side]) -> list[Place]:
    places = dict.fromkeys(_place(cell) for cell in sides[0].cells)
    return [place for place in places if all(_at(side, place) for side in sides[1:])]


def _rows(place: Place, groups: Sequence[Sequence[CellDocument]]) -> Iterator[Row]:
    axes = dict(place)
    cells = [cell for group in groups for cell in group]
    for workload in workloads_of(cells):
        metrics = {(o["metric"], o["unit"]): None for c in cells for o in c["over_tiles"] if o["workload"] == workload}
        for metric, unit in metrics:
            value = over_tiles(workload, metric)
            yield Row(axes, workload, metric, unit, tuple(figure_of(group, value) for group in groups))
    yield Row(axes, WALL_CLOCK, "wall_seconds", "s", tuple(figure_of(group, wall_seconds) for group in groups))


def _warnings(sides: Sequence[Side], places: Sequence[Place], single: bool) -> Iterator[str]:
    asked: tuple[tuple[str, list[Any]], ...] = (
        ("scenario", [side.run["scenario"] for side in sides]),
        ("size", [side.run["size"] for side in sides]),
        ("accelerator", [side.run["accelerator"] for side in sides]),
        ("seed", [side.run["seed"] for side in sides]),
        *((f"host {key}", [side.run["host"].get(key) for side in sides]) for key in _host_keys(sides)),
        ("provision", ["+".join(_hows(side)) or None for side in sides]),
    )
    for what, said in asked:
        if any(value != said[0] for value in said):
            told = ", ".join(f"{side.label} {_word(value)}" for side, value in zip(sides, said, strict=True))
            yield f"{what} differs: {told}"
    for side in sides:
        yield from _doubts(side, places, single)


_HOST_KEYS = ("hostname", "cpu", "cpus", "kernel", "qemu", "libvirt", "governor", "transparent_hugepages")


def _host_keys(sides: Sequence[Side]) -> list[str]:
    return [key for key in _HOST_KEYS if any(key in side.run["host"] for side in sides)]


def _hows(side: Side) -> list[str]:
    return sorted({cell["provision"]["how"] or "unknown" for cell in side.cells})


def _word(value: object) -> str:
    return "unknown" if value is None else str(value)


def _doubts(side: Side, places: Sequence[Place], single: bool) -> Iterator[str]:
    for cell in side.cells:
        if not single and _place(cell) not in places:
            yield f"{side.label}: cell {cell['cell']} has no counterpart and is left out"
        elif cell["outcome"] != Outcome.PASSED:
            reasons = "; ".join(cell["reasons"])
            yield f"{side.label}: cell {cell['cell']} is {cell['outcome']}" + (f": {reasons}" if reasons else "")
