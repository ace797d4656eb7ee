"""Folds a run's events into the cells of its document, as far as each cell came."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from vmlab.analysis.shape import (
    CellDocument,
    MeasurementDocument,
    OverTilesDocument,
    ProofDocument,
    ProvisionDocument,
    WorkloadDocument,
)
from vmlab.analysis.statistics import mean
from vmlab.model.event import (
    CacheProved,
    CellEnded,
    CellStarted,
    Event,
    MeasurementTaken,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
)
from vmlab.model.run import Phase

CELL_EVENTS: tuple[type[Event], ...] = (
    CacheProved,
    CellEnded,
    CellStarted,
    MeasurementTaken,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
)
"""The kinds of events that `fold_cells` reads."""


@dataclass(slots=True)
class CellHistory:
    """What the events of one cell said. `executed` is the execute phase on the monotonic clock, None before it."""

    start: CellStarted
    last_mono: float
    end: CellEnded | None = None
    executed: tuple[float, float | None] | None = None
    phases: dict[str, float] = field(default_factory=dict)
    workloads: list[WorkloadEnded] = field(default_factory=list)
    measurements: list[MeasurementTaken] = field(default_factory=list)
    proofs: list[CacheProved] = field(default_factory=list)

    @property
    def execution(self) -> tuple[float, float] | None:
        """Beginning and end of the execute phase; it ends with what is known of a cell that broke off in it."""
        if self.executed is None:
            return None
        since, until = self.executed
        return since, self.last_mono if until is None else until


def fold_cells(events: Iterable[Event]) -> list[CellHistory]:
    """The cells in the order in which they began."""
    cells: dict[int, CellHistory] = {}
    for event in events:
        if isinstance(event, CellStarted):
            cells[event.cell] = CellHistory(event, event.mono)
        elif (cell := cells.get(getattr(event, "cell", 0))) is not None:
            _fold(cell, event)
    return list(cells.values())


def _fold(cell: CellHistory, event: Event) -> None:
    cell.last_mono = event.mono
    match event:
        case PhaseStarted(phase=Phase.EXECUTE):
            cell.executed = (event.mono, None)
        case PhaseEnded():
            cell.phases[event.phase] = event.seconds
            if event.phase == Phase.EXECUTE and cell.executed is not None:
                cell.executed = (cell.executed[0], event.mono)
        case WorkloadEnded():
            cell.workloads.append(event)
        case MeasurementTaken():
            cell.measurements.append(event)
        case CacheProved():
            cell.proofs.append(event)
        case CellEnded():
            cell.end = event


def cell_document(cell: CellHistory, unended: str) -> CellDocument:
    """The document of a cell, `host` still empty; `unended` is the outcome of one that has not ended."""
    measurements = [_measurement(taken) for taken in cell.measurements]
    end = cell.end
    return {
        "cell": cell.start.cell,
        "axes": dict(cell.start.axes),
        "repeat": cell.start.repeat,
        "outcome": str(end.outcome) if end else unended,
        "reasons": list(end.reasons) if end else [],
        "provision": _provision(cell),
        "wall_seconds": _finite(end.wall_seconds) if end else None,
        "start_skew_ms": _finite(end.start_skew_ms) if end else None,
        "skew_uncertainty_ms": _finite(end.skew_uncertainty_ms) if end else None,
        "phases": dict(cell.phases),
        "workloads": [_workload(ended) for ended in cell.workloads],
        "measurements": measurements,
        "over_tiles": over_tiles(measurements),
        "host": {},
        "cache_proof": [_proof(proved) for proved in cell.proofs],
    }


def over_tiles(measurements: Iterable[MeasurementDocument]) -> list[OverTilesDocument]:
    """Every workload's metrics over the tiles, in the order in which they first came."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for taken in measurements:
        if taken["value"] is not None:
            groups.setdefault((taken["workload"], taken["metric"], taken["unit"]), []).append(taken["value"])
    return [
        {
            "workload": workload,
            "metric": metric,
            "unit": unit,
            "tiles": len(values),
            "mean": mean(values),
            "worst": worst_of(values, unit),
        }
        for (workload, metric, unit), values in groups.items()
    ]


def worst_of(values: Iterable[float], unit: str) -> float | None:
    """The longest of times, the lowest of rates; None for a unit of which neither end is worse."""
    if unit in ("s", "ms"):
        return max(values)
    return min(values) if unit.endswith("/s") else None


def _provision(cell: CellHistory) -> ProvisionDocument:
    said = cell.end.provision if cell.end else {}
    return {
        "how": said.get("how"),
        "seconds": _finite(said.get("seconds")),
        "guests": said.get("guests", cell.start.guests),
        "snapshots": dict(said.get("snapshots", {})),
    }


def _workload(ended: WorkloadEnded) -> WorkloadDocument:
    return {
        "workload": ended.workload,
        "tile": ended.tile,
        "guest": ended.guest,
        "outcome": str(ended.outcome),
        "reason": ended.reason,
    }


def _measurement(taken: MeasurementTaken) -> MeasurementDocument:
    return {
        "workload": taken.workload,
        "tile": taken.tile,
        "guest": taken.guest,
        "metric": taken.metric,
        "value": _finite(taken.value),
        "unit": taken.unit,
    }


def _proof(proved: CacheProved) -> ProofDocument:
    return {
        "guest": proved.guest,
        "file": proved.file,
        "o_direct": proved.o_direct,
        "writeback": proved.writeback,
        "direct": proved.direct,
        "no_flush": proved.no_flush,
        "expected": proved.expected,
        "agrees": proved.agrees,
    }


def _finite(value: float | None) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if value is not None and math.isfinite(value) else None
