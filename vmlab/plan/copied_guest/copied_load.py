"""The load of a recorded disk as workloads of fio: its reads and its writes apart, each with its own rate, size and
depth, at random, in sequence, and with what it reads in the host's page cache; and a point of an axis for each phase.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from vmlab.model.domain import UNKNOWN, DomainDisk
from vmlab.model.quantities import exact_bytes, format_bytes, format_seconds, parse_bytes
from vmlab.model.run import SWITCHABLE
from vmlab.model.scenarios.recorded import MOST_DEPTH, Recorded, RecordedPhase, RecordedWay
from vmlab.plan.copied_guest.below_disk import look_below
from vmlab.plan.copied_guest.copied_scenario import VM, Keys, Line, Work, most_file_bytes
from vmlab.plan.copied_guest.found_guest import FoundDisk, FoundGuest
from vmlab.telemetry.source import THE_HOST, Roots
from vmlab.workloads.kinds.fio import MOST_BETWEEN_SYNCS, is_rate_at_random

ACCESS, PHASE, RANDOM, SEQUENTIAL = "access", "phase", "random", "sequential"
CACHED = "cached"
"""The value of the axis `access` with what the guest reads in the host's page cache, where the disk's mode keeps it."""
LATENCY = "latency_mean"
"""The metric that differs where the rates are the same."""
READS, WRITES = "reads", "writes"
WORDS = {READS: "read", WRITES: "write"}
"""What fio calls the ways of a load."""
AS_RECORDED = "recorded"
"""The order of the axis `access` where reads and writes have each their own, and both are known."""
_SECTOR, _PAGE, _MOST_BLOCK = 512, 4096, 2**24
DEPTH_NOISE = 0.05
"""Requests under way by which a mean may be above those that there were."""
_IDLE = RecordedWay.model_construct(rate=0.1, size=_PAGE, latency=0.0)
"""What stands for a way that a phase has not: fio cannot do nothing."""
_ROUNDED = 0.03
"""The part of a rate by which fio's, a whole number, may differ from it."""
_LEAST_FILE = 2**26
_LEAST_REQUESTS, _SHORTEST, _LONGEST = 100, 10, 60
"""How many requests fio is given time for, and seconds of that."""


class TracedOrder(NamedTuple):
    """How many reads, or writes, of a disk its block device had, and which `share` of them began where an earlier one
    had ended. `order` is ``random`` or ``sequential``; None where that tells neither, with `why`.
    """

    requests: int
    share: float
    order: str | None
    why: str = ""


Orders = Mapping[str, TracedOrder]
"""By ``reads`` and ``writes``; empty where nothing was traced."""


def fio_keys(way: RecordedWay, flushes: float | None = None) -> dict[str, Any]:
    """fio's parameters for a way, and for so many flushes in a second beside it, which only writes may have.

    Where so many requests were under way nearly all the time, the disk set the rate: fio keeps them under way, and has
    no rate. Else it takes as many places as were under way on average, and each is a job with its part of the rate: one
    job would wait for all its blocks before it waits for its rate, so that few were under way. They come at random, if
    fio can do that at this rate: at even distances none would ever wait for another, or all would, by chance.

    O_DIRECT takes whole sectors, and the file system whole pages, of which the number with the least factor is taken.
    Each flush comes after as many writes as there were for one, and after each at most.
    """
    unit = _PAGE if way.size >= _PAGE - _SECTOR else _SECTOR
    block = min(_MOST_BLOCK, unit * _nearest(way.size / unit))
    keys: dict[str, Any] = {"block": exact_bytes(block)}
    if way.in_flight is not None:
        keys["depth"] = way.in_flight
    else:
        places = places_of(way.depth)
        keys |= {"jobs": places, "rate": pace_text(each := way.rate / places)}
        if abs(round(each) - each) <= _ROUNDED * each and is_rate_at_random(round(each)):
            keys |= {"rate": pace_text(round(each)), "rate_process": "poisson"}
    if flushes is not None:
        keys["fdatasync"] = min(MOST_BETWEEN_SYNCS, max(1, round(way.rate / flushes)))
    return keys


def _nearest(ratio: float) -> int:
    """The whole number above 0 that differs from it by the least factor."""
    below = max(1, math.floor(ratio))
    return below + 1 if ratio * ratio > below * (below + 1) else below


def places_of(depth: float) -> int:
    """How many places requests take of which so many were under way on average (Little's law), rounded up."""
    return min(MOST_DEPTH, max(1, math.ceil(depth - DEPTH_NOISE)))


