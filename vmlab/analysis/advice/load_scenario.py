"""A scenario whose guest is like a domain of a recording, and works as that did on one of its disks."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator
from dataclasses import replace

from vmlab.analysis.advice.advice import LEAST_SECONDS, advise, demand_recording
from vmlab.analysis.advice.recorded_load import load_ticks, phases_of
from vmlab.analysis.advice.traced_load import traced_orders, traced_ticks
from vmlab.analysis.shape import DomainDiskDocument, DomainDocument, RunDocument
from vmlab.analysis.statistics.sample_size import readings_needed
from vmlab.model.domain import UNKNOWN
from vmlab.model.errors import UsageError, VmlabError
from vmlab.model.quantities import format_seconds
from vmlab.model.sample import Sample
from vmlab.model.scenarios.recorded import Recorded
from vmlab.model.visible import visible_line, visible_values
from vmlab.plan.copied_guest.copied_load import TracedOrder, load_work, recorded_guest
from vmlab.plan.copied_guest.copied_scenario import copied_scenario
from vmlab.plan.copied_guest.found_guest import FoundDisk, FoundGuest
from vmlab.plan.copied_guest.guest_sources import guest_here
from vmlab.plan.copied_guest.trial import Trial
from vmlab.plan.scenario_file.problems import meant, shorten
from vmlab.store.reader import RunReader
from vmlab.store.samples import samples
from vmlab.telemetry.source import THE_HOST

_TRACED = "disk_traced_reads_per_second"
_TRACED_DEPTHS = ("disk_traced_read_depth", "disk_traced_write_depth")
_Disk = tuple[DomainDocument, DomainDiskDocument]


def load_scenario(reader: RunReader, document: RunDocument, disk: str, trial: Trial) -> tuple[str, str]:
    """The disk as ``DOMAIN/TARGET``, and the scenario's text. Without a `disk` it is the one that has advice, and of
    several, or where none has, the one with the most requests under way.

    Raises UsageError for what is no recording, for one that is shorter than advice takes, and where nothing tells what
    the disk's guest asked of it.
    """
    demand_recording(document)
    _demand_long_enough(document)
    domain, one = _named(document, disk) if disk else _busiest(document)
    name = disk_name(domain, one)
    ticks, flushes_known = load_ticks(_samples(reader), domain.name, one.target), True
    orders: dict[str, TracedOrder] = {}
    if _TRACED in one.figures:
        orders = traced_orders(_samples(reader), domain.name, one.target)
        if not ticks:
            ticks, flushes_known = traced_ticks(_samples(reader), domain.name, one.target), False
    phases = phases_of(ticks)
    if not phases:
        raise UsageError(_why_none(domain, one, name))
    advice = next(
        (given.matters for given in advise(visible_values(document)).advice if given.disk == visible_line(name)), ""
    )
    recorded = Recorded.model_construct(
        run=document.run.id,
        domain=visible_line(domain.name),
        disk=visible_line(one.target),
        seen_by="process" if domain.source == "process" else "libvirt",
        flushes_known=flushes_known,
        advice=advice,
        phases=phases,
    )
    work = load_work(recorded, orders)
    ways = {name for phase in phases.values() for name in phase.ways}
    work = replace(work, repeats=readings_needed(len(ways) * len(work.metrics)))
    return name, copied_scenario(_guest(document, domain, one), trial, work)


def _samples(reader: RunReader) -> Iterator[Sample]:
    return (sample for _, sample in samples(reader))


def _demand_long_enough(document: RunDocument) -> None:
    """A phase takes ten seconds, and a rate within 10 percent a hundred requests: less than a minute tells neither the
    usual load of a guest nor how it changes. Raises UsageError.
    """
    seconds = document.recording.seconds if document.recording else 0.0
    if seconds < LEAST_SECONDS:
        raise UsageError(
            f"{document.run.id} is {format_seconds(seconds)} long, and a load is copied from a minute or more; "
            "`vmlab record --for 5m` makes such a recording"
        )


def disk_name(domain: DomainDocument, disk: DomainDiskDocument) -> str:
    """By which users name a disk."""
    return f"{domain.name}/{disk.target}"


def _all(document: RunDocument) -> Iterator[_Disk]:
    for domain in document.recording.domains if document.recording else ():
        yield from ((domain, disk) for disk in domain.disks)


def _named(document: RunDocument, wanted: str) -> _Disk:
    """``DOMAIN/TARGET``, or a domain, of which it is the busiest disk. Raises UsageError for neither."""
    found = {disk_name(*one): one for one in _all(document)}
    if wanted in found:
        return found[wanted]
    of_domain = [one for one in found.values() if one[0].name == wanted]
    if not of_domain:
        raise UsageError(f"{document.run.id} has no disk {shorten(wanted)!r}; {meant(wanted, found)}")
    return max(of_domain, key=_under_way)


def _busiest(document: RunDocument) -> _Disk:
    found = list(_all(document))
    if not found:
        raise UsageError(f"{document.run.id} has no guest with a disk")
    advised = {given.disk for given in advise(visible_values(document)).advice}
    return max(found, key=lambda one: (visible_line(disk_name(*one)) in advised, _under_way(one)))


def _under_way(one: _Disk) -> float:
    figures = one[1].figures
    depth = figures.get("disk_queue_depth")
    if depth is None and _TRACED in figures:
        return sum(figures[name].mean for name in _TRACED_DEPTHS if name in figures)
    return -math.inf if depth is None else depth.mean


def _why_none(domain: DomainDocument, disk: DomainDiskDocument, name: str) -> str:
    if "disk_reads_per_second" not in disk.figures and _TRACED not in disk.figures:
        what = "QEMU without libvirt tells bytes alone" if domain.source == "process" else "libvirt told nothing of it"
        words = f"the load of {shorten(name)} cannot be copied: {what}, and no requests with their times"
        return f"{words}; `vmlab record --blktrace` may tell them" if domain.source == "process" else words
    if "disk_flushes_per_second" not in disk.figures and _TRACED not in disk.figures:
        return f"the load of {shorten(name)} cannot be copied: an older version recorded it; record it again"
    return f"there is no load of {shorten(name)} to copy: it has less than one request and 1 MiB in a second"


def _is_same(found: FoundDisk, disk: DomainDiskDocument) -> bool:
    """Whether a disk of today has the file and the cache mode that were recorded, as far as both are known."""
    cache = found.found.value("cache")
    same_mode = cache is None or disk.cache in (UNKNOWN, cache)
    return found.target == disk.target and same_mode and found.file in ("", disk.file or disk.protocol)


def _guest(document: RunDocument, domain: DomainDocument, disk: DomainDiskDocument) -> FoundGuest:
    """The domain as it is here now, where it was recorded here and its disk is the recorded one, or else as the
    recording has it: domains and files of another host are none of those here that are called like them.
    """
    host = document.run.host.get("hostname")
    is_here = host == platform.node()
    try:
        guest, _ = guest_here(domain.name) if is_here else (None, "")
    except (VmlabError, OSError, ValueError):
        guest = None
    if guest is not None and any(_is_same(one, disk) for one in guest.disks):
        return guest
    disks = {one.target: one for one in domain.disks}
    missing = f"as no domain of that name with such a disk {disk.target} is here"
    why = missing if is_here else f"made on {host or 'a host that it does not name'}"
    origin, size = f"the recording {document.run.id}, {why}", (domain.vcpus, domain.memory_bytes)
    return recorded_guest(domain.name, origin, size, domain.accelerator, disks, THE_HOST if is_here else None)
