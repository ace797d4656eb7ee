"""What a cell got of what was set: each lever of the scenario, held against its bound (a manipulation check).

The bounds are those of the scenario's language (`model/scenarios/lever.py`). Everything is read from what a record has,
so that older ones are judged as well; what they lack cannot be told.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from vmlab.analysis.cell_shape import CellDocument, LeverDocument
from vmlab.analysis.figures.counted_cells import counts, was_switched
from vmlab.analysis.figures.over_tiles import overlap_of
from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.coverage import Window, covered
from vmlab.analysis.statistics.descriptive import mean
from vmlab.model.grouping import grouped
from vmlab.model.names import HOST_PLACE, guest_key
from vmlab.model.quantities import parse_pace
from vmlab.model.results import NetworkProof
from vmlab.model.run import Outcome
from vmlab.model.sample import Sample
from vmlab.model.scenarios.lever import TILES, Lever, MarkedKey, is_above, is_below, levers_of
from vmlab.workloads.metrics import SHARES
from vmlab.workloads.pace import DELIVERED
from vmlab.workloads.registry import kinds

WAITED = 0.1
"""Of all the CPU time that guests with CPU shares wanted, the part that they waited for, from which on they compete."""
BESIDE = 25.0
"""In percent of one CPU, what QEMU's threads may use that are no virtual CPUs, and that are in what a guest used."""
_CPU, _DELAY = "guest_cpu_percent", "guest_vcpu_delay_percent"
_NO_BIND = "the limit did not bind"


@dataclass(frozen=True, slots=True)
class GuestCpu:
    """The mean over a span, in percent of one CPU: of what a guest used, and of what its vCPUs waited for.

    The latter is None where the kernel does not count it.
    """

    ran: float
    waited: float | None


@dataclass(frozen=True, slots=True)
class CpuSeen:
    """CPU time of guests by their keys: while workloads ran, and until the first of them ended; {} where unknown."""

    whole: Mapping[str, GuestCpu] = field(default_factory=dict)
    contended: Mapping[str, GuestCpu] = field(default_factory=dict)

    @classmethod
    def of(cls, cell: CellDocument, known: CellTimeline, samples: Sequence[Sample], window: Window) -> CpuSeen:
        """As the recorder saw it in the window of a cell, of guests that have a share or a quota."""
        levers = ("cpu_shares", "cpu_quota")
        keys = [guest_key(tile, name) for tile, name, own in _guests(cell) if any(own.get(one) for one in levers)]
        ends = [span[1] for one in known.workloads.values() if (span := one.span) is not None]
        first = min(ends, default=window.host[1])
        together = Window.plain(window.host[0], max(window.host[0], min(first, window.host[1])))
        return cls(_used(keys, samples, window), _used(keys, samples, together))


def _used(keys: Sequence[str], samples: Sequence[Sample], window: Window) -> dict[str, GuestCpu]:
    found = covered(samples, [f"{metric}[{key}]" for key in keys for metric in (_CPU, _DELAY)], window)
    seconds = window.guests[1] - window.guests[0]
    means = {name: one.over(seconds) for name, one in found.items()}
    used = {}
    for key in keys:
        if (ran := means.get(f"{_CPU}[{key}]")) is not None:
            used[key] = GuestCpu(ran, means.get(f"{_DELAY}[{key}]"))
    return used


def lever_documents(cell: CellDocument, seen: CpuSeen) -> list[LeverDocument]:
    """All levers of a cell that were set and of which something can be seen; none of one that was changed meanwhile."""
    if was_switched(cell) or cell.looped:
        return []
    return [
        *_shares(cell, seen.contended),
        *_quotas(cell, seen.whole),
        *_bandwidths(cell),
        *_caches(cell),
        *_proved(cell),
        *_data_disks(cell),
        *_params(cell),
        *_tiles(cell),
        *_host_memory(cell),
    ]


def judged_over_repeats(cells: Sequence[CellDocument]) -> list[CellDocument]:
    """The cells, where what was got of a lever is off on average over the repeats of a point: not delivered in any.

    The figures of a point are means over its repeats, and so is what they got of a lever that varies by chance.
    """
    passed = (cell for cell in cells if counts(cell) and cell.outcome == Outcome.PASSED)
    points = grouped((_point_of(cell, one), one) for cell in passed for one in cell.delivered if _is_of_mean(one))
    off = {point for point, repeats in points.items() if _is_off(repeats)}
    return [_not_delivered(cell, off) if off and counts(cell) else cell for cell in cells]


def _is_of_mean(one: LeverDocument) -> bool:
    return one.cell_within_percent != one.within_percent and one.delivered is not None


def _point_of(cell: CellDocument, one: LeverDocument) -> tuple[object, ...]:
    axes = tuple((name, repr(value)) for name, value in sorted(cell.axes.items()))
    return one.lever, one.where, one.tile, one.configured, cell.hypervisor, axes