def pace_text(rate: float) -> str:
    """A rate as a scenario has it, with four figures or more: ``80.12/s``."""
    digits = max(0, 4 - math.floor(math.log10(rate)) - 1) if rate > 0 else 0
    text = f"{rate:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}/s"


def load_work(recorded: Recorded, orders: Orders) -> Work:
    """What the guest of a scenario does that copies the load, in the orders that a trace tells, else in both."""
    ways = [name for name in WORDS if any(name in phase.ways for phase in recorded.phases.values())]
    seconds = _seconds(recorded)
    has_no_pace = any(way.in_flight is not None for phase in recorded.phases.values() for way in phase.ways.values())
    return Work(
        partial(_workloads, recorded, ways, seconds),
        {name: {"time": "2 s"} for name in ways},
        f"The load of {recorded.domain}'s disk {recorded.disk}, as it was recorded, with each cache mode.",
        metrics=(LATENCY, "iops") if has_no_pace else (LATENCY,),
        target=recorded.disk,
        heading=tuple(_heading(recorded, ways, orders)),
        changes=tuple(f"cache-{mode}" for mode in SWITCHABLE),
        axes=partial(_axes, recorded, ways, orders),
        more={"recorded": recorded_keys(recorded)},
    )


def recorded_keys(recorded: Recorded) -> dict[str, Any]:
    """The key ``recorded`` as a scenario has it."""
    names = ("run", "domain", "disk", "seen_by", "advice")
    said = {name: getattr(recorded, name) for name in names if getattr(recorded, name)}
    said |= {} if recorded.flushes_known else {"flushes_known": False}
    return {**said, "phases": {name: _phase_keys(phase) for name, phase in recorded.phases.items()}}


def _phase_keys(phase: RecordedPhase) -> dict[str, Any]:
    ways: dict[str, dict[str, Any]] = {
        name: {"rate": pace_text(way.rate), "size": f"{way.size} B", "latency": f"{1000 * way.latency:.4f} ms"}
        for name, way in phase.ways.items()
    }
    for name, way in phase.ways.items():
        if way.in_flight is not None:
            ways[name]["in_flight"] = way.in_flight
    flushes = {} if phase.flushes is None else {"flushes": pace_text(phase.flushes)}
    return {"time": f"{phase.time:.1f} s", **ways, **flushes}


def _workloads(recorded: Recorded, ways: list[str], seconds: int, keys: Keys) -> dict[str, Keys]:
    """Those of the first phase; the points of the axes change them."""
    first = next(iter(recorded.phases.values()))
    return {
        name: {
            "kind": "fio",
            "on": VM,
            "rw": f"rand{WORDS[name]}",
            "time": f"{seconds} s",
            **_of_way(first, name, keys),
        }
        for name in ways
    }


