"""What a scenario asks of guests' networks and this host's kernel cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.placed_axes import PlacedAxis, PlacedValue
from vmlab.plan.scenario_file.problems import Place, Problem
from vmlab.plan.terms import CellPlan, HostFacts


def without_lacking(axes: Sequence[PlacedAxis], host: HostFacts) -> list[PlacedAxis]:
    """The axes, with the values that this host cannot have marked as absent, and the reason."""
    return [replace(axis, values=tuple(_marked(value, host.lacking) for value in axis.values)) for axis in axes]


def _marked(value: PlacedValue, lacking: Mapping[str, str]) -> PlacedValue:
    reasons = (_reason(place, setting.value, lacking) for place, setting in value.places.items())
    reason = next(filter(None, reasons), None)
    return value if reason is None else replace(value, settings=(), absent=reason)


def _reason(place: Place, value: Any, lacking: Mapping[str, str]) -> str | None:
    if len(place) != 3 or place[0] != "guests" or value in (None, "plain"):
        return None
    asked = {"network": str(value), "bandwidth": "bandwidth"}.get(str(place[2]))
    # The mapping may have to try things out, so it is only asked for what it can know.
    return None if asked is None else lacking.get(asked)


def lacked_by(cell: CellPlan, host: HostFacts) -> str | None:
    """The reason why the network of one of the cell's guests cannot be as it is planned; None where all can."""
    for guest in cell.guests:
        for key in ("network", "bandwidth"):
            reason = _reason(("guests", guest.guest, key), getattr(guest.resources, key), host.lacking)
            if reason is not None:
                return f"guest {guest.guest} has {key}: {getattr(guest.resources, key)}, but {reason}"
    return None


def unused_tunnels(scenario: Scenario) -> Iterator[Problem]:
    """A workload between guests behind the tunnel, while none goes through it: it would measure another network."""
    behind = {name for name, guest in scenario.guests.items() if guest.network == "vxlan"}
    ends = [(entry.source, entry.target) for entry in scenario.workloads.values() if entry.target is not None]
    if any((source in behind) is not (target in behind) for source, target in ends):
        return
    for _, target in ends:
        if target in behind:
            message = f"guest {target} is behind a tunnel, and no workload goes through it; leave other ends plain"
            yield Problem(("guests", target, "network"), message)
            return
