"""The cells of a run's document, complete or broken off, as far as their events tell of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from vmlab.analysis.cell_shape import (
    BootDocument,
    CellDocument,
    DataDiskDocument,
    RoundDocument,
    RoundFigure,
    SeenDocument,
    SwitchDocument,
    TileChangeDocument,
    WorkloadDocument,
)
from vmlab.analysis.figures.directions import Directions
from vmlab.analysis.figures.over_tiles import over_tiles
from vmlab.analysis.record.disk_latency import latency_document
from vmlab.analysis.record.loops import loop_rows
from vmlab.analysis.record.remade import changes_of
from vmlab.analysis.record.timeline import CellTimeline
from vmlab.analysis.statistics.descriptive import finite
from vmlab.model.cell_event import (
    GuestInspected,
    KsmSwitched,
    WorkloadEnded,
)
from vmlab.model.checked import made
from vmlab.model.jsonable import time_of_day
from vmlab.model.results import Provision
from vmlab.model.run import WARM_UP

S = TypeVar("S")


def cell_document(cell: CellTimeline, unended: str, directions: Directions) -> CellDocument:
    """The document of a cell, the host's part still empty; `unended` is the outcome of one that has not ended."""
    workloads = [_workload(ended, _begin(cell, ended)) for ended in cell.ended_workloads]
    start, end = cell.start, cell.end
    return CellDocument(
        cell=start.cell,
        hypervisor=cell.host or None,
        axes=dict(start.axes),
        settings=dict(start.settings),
        repeat=start.repeat,
        block=start.repeat,
        warm_up=start.repeat == WARM_UP,
        outcome=str(end.outcome) if end else unended,
        reasons=list(end.reasons) if end else [],
        provision=_provision(cell),
        wall_seconds=finite(end.wall_seconds) if end else None,
        start_skew_ms=finite(end.start_skew_ms) if end else None,
        skew_uncertainty_ms=finite(end.skew_uncertainty_ms) if end else None,
        phases=dict(cell.phases),
        workloads=workloads,
        measurements=cell.measurements,
        remade=[one for event in cell.remade for one in changes_of(event)],
        over_tiles=over_tiles(cell.measurements, workloads, directions),
        disk_latency=latency_document(cell.latency),
        neighbours=cell.neighbours,
        switches=list(_switches(cell)),
        tile_changes=[
            TileChangeDocument(time_of_day(one.wall), one.mono - cell.began, one.origin, one.before, one.after)
            for one in cell.tile_changes
        ],
        looped=start.looped,
        loop=loop_rows(cell.rounds),
        rounds=list(_rounds(cell)),
        cache_proof=cell.proofs,
        network_proof=cell.network,
        seen_in_guests=_seen(cell.inspected),
    )


def _provision(cell: CellTimeline) -> Provision:
    provision = cell.end.provision if cell.end else Provision()
    guests = cell.start.guests if provision.guests is None else provision.guests
    return replace(provision, guests=guests, seconds=finite(provision.seconds))


def _begin(cell: CellTimeline, ended: WorkloadEnded) -> float | None:
    """When a workload began, in seconds after the common start; None where no event says so, and in later rounds."""
    start = cell.workloads[ended.tile, ended.workload].start
    return None if start is None or start.round > 1 else start.late_ms / 1e3


def _workload(ended: WorkloadEnded, began: float | None) -> WorkloadDocument:
    """`began` is in seconds after the common start."""
    return WorkloadDocument(
        workload=ended.workload,
        tile=ended.tile,
        guest=ended.guest,
        outcome=str(ended.outcome),
        reason=ended.reason,
        began=finite(began),
        ended=None if began is None else finite(began + ended.seconds),
    )


def _switches(cell: CellTimeline) -> Iterator[SwitchDocument]:
    """The switches of a cell, in order."""
    for one in cell.switches:
        switch = SwitchDocument(
            one.what, time_of_day(one.wall), one.mono - cell.began, one.origin, one.before, one.after
        )
        if isinstance(one, KsmSwitched):
            yield switch
        else:
            yield replace(
                switch,
                pauses_ms={guest: finite(pause) for guest, pause in one.pauses_ms.items()},
                drained_seconds=finite(one.drained_seconds),
                drained_bytes=one.drained_bytes,
            )


def _rounds(cell: CellTimeline) -> Iterator[RoundDocument]:
    """The rounds of a looped cell, in the order in which they ended."""
    for one in cell.rounds:
        yield RoundDocument(
            workload=one.workload,
            tile=one.tile,
            guest=one.guest,
            round=one.round,
            outcome=str(one.outcome),
            reason=one.reason,
            verified=one.mono - cell.began,
            seconds=finite(one.seconds),
            figures={name: RoundFigure(finite(value), one.units.get(name, "")) for name, value in one.values.items()},
        )


def _seen(inspected: Iterable[GuestInspected]) -> list[SeenDocument]:
    """What was seen in each guest, in the order of the first look."""
    seen: dict[tuple[int, str], SeenDocument] = {}
    for one in inspected:
        known = seen.get((one.tile, one.guest), SeenDocument(one.guest, one.tile))
        boot = _whole(BootDocument, one.seen.get("boot"), known.boot)
        data_disk = _whole(DataDiskDocument, one.seen.get("data_disk"), known.data_disk)
        seen[one.tile, one.guest] = replace(known, boot=boot, data_disk=data_disk)
    return list(seen.values())


def _whole(cls: type[S], body: dict[str, Any] | None, known: S | None) -> S | None:
    """What an event says; what is `known` before where it says nothing, or, of another version, lacks a part."""
    try:
        return known if body is None else made(cls, body)
    except ValueError:
        return known
