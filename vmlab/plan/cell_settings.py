"""What each planned cell is configured as, as it is recorded with its figures."""

from __future__ import annotations

from typing import Any

from vmlab.model.names import guest_of
from vmlab.model.scenarios.guest import GuestResources
from vmlab.plan.terms import CellPlan, WorkloadPlan


def settings_of(cell: CellPlan) -> dict[str, Any]:
    """JSON values: `tiles`, each attribute that all guests share (None where they differ, or there is none), `guests`
    with the attributes of each guest of a tile, `workloads` with the kind, the places and the parameters of each, and
    the caches that start `warm`.
    """
    every = (guest for guest in (*cell.guests, *cell.bare) if guest.tile == 1)
    guests = {guest.guest: guest.resources.model_dump(mode="json") for guest in every}
    return {
        "tiles": cell.tiles,
        **{name: _shared([given[name] for given in guests.values()]) for name in GuestResources.model_fields},
        "guests": guests,
        "workloads": {workload.name: _workload(workload) for workload in cell.workloads if workload.tile == 1},
        "warm": cell.warm,
    }


def _shared(values: list[Any]) -> Any:
    return values[0] if values and all(value == values[0] for value in values) else None


def _workload(workload: WorkloadPlan) -> dict[str, Any]:
    places = {"on": workload.source} if workload.target is None else {"from": workload.source, "to": workload.target}
    names = {key: guest_of(place) for key, place in places.items()}
    return {"kind": workload.kind, **names, "params": workload.params.model_dump(mode="json", by_alias=True)}