def _is_off(repeats: Sequence[LeverDocument]) -> bool:
    """Whether the mean over repeats of one point is."""
    one, got = repeats[0], mean([each.got for each in repeats if isinstance(each.got, float)])
    if isinstance(one.configured, str):
        return False
    return is_above(one.configured, got, one.within_percent) or is_below(one.configured, got, one.within_percent)


def _not_delivered(cell: CellDocument, off: Collection[tuple[object, ...]]) -> CellDocument:
    levers = [
        replace(one, delivered=False) if _is_of_mean(one) and _point_of(cell, one) in off else one
        for one in cell.delivered
    ]
    return replace(cell, delivered=levers)


@cache
def _of_guests() -> dict[str, MarkedKey]:
    # Pydantic would delay the console's first picture.
    from vmlab.model.scenarios.guest import GuestAttributes

    return levers_of(GuestAttributes)


def _judged(
    lever: Lever, key: str, configured: float, got: float | None, because: str = "", *, tells: bool = True, **of: Any
) -> LeverDocument:
    """A lever whose effect is an amount. It cannot be told of without that amount, and unless it `tells` anything."""
    given: dict[str, Any] = {"guest": "", "workload": "", "tile": None, **of}
    found = LeverDocument(
        lever=key,
        configured=configured,
        got=got,
        unit=lever.unit,
        within_percent=lever.within,
        cell_within_percent=lever.of_cell,
        delivered=None,
        because=because,
        name=lever.name,
        **given,
    )
    if got is None or not tells:
        return found
    above, below = lever.above(configured, got), lever.below(configured, got)
    if lever.limit and below:
        return replace(found, because=_NO_BIND)
    return replace(found, delivered=not (above or below), because="")


