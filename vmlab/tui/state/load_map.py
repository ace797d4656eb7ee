"""A small map of who loads whom: a row for each guest, a lane for each workload from its client to its server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vmlab.model.quantities import format_bytes
from vmlab.plan.terms import GuestPlan, Plan

_LANE = 6
_TONES = ("one", "three", "two", "four", "five")
Piece = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Road:
    """One workload: from the row of its client to the row of its server, or in one place alone."""

    name: str
    client: int
    server: int | None


def load_map(plan: Plan, width: int, *, plain: bool = False) -> list[list[Piece]]:
    """Rows of pieces for one tile of `plan`: all guests and workloads that any of its cells has."""
    guests = {guest.guest: guest for cell in plan.cells for guest in cell.guests if guest.tile == 1}
    names = list(guests)
    roads: dict[str, Road] = {}
    for cell in plan.cells:
        for workload in cell.workloads:
            if workload.tile != 1:
                continue
            source, target = _name(workload.source), None if workload.target is None else _name(workload.target)
            for place in (source, target):
                if place is not None and place not in names:
                    names.append(place)
            key = f"{workload.name} {source}"
            roads[key] = Road(workload.name, names.index(source), None if target is None else names.index(target))
    lanes = sum(len(road.name) + _LANE for road in roads.values())
    labels = _labels(names, guests, width - lanes)
    left = max(map(len, labels), default=0) + 2
    rows: list[list[Piece]] = [[(label.ljust(left), "plain")] for label in labels]
    for number, road in enumerate(_that_fit(roads.values(), width - left)):
        _draw(rows, road, _TONES[number % len(_TONES)], plain=plain)
    return rows


def _name(key: str) -> str:
    """``t1-file-a`` to ``file-a``; ``host`` stays."""
    return key if key == "host" else key.partition("-")[2]


def _labels(names: Sequence[str], guests: Mapping[str, GuestPlan], room: int) -> list[str]:
    """As much about each guest as leaves room for all lanes: with its size, with its roles, or its name alone."""
    for label in (_sized, _with_roles):
        labels = [label(name, guests.get(name)) for name in names]
        if max(map(len, labels), default=0) + 2 <= room:
            return labels
    return list(names)


def _sized(name: str, guest: GuestPlan | None) -> str:
    if guest is None:
        return name
    return f"{_with_roles(name, guest)}, {guest.vcpus} vCPU, {format_bytes(guest.memory_bytes)}"


def _with_roles(name: str, guest: GuestPlan | None) -> str:
    return name if guest is None else f"{name}  {'+'.join(guest.roles) or 'no role'}"


def _that_fit(roads: Iterable[Road], room: int) -> list[Road]:
    found: list[Road] = []
    for road in roads:
        room -= len(road.name) + _LANE
        if room < 0:
            break
        found.append(road)
    return found


def _draw(rows: Sequence[list[Piece]], road: Road, tone: str, *, plain: bool) -> None:
    """Add one lane: a dot where the client is, an arrow where the server is, a line between."""
    dot, arrow, line, down, top, bottom = "o<-|,'" if plain else "●◀─│╮╯"
    blank = " " * (len(road.name) + _LANE)
    ends = (road.client, road.client if road.server is None else road.server)
    first, last = min(ends), max(ends)
    for place, row in enumerate(rows):
        if not first <= place <= last:
            text = blank
        elif road.server is None or first == last:
            text = f"{dot} {road.name}"
        elif place in (first, last):
            head = dot if place == road.client else arrow
            corner = top if place == first else bottom
            text = f"{head}{line}{corner} {road.name}" if place == first else f"{head}{line}{corner}"
        else:
            text = f"  {down}"
        row.append((text.ljust(len(blank)), tone))


TOO_MUCH = "MORE than"


def plan_lines(plan: Plan, host_memory: int, disk_free: int) -> list[tuple[str, str]]:
    """Label and value of what the plan needs; sizes against what the host has (`TOO_MUCH` where that is less)."""
    memory, disk = format_bytes(host_memory), format_bytes(disk_free)
    fits = f"of {memory} available" if plan.memory_bytes <= host_memory else f"{TOO_MUCH} the {memory} available"
    room = f"of {disk} free" if plan.disk_bytes <= disk_free else f"{TOO_MUCH} the {disk} free"
    return [
        ("cells", f"{len(plan.cells)}, up to {plan.guests} guests at a time"),
        ("memory", f"{format_bytes(plan.memory_bytes)} for guests, {fits}"),
        ("disk", f"{format_bytes(plan.disk_bytes)} written, {room}"),
    ]
