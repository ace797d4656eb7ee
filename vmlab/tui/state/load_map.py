"""A small map of who loads whom: a row for each guest, a lane for each workload from its client to its server."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from vmlab.model.names import guest_of
from vmlab.model.quantities import format_bytes
from vmlab.model.scenarios.reference import Reference
from vmlab.plan.estimate import disk_needed, memory_needed
from vmlab.plan.terms import GuestPlan, HostFacts, Plan
from vmlab.system.text_width import exactly, left, width_of, wrapped

_LANE = 6
_TONES = ("one", "three", "two", "four", "five")
Piece = tuple[str, str]


class WorkloadLink(NamedTuple):
    """One workload: from the row of its client to the row of its server, the same where it is in one place alone."""

    name: str
    client: int
    server: int


def load_map(plan: Plan, width: int, *, plain: bool = False) -> list[list[Piece]]:
    """Rows of pieces for one tile of `plan`: all guests and workloads that any of its cells has."""
    guests = {guest.guest: guest for cell in plan.cells for guest in cell.guests if guest.tile == 1}
    names = list(guests)
    links: dict[str, WorkloadLink] = {}
    for cell in plan.cells:
        for workload in cell.workloads:
            if workload.tile != 1:
                continue
            source, target = guest_of(workload.source), guest_of(workload.target or workload.source)
            names += [place for place in dict.fromkeys((source, target)) if place not in names]
            link = WorkloadLink(workload.name, names.index(source), names.index(target))
            links[f"{workload.name} {source}"] = link
    lanes = sum(len(link.name) + _LANE for link in links.values())
    labels = _labels(names, guests, width - lanes)
    left = max(map(width_of, labels), default=0) + 2
    rows: list[list[Piece]] = [[(exactly(label, left), "plain")] for label in labels]
    for number, link in enumerate(_that_fit(links.values(), width - left)):
        _draw(rows, link, _TONES[number % len(_TONES)], plain=plain)
    return rows


def _labels(names: Sequence[str], guests: Mapping[str, GuestPlan], room: int) -> list[str]:
    """As much about each guest as leaves room for all lanes: with its size, with its roles, or its name alone."""
    for label in (_sized, _with_roles):
        labels = [label(name, guests.get(name)) for name in names]
        if max(map(width_of, labels), default=0) + 2 <= room:
            return labels
    return list(names)


def _sized(name: str, guest: GuestPlan | None) -> str:
    if guest is None:
        return name
    return f"{_with_roles(name, guest)}, {guest.resources.vcpus} vCPU, {format_bytes(guest.resources.memory_bytes)}"


def _with_roles(name: str, guest: GuestPlan | None) -> str:
    return name if guest is None else f"{name}  {'+'.join(guest.roles) or 'no role'}"


def _that_fit(links: Collection[WorkloadLink], room: int) -> list[WorkloadLink]:
    taken = accumulate(len(link.name) + _LANE for link in links)
    return [link for link, columns in zip(links, taken, strict=True) if columns <= room]


def _draw(rows: Sequence[list[Piece]], link: WorkloadLink, tone: str, *, plain: bool) -> None:
    """Add one lane: a dot where the client is, an arrow where the server is, a line between."""
    dot, arrow, line, down, top, bottom = "o<-|,'" if plain else "●◀─│╮╯"
    blank = " " * (len(link.name) + _LANE)
    first, last = sorted((link.client, link.server))
    for place, row in enumerate(rows):
        if not first <= place <= last:
            text = blank
        elif first == last:
            text = f"{dot} {link.name}"
        elif place in (first, last):
            head = dot if place == link.client else arrow
            corner = top if place == first else bottom
            text = f"{head}{line}{corner} {link.name}" if place == first else f"{head}{line}{corner}"
        else:
            text = f"  {down}"
        row.append((left(text, len(blank)), tone))


TOO_MUCH = "MORE than"


def plan_lines(plan: Plan, host: HostFacts) -> list[tuple[str, str]]:
    """Label and value of what the plan needs; sizes against what the host has (`TOO_MUCH` where that is less)."""
    needed, written = memory_needed(plan, host), disk_needed(plan, host.layers)
    memory, disk = format_bytes(host.memory_available_bytes), format_bytes(host.disk_free_bytes)
    fits = f"of {memory} available" if needed <= host.memory_available_bytes else f"{TOO_MUCH} the {memory} available"
    room = f"of {disk} free" if written <= host.disk_free_bytes else f"{TOO_MUCH} the {disk} free"
    return [
        ("cells", f"{len(plan.cells)}, up to {plan.guests} guests at a time"),
        ("memory", f"{format_bytes(needed)} with QEMU, {fits}"),
        ("disk", f"{format_bytes(written)} written, {room}"),
    ]


_FEWEST = 4
"""So many claims are shown whatever the room."""


def published_lines(reference: Reference, width: int, room: int) -> list[list[Piece]]:
    """Its source, as many claims as fit into `room` lines of `width` columns, then what is different here.

    The first claims are shown in any case, and what is different here only where there is room for all of it.
    """
    said = list(dict.fromkeys(one.there or one.say for one in reference.claims if one.source == "publication"))
    lines: list[list[Piece]] = [[("Published", "title")]]
    lines += [[(text, "quiet")] for text in wrapped(reference.source, width)[:2]]
    shown = 0
    for claim in said:
        of_claim = _bullet(claim, width)
        more = shown + 1 < len(said)
        if shown >= _FEWEST and len(lines) + len(of_claim) + more > room:
            break
        lines += of_claim
        shown += 1
    if shown < len(said):
        return [*lines, [(f"  and {len(said) - shown} more claims", "quiet")]]
    here: list[list[Piece]] = [[("Different here", "title")]]
    here += [[(text, "quiet")] for text in wrapped(reference.here, width)]
    return [*lines, *here] if reference.here and len(lines) + len(here) <= room else lines


def _bullet(text: str, width: int) -> list[list[Piece]]:
    first, *others = wrapped(text, max(20, width - 2))
    return [[("- ", "accent"), (first, "plain")], *([("  ", "plain"), (text, "plain")] for text in others)]