def _of_way(phase: RecordedPhase, name: str, keys: Keys) -> dict[str, Any]:
    """A way of a phase, with files that are together no larger than what the phase moved."""
    way = phase.ways.get(name, _IDLE)
    found = fio_keys(way, phase.flushes if name == WRITES and way is not _IDLE else None)
    block = parse_bytes(found["block"])
    size = min(most_file_bytes(keys), max(_LEAST_FILE, int(way.rate * way.size * phase.time)))
    return {**found, "size": exact_bytes(max(1, size // found.get("jobs", 1) // block) * block)}


def _axes(recorded: Recorded, ways: list[str], orders: Orders, keys: Keys) -> Mapping[str, list[Line]]:
    told = _told(ways, orders)
    if len(told) == len(ways):
        name = next(iter(told.values())) if len({*told.values()}) == 1 else AS_RECORDED
        found = {ACCESS: [Line(name, _in_order(told), "as the trace of its block device tells")]}
    else:
        words = {RANDOM: "nothing tells the order of its requests: at random here", SEQUENTIAL: "and in sequence here"}
        whose = [name for name in ways if name not in told]
        if told:
            words[RANDOM] = f"nothing tells the order of its {whose[0]}: at random here"
        points = {name: {**dict.fromkeys(whose, name), **told} for name in words}
        found = {ACCESS: [Line(name, _in_order(point), words[name]) for name, point in points.items()]}
    if READS in ways:
        cached = {**_in_order({**dict.fromkeys(ways, RANDOM), **told}), "warm": "host"}
        found[ACCESS].append(Line(CACHED, cached, "with its files in the host's page cache, as the mode allows"))
    if len(recorded.phases) > 1:
        phases = [Line(name, _point(one, ways, keys), _words(one)) for name, one in recorded.phases.items()]
        found = {PHASE: phases, **found}
    return found


def _told(ways: list[str], orders: Orders) -> dict[str, str]:
    """The orders that a trace tells."""
    return {name: order for name in ways if name in orders and (order := orders[name].order) is not None}


def _in_order(point: Mapping[str, str]) -> dict[str, Any]:
    return {
        f"workloads.{name}.rw": WORDS[name] if order == SEQUENTIAL else f"rand{WORDS[name]}"
        for name, order in point.items()
    }


def _point(phase: RecordedPhase, ways: list[str], keys: Keys) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ways:
        own = _of_way(phase, name, keys)
        # What another phase has and this one has not.
        syncs = {"fdatasync": 0} if name == WRITES else {}
        own = {"depth": 1, "jobs": 1, "rate": None, "rate_process": "linear"} | syncs | own
        found |= {f"workloads.{name}.{key}": value for key, value in own.items()}
    return found


def _words(phase: RecordedPhase) -> str:
    """A phase as it was recorded."""
    parts = [
        f"{way.rate:.4g} {name}/s of {format_bytes(way.size)}, each {1000 * way.latency:.3g} ms"
        for name, way in phase.ways.items()
    ]
    parts += [] if phase.flushes is None else [f"{phase.flushes:.3g} flushes/s"]
    return f"recorded over {format_seconds(phase.time)}: {'; '.join(parts)}"


def _heading(recorded: Recorded, ways: list[str], orders: Orders) -> Iterator[str]:
    yield f"The load is that of {recorded.domain}'s disk {recorded.disk} in the recording {recorded.run}:"
    yield from (f"- {_words(phase)}" for phase in recorded.phases.values())
    for name in (one for one in ways if one in orders):
        traced = orders[name]
        order = f"{traced.order} here" if traced.order else f"{traced.why}: both here"
        yield (
            f"Of {traced.requests} {name} that its block device had, {100 * traced.share:.1f} % began where an earlier "
            f"one had ended: {order}."
        )
    both = len(_told(ways, orders)) < len(ways)
    again = ", and each load comes once at random and once in sequence" if both else ""
    yield f"Which blocks it read and wrote is not known: files are as large as what it moved, 1 GiB at most{again}."
    if READS in ways:
        yield f"How often it read the same again is not known: {CACHED} is as if the host's page cache had all of it."
    if not recorded.flushes_known:
        yield "How often it flushed is not known: no libvirt counts its requests, and a flush names no file."
    yield (
        "Rates are the recorded ones in each setting, so that the difference is in the latency; where the same number "
        "of requests was under way nearly all the time, the disk set the rate, and fio has none."
    )
    paced = [way for phase in recorded.phases.values() for way in phase.ways.values() if way.in_flight is None]
    if any("rate_process" in fio_keys(way) for way in paced):
        yield "Requests come at random (rate_process: poisson) at rates near a whole number, which fio takes alone."
    yield "`vmlab advise last` says after the run whether the copy is like the recording."


def _seconds(recorded: Recorded) -> int:
    """How long fio works in a cell: long enough for some requests of the slowest way."""
    slowest = min(way.rate for phase in recorded.phases.values() for way in phase.ways.values())
    return min(_LONGEST, max(_SHORTEST, math.ceil(_LEAST_REQUESTS / slowest)))


def recorded_guest(
    name: str,
    origin: str,
    size: tuple[int, int],
    accelerator: str,
    disks: Mapping[str, DomainDisk],
    here: Roots | None = THE_HOST,
) -> FoundGuest:
    """The guest as far as a recording has it, where its domain is not here any more; `size` are its vCPUs and bytes,
    `here` the files of its host, None where that may be another one.
    """
    guest = FoundGuest(name, origin, is_emulated=None if accelerator == UNKNOWN else accelerator == "tcg")
    vcpus, memory = size
    where = "the recording"
    guest.found.say("vcpus", vcpus or None, where)
    guest.found.say("memory", exact_bytes(memory) if memory else None, where)
    for target, named in disks.items():
        disk = FoundDisk(target, named.file or named.protocol, protocol=named.protocol)
        disk.found.say("cache", None if named.cache == UNKNOWN else named.cache, f"{target}, in {where}")
        disk.found.say("format", named.format if named.format in ("raw", "qcow2") else None, f"{target}, in {where}")
        disk.found.say("bus", "virtio" if target.startswith("vd") else None, f"{target}, by its name")
        look_below(disk, named, here)
        guest.disks.append(disk)
    return guest
