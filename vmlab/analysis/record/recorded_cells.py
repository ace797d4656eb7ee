"""The cells of a run's document, complete or broken off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from vmlab.analysis.figures.directions import Directions
from vmlab.analysis.figures.over_tiles import over_tiles
from vmlab.analysis.record.disk_latency import latency_document
from vmlab.analysis.record.loop_documents import loop_documents, round_documents
from vmlab.analysis.record.remade import remade_documents
from vmlab.analysis.record.switches import switch_documents, tile_change_documents
from vmlab.analysis.record.timeline import CellTimeline
from vmlab.analysis.shape import (
    BootDocument,
    CellDocument,
    DataDiskDocument,
    MeasurementDocument,
    NeighbourDocument,
    NetworkProofDocument,
    ProofDocument,
    ProvisionDocument,
    SeenDocument,
    WorkloadDocument,
)
from vmlab.analysis.statistics.descriptive import finite
from vmlab.model.event import (
    GuestInspected,
    WorkloadEnded,
)
from vmlab.model.jsonable import jsonable
from vmlab.model.results import CacheProof, Measurement, NeighbourUse, NetworkProof, Provision
from vmlab.model.run import WARM_UP


def cell_document(cell: CellTimeline, unended: str, directions: Directions) -> CellDocument:
    """The document of a cell, the host's part still empty; `unended` is the outcome of one that has not ended."""
    measurements = [_measurement(taken) for taken in cell.measurements]
    workloads = [_workload(ended, _begin(cell, ended)) for ended in cell.ended_workloads]
    end = cell.end
    return {
        "cell": cell.start.cell,
        "hypervisor": cell.host or None,
        "linked": None,
        "axes": dict(cell.start.axes),
        "settings": dict(cell.start.settings),
        "repeat": cell.start.repeat,
        "block": cell.start.repeat,
        "position": 1,
        "warm_up": cell.start.repeat == WARM_UP,
        "outcome": str(end.outcome) if end else unended,
        "reasons": list(end.reasons) if end else [],
        "provision": _provision(cell),
        "yardstick": None,
        "speed_percent": None,
        "wall_seconds": finite(end.wall_seconds) if end else None,
        "start_skew_ms": finite(end.start_skew_ms) if end else None,
        "skew_uncertainty_ms": finite(end.skew_uncertainty_ms) if end else None,
        "phases": dict(cell.phases),
        "workloads": workloads,
        "measurements": measurements,
        "remade": remade_documents(cell),
        "over_tiles": over_tiles(measurements, workloads, directions),
        "targets": [],
        "host": {},
        "disk_traffic": None,
        "bound_by": None,
        "disk_latency": latency_document(cell.latency),
        "neighbours": _neighbours(cell.neighbours),
        "stages": [],
        "switches": switch_documents(cell),
        "tile_changes": tile_change_documents(cell),
        "spans": [],
        "looped": cell.start.looped,
        "loop": loop_documents(cell.rounds),
        "rounds": round_documents(cell),
        "cache_proof": [_proof(proved) for proved in cell.proofs],
        "network_proof": [_network_proof(proved) for proved in cell.network],
        "seen_in_guests": _seen(cell.inspected),
    }


def _provision(cell: CellTimeline) -> ProvisionDocument:
    provision = cell.end.provision if cell.end else Provision()
    guests = cell.start.guests if provision.guests is None else provision.guests
    return cast(ProvisionDocument, jsonable(replace(provision, guests=guests)))


def _begin(cell: CellTimeline, ended: WorkloadEnded) -> float | None:
    """When a workload began, in seconds after the common start; None where no event says so, and in later rounds."""
    start = cell.workloads[ended.tile, ended.workload].start
    return None if start is None or start.round > 1 else start.late_ms / 1e3


def _workload(ended: WorkloadEnded, began: float | None) -> WorkloadDocument:
    """`began` is in seconds after the common start."""
    return {
        "workload": ended.workload,
        "tile": ended.tile,
        "guest": ended.guest,
        "outcome": str(ended.outcome),
        "reason": ended.reason,
        "began": finite(began),
        "ended": None if began is None else finite(began + ended.seconds),
        "speed_percent": None,
    }


def _measurement(taken: Measurement) -> MeasurementDocument:
    return {
        "workload": taken.workload,
        "tile": taken.tile,
        "guest": taken.guest,
        "metric": taken.metric,
        "value": finite(taken.value),
        "unit": taken.unit,
    }


def _proof(proved: CacheProof) -> ProofDocument:
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


def _network_proof(proved: NetworkProof) -> NetworkProofDocument:
    return {
        "device": proved.device,
        "guest": proved.guest,
        "direction": proved.direction,
        "carried_bytes": proved.carried_bytes,
        "least_bytes": proved.least_bytes,
        "most_bytes": proved.most_bytes,
        "agrees": proved.agrees,
    }


def _neighbours(counted: list[NeighbourUse] | None) -> list[NeighbourDocument] | None:
    if counted is None:
        return None
    return [jsonable(one) for one in counted]


def _seen(inspected: Iterable[GuestInspected]) -> list[SeenDocument]:
    """What was seen in each guest, in the order of the first look."""
    seen: dict[tuple[int, str], SeenDocument] = {}
    for one in inspected:
        empty: SeenDocument = {"guest": one.guest, "tile": one.tile, "boot": None, "data_disk": None}
        known = seen.setdefault((one.tile, one.guest), empty)
        # An event of another version may lack a key; then all of it is left out.
        if (boot := one.seen.get("boot")) is not None and BootDocument.__required_keys__ <= boot.keys():
            known["boot"] = boot
        if (disk := one.seen.get("data_disk")) is not None and DataDiskDocument.__required_keys__ <= disk.keys():
            known["data_disk"] = disk
    return list(seen.values())