def _amount(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _guests(cell: CellDocument) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """The guests of each tile, by the tile and the guest's name, with their attributes."""
    guests = cell.settings.get("guests")
    if isinstance(guests, dict):
        for tile in range(1, _tiles_of(cell) + 1):
            yield from ((tile, name, own) for name, own in guests.items() if isinstance(own, dict))


def _tiles_of(cell: CellDocument) -> int:
    return max((one.tile for one in cell.workloads), default=1)


def _shares(cell: CellDocument, contended: Mapping[str, GuestCpu]) -> Iterator[LeverDocument]:
    """CPU shares of the guests that worked, while all of them did."""
    key, lever, _ = _of_guests()["cpu_shares"]
    found: dict[tuple[int, str], dict[str, float]] = {}
    for taken in cell.measurements:
        if taken.metric in SHARES and taken.value is not None:
            found.setdefault((taken.tile, taken.guest), {})[taken.metric] = taken.value
    shares = {place: (own[SHARES[0]], own[SHARES[1]]) for place, own in found.items() if own.keys() >= {*SHARES[:2]}}
    why = _no_contest({guest_key(*place): own[0] for place, own in shares.items()}, contended)
    for (tile, guest), (configured, got) in shares.items():
        yield _judged(lever, key, configured, got, why, tells=not why, guest=guest, tile=tile)


def _no_contest(configured: Mapping[str, float], contended: Mapping[str, GuestCpu]) -> str:
    """Why the guests' shares decide nothing; empty where they did.

    A share is what a guest gets where all want at least theirs. What a guest wanted is what it used and what its vCPUs
    waited for.
    """
    known = {key: (one.ran, one.waited) for key, one in contended.items() if one.waited is not None}
    if not configured.keys() <= known.keys():
        return "it is not known how long the guests waited for a CPU"
    used = sum(known[key][0] for key in configured)
    wanted = {key: sum(known[key]) for key in configured}
    if any(wanted[key] < share * used for key, share in configured.items()):
        return "a guest wanted less than its share, so that nothing was to be shared out"
    if sum(wanted.values()) - used < WAITED * sum(wanted.values()):
        return "the guests did not compete for the CPU"
    return ""


def _quotas(cell: CellDocument, whole: Mapping[str, GuestCpu]) -> Iterator[LeverDocument]:
    key, lever, _ = _of_guests()["cpu_quota"]
    for tile, guest, own in _guests(cell):
        quota, vcpus = _amount(own.get(key)), _amount(own.get("vcpus"))
        if quota is not None and vcpus:
            used = whole.get(guest_key(tile, guest))
            got = used.ran / vcpus if used else None
            why = "" if used else "its CPU time was not recorded"
            if got is not None and lever.above(quota, got) and not lever.above(quota, got - BESIDE / vcpus):
                why = "QEMU's other threads, which a quota does not limit, may have used the rest"
            yield _judged(lever, key, quota, got, why, tells=not why, guest=guest, tile=tile)


def _bandwidths(cell: CellDocument) -> Iterator[LeverDocument]:
    """Limits of the guests' networks, by what went through them in the busier direction."""
    key, lever, _ = _of_guests()["bandwidth"]
    proofs = {(one.guest, one.direction): one for one in cell.network_proof if one.device == "limit"}
    for tile, guest, own in _guests(cell):
        rate, place = _amount(own.get(key)), guest_key(tile, guest)
        to, by, both = (proofs.get((place, direction)) for direction in ("to", "from", "both"))
        if rate is not None and to is not None and by is not None and to.most_bytes:
            got = _passed_rate(lever, rate, to.most_bytes, (to, by), both)
            yield _judged(lever, key, rate, got, guest=guest, tile=tile)


def _passed_rate(
    lever: Lever, rate: float, most: int, ways: tuple[NetworkProof, NetworkProof], both: NetworkProof | None
) -> float:
    """Bits a second. A proof has no time, but `most` bytes are what the limit and its bound let pass in it."""
    counted = [one.carried_bytes for one in ways]
    beside = max(0, (both.least_bytes or 0) - sum(counted)) if both is not None else 0
    return (max(counted) + beside) * rate * (1 + lever.within / 100) / most


def _caches(cell: CellDocument) -> Iterator[LeverDocument]:
    """Cache modes of the guests' disks; a mode that a guest has for several files is one."""
    key, lever, _ = _of_guests()["cache"]
    modes = grouped(((one.guest, one.expected.partition(":")[0]), one.agrees) for one in cell.cache_proof)
    for (guest, mode), agree in modes.items():
        got = mode if all(agree) else "another"
        made = _judged(lever, key, 0.0, None, guest=guest)
        yield replace(made, configured=mode, got=got, delivered=all(agree))


def _proved(cell: CellDocument) -> Iterator[LeverDocument]:
    """What QEMU and the kernel showed of guests' attributes."""
    levers = {one.key: one.lever for one in _of_guests().values()}
    for proof in cell.lever_proof:
        if (lever := levers.get(proof.lever)) is not None:
            made = _judged(lever, proof.lever, 0.0, None, guest=proof.guest, tile=proof.tile)
            yield replace(made, configured=proof.expected, got=proof.found, delivered=proof.agrees)


def _data_disks(cell: CellDocument) -> Iterator[LeverDocument]:
    """What guests with a data disk say of it."""
    disks = {(one.tile, one.guest): one.data_disk for one in cell.seen_in_guests}
    for tile, guest, own in _guests(cell):
        disk = disks.get((tile, guest))
        for name, seen in (("data_queues", "queues"), ("read_ahead_bytes", "read_ahead_bytes")):
            key, lever, default = _of_guests()[name]
            configured = _amount(own.get(name))
            if configured is not None and own.get(name) != default:
                got = None if disk is None else float(getattr(disk, seen))
                why = "" if disk else "the guest was not asked for it"
                yield _judged(lever, key, configured, got, why, guest=guest, tile=tile)


def _params(cell: CellDocument) -> Iterator[LeverDocument]:
    """Levers among the parameters of workloads: the pace, and what their kinds read back."""
    workloads = cell.settings.get("workloads")
    percents = {(one.workload, one.tile): one.value for one in cell.measurements if one.metric == DELIVERED}
    passed = {(one.workload, one.tile) for one in cell.workloads if one.outcome == Outcome.PASSED}
    for name, one in workloads.items() if isinstance(workloads, dict) else ():
        kind, params = kinds().get(str(one.get("kind", ""))), one.get("params")
        for key, lever, _ in levers_of(kind.Params).values() if kind and isinstance(params, dict) else ():
            configured = _pace(params.get(key)) if key == "pace" else _amount(params.get(key))
            for tile in range(1, _tiles_of(cell) + 1) if configured is not None else ():
                assert configured is not None
                share = 100.0 if (name, tile) in passed else None
                if key == "pace":
                    share = percents.get((name, tile))
                got = None if share is None else configured * share / 100
                why = "" if got is not None else "it was not measured"
                yield _judged(lever, key, configured, got, why, workload=name, tile=tile)


def _pace(value: Any) -> float | None:
    """Operations a second, as records have them: a number, or as it is written."""
    with suppress(ValueError):
        return parse_pace(value) if isinstance(value, str) else _amount(value)
    return None


def _tiles(cell: CellDocument) -> Iterator[LeverDocument]:
    """Whether the tiles of each workload ran at the same time."""
    for name in dict.fromkeys(one.workload for one in cell.workloads):
        if sum(one.workload == name for one in cell.workloads) > 1:
            share = overlap_of(cell.workloads, name)
            why = "" if share is not None else "it is not known when each tile ran"
            yield _judged(TILES, "tiles", 100.0, None if share is None else 100 * share, why, workload=name)


def _host_memory(cell: CellDocument) -> Iterator[LeverDocument]:
    """Memory of a limited host, page cache included: what its guests and the cache below them had of it on average."""
    # Pydantic would delay the console's first picture.
    from vmlab.model.scenarios.host_settings import Host

    limit, used, cached = (cell.host.get(f"ordered_memory_{name}_bytes") for name in ("limit", "used", "cached"))
    if limit is not None:
        key, lever, _ = levers_of(Host)["memory_bytes"]
        got = used.mean + cached.mean if used is not None and cached is not None else None
        why = "" if got is not None else "it was not recorded"
        yield _judged(lever, f"{HOST_PLACE}.{key}", limit.mean, got, why, guest=HOST_PLACE)
