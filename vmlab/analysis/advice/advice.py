"""Advice from a recording: which disks' cache mode matters on this host, with the figures that carry it, or none.

The rules, which docs/how-to/own-hypervisor.md has in words:

- Advice needs a known disk of the host below the file, with its figures. What a QEMU moves (/proc/PID/io) is what it
  reads through the host's block layer, and says nothing of a disk that it reaches in another way: over the network, by
  a driver of its own or another program, or in a file on NFS, FUSE, ZFS, tmpfs and the like (`Storage`). Of such a
  disk, and of an overlay that reads one or lies on two disks of the host, it is said what is not known, and no run is
  proposed.
- A disk that leaves out the host's page cache (none, directsync), whose guest waited for the host's disk and for
  nothing above it, matters where the host has memory for a cache: with writeback the host could take writes in, and
  keep what is read again.
- A disk that uses the page cache (writeback, writethrough, unsafe) matters where the cache served a good part of what
  the guest read: with none that part would have to come from the disk. Where it served next to nothing, none costs the
  guest nothing of that, and gives the host its memory back.
- Whatever else is known of a disk carries no advice, and why not is said, as is what a guest lacks beside its disks.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from vmlab.analysis.advice.disk_evidence import DiskEvidence, evidence_of
from vmlab.analysis.shape import DomainDocument, RunDocument
from vmlab.model.errors import UsageError
from vmlab.model.quantities import format_bytes, format_seconds
from vmlab.model.results import mean_of
from vmlab.model.visible import visible_values
from vmlab.telemetry.domains.hurting import DELAYED
from vmlab.telemetry.sample_summary import CPU_BUSY

LEAST_SECONDS = 60.0
"""A shorter recording says nothing: it may be any minute of a guest's day."""
LEAST_BYTES = 16 * 2**20
"""A guest that moved less has not used its disk."""
WAITS_QUEUE = 0.5
"""Requests under way on average, from which on a guest has waited for its disk for a good part of the time."""
WAITS_MS = 1.0
"""Milliseconds that a request took on average, from which on there is a wait that memory could shorten."""
BUSY_PERCENT = 10.0
"""Percent of the time in which the host's disk was busy, from which on a guest may have waited for it."""
ABOVE = 3.0
"""How many times as long a guest's request may take as one of the host's disk, if it is the disk that it waits for."""
FREE_PERCENT = 10.0
"""Percent of the host's memory that is available, from which on it has room for a page cache."""
MUCH_PERCENT, LITTLE_PERCENT = 30.0, 5.0
"""Percent of what a guest read that the page cache served, from which on it matters, and up to which it does not."""
MORE = 1.5
"""How many times as much as the guest read its QEMU may have read, so that it was read for the guest alone."""
KSM_LITTLE_PERCENT, KSMD_MUCH_PERCENT = 1.0, 5.0
"""Percent of the host's memory that KSM saved, and of a CPU that ksmd used for it."""
_NO_FLUSHES = "how often it flushed is not known, and a flush waits for the disk in each mode"
_NOTHING_BELOW = "nothing is known of the host's disk below its file"
COPY_RUN = "vmlab advise {run} --disk {disk} -o try.yaml && vmlab run try.yaml"
"""Measures a cache mode with the load that was recorded."""
KSM_RUN = "vmlab run memory-sharing"


@dataclass(frozen=True, slots=True)
class Advice:
    """What concerns `subject`, a disk or the host's KSM. `matters` is one sentence, `why` has one for each figure.

    `run` is the command that would measure it on this host; empty where there is no advice.
    """

    subject: str
    matters: str
    why: tuple[str, ...] = ()
    run: str = ""

    @property
    def disk(self) -> str:
        """``GUEST/DISK``, where it concerns a disk."""
        return "/".join(self.subject.rsplit(" ", 1))


@dataclass(frozen=True, slots=True)
class Advised:
    """All advice, and for which disks there is none, with the reason."""

    advice: tuple[Advice, ...]
    none: tuple[Advice, ...]


def advise(document: RunDocument) -> Advised:
    """Of a recording's document; of another run's all is empty."""
    recording = document.recording
    if recording is None:
        return Advised((), ())
    if recording.seconds < LEAST_SECONDS:
        short = format_seconds(recording.seconds)
        return Advised((), (Advice("the recording", f"it is {short} long, and less than a minute says nothing"),))
    found = [_of_disk(evidence) for evidence in evidence_of(document)] + list(_of_ksm(document))
    found = [(weight, _runnable(document.run.id, one)) for weight, one in found]
    found.sort(key=lambda one: one[0], reverse=True)
    given = tuple(one for _, one in found if one.run)
    return Advised(given, (*_of_cpus(recording.domains), *(one for _, one in found if not one.run)))


def advice_document(document: RunDocument) -> dict[str, Any]:
    """The document ``vmlab.advice/1`` of a recording. Raises UsageError for another run."""
    demand_recording(document)
    return {"schema": "vmlab.advice/1", "run": document.run.id, **asdict(advise(visible_values(document)))}


def demand_recording(document: RunDocument) -> None:
    """Raises UsageError for a run that is no recording of the host."""
    if document.recording is None:
        raise UsageError(f"{document.run.id} is not a recording of the host; `vmlab record` makes one")


def _runnable(run: str, advice: Advice) -> Advice:
    """With the names of the recording and the disk in its command."""
    return replace(advice, run=advice.run.format(run=shlex.quote(run), disk=shlex.quote(advice.disk)))


def _of_disk(disk: DiskEvidence) -> tuple[float, Advice]:
    """The advice for one disk, and what it weighs: bytes that it moved."""
    moved = disk.read_bytes + disk.written_bytes
    if disk.not_local:
        return (moved if moved == moved else 0.0), Advice(disk.name, disk.not_local)
    if moved != moved:
        return 0.0, Advice(
            disk.name, f"nothing tells what the guest reads and writes; libvirt would{_by_process(disk)}"
        )
    if disk.direct is None:
        return 0.0, Advice(disk.name, "its cache mode is not known")
    if moved < LEAST_BYTES:
        return moved, Advice(
            disk.name, f"the guest moved {format_bytes(moved)} in {_time(disk)}, which is next to nothing"
        )
    return moved, _direct(disk) if disk.direct else _cached(disk)


def _by_process(disk: DiskEvidence) -> str:
    """What is known where the guest's own requests are not."""
    read, written = disk.process_read_bytes, disk.process_written_bytes
    if read + written != read + written:
        return ""
    return f"; its QEMU had {format_bytes(read)} read from the host's disks, and wrote {format_bytes(written)}"


def _direct(disk: DiskEvidence) -> Advice:
    waits = _waits(disk)
    if not waits:
        return Advice(disk.name, "how long its requests took is not known")
    if not (disk.queue >= WAITS_QUEUE and disk.await_ms >= WAITS_MS):
        return Advice(disk.name, f"cache {disk.cache} costs it little: {waits}")
    if (other := _not_the_disk(disk)) is not None:
        return Advice(disk.name, f"{waits}, but {other}")
    if disk.available_percent != disk.available_percent:
        return Advice(disk.name, f"{waits}, but how much of the host's memory was available is not known")
    memory = f"{format_bytes(disk.available_bytes)} of the host's memory"
    available = f"{memory}, {disk.available_percent:.0f} %, was available"
    if not disk.available_percent >= FREE_PERCENT:
        return Advice(disk.name, f"the host has no room for a cache: {available}, and {waits}")
    moved = f"it read {format_bytes(disk.read_bytes)} and wrote {format_bytes(disk.written_bytes)} in {_time(disk)}"
    taken = f"{disk.written_percent:.0f} % were writes, which the page cache would take in at once"
    unknown = [_NO_FLUSHES] if math.isnan(disk.flushes) else []
    return Advice(
        disk.name,
        f"cache {disk.cache} may cost this guest time: it leaves out the host's page cache, and the guest waited",
        (waits, f"{moved}: {taken}", *unknown, *_busy(disk), f"{available} for a page cache"),
        COPY_RUN,
    )


def _not_the_disk(disk: DiskEvidence) -> str | None:
    """Why it is not the host's disk that a guest waited for; None where it is."""
    if disk.busy_percent != disk.busy_percent:
        return _NOTHING_BELOW
    if disk.busy_percent < BUSY_PERCENT:
        busy = f"{disk.busy_percent:.0f} % of the time"
        return f"the host's disk {disk.below} was busy for {busy}: something else held them up"
    if disk.below_await_ms != disk.below_await_ms:
        return f"how long requests of the host's disk {disk.below} took is not known"
    if disk.await_ms > ABOVE * disk.below_await_ms:
        below = f"those of the host's disk {disk.below} took {disk.below_await_ms:.2g} ms"
        return f"{below}: something above it held them up, such as a limit on the guest"
    return None


def _cached(disk: DiskEvidence) -> Advice:
    served, asked = disk.served_percent, f"it read {format_bytes(disk.read_bytes)} in {_time(disk)}"
    if disk.read_bytes < LEAST_BYTES:
        return Advice(disk.name, f"{asked}, too little to say what the page cache serves")
    if served != served:
        return Advice(
            disk.name,
            "what the page cache served is not known: its QEMU read other disks or shared folders, too, or is not ours",
        )
    if disk.busy_percent != disk.busy_percent:
        return Advice(disk.name, _NOTHING_BELOW)
    read = f"{asked}, and its QEMU had {format_bytes(disk.from_disk_bytes)} read from the host's disk"
    why = f"{read}: the page cache served {served:.0f} %"
    cached = disk.cached_bytes
    held = [f"the host's page cache held {format_bytes(cached)}"] if cached == cached else []
    if disk.from_disk_bytes > MORE * disk.read_bytes:
        return Advice(disk.name, f"{read}, which is more: it was read for something else, too, such as a block job")
    if served >= MUCH_PERCENT:
        matters = f"cache {disk.cache} saves this guest reads: with none they would come from the disk"
        return Advice(disk.name, matters, (why, *filter(None, [_waits(disk)]), *_busy(disk), *held), COPY_RUN)
    if served <= LITTLE_PERCENT:
        matters = f"cache {disk.cache} serves next to none of its reads, and keeps them in the host's memory"
        return Advice(disk.name, matters, (why, *_busy(disk), *held), COPY_RUN)
    return Advice(disk.name, f"the page cache served {served:.0f} % of its reads, which is neither much nor nothing")


def _waits(disk: DiskEvidence) -> str:
    """How its requests waited; empty where that is not known."""
    if disk.queue + disk.await_ms != disk.queue + disk.await_ms:
        return ""
    return f"on average {disk.queue:.2g} of its requests were under way, and each took {disk.await_ms:.2g} ms"


def _busy(disk: DiskEvidence) -> Iterator[str]:
    """What the host's disk below did, as far as it is known."""
    await_ms, moved = disk.below_await_ms, disk.below_bytes
    parts = [f"the host's disk {disk.below} was busy for {disk.busy_percent:.0f} % of the time"]
    parts += [f", with {await_ms:.2g} ms for a request"] if await_ms == await_ms else []
    parts += [f"; it moved {format_bytes(moved)} for all guests and the host itself"] if moved == moved else []
    yield "".join(parts)


def _of_cpus(domains: Sequence[DomainDocument]) -> Iterator[Advice]:
    """The guests that waited for a CPU, or whose own had no time left: no cache mode mends that."""
    for domain in domains:
        vcpus = domain.vcpus or math.nan
        delay, used = (mean_of(domain.figures, name) / vcpus for name in ("vcpu_delay_percent", "cpu_percent"))
        if delay >= DELAYED:
            yield Advice(domain.name, f"it waited {delay:.0f} % of the time for a CPU, which no cache mode changes")
        elif used >= CPU_BUSY:
            busy = f"its CPUs were {min(used, 100.0):.0f} % busy"
            yield Advice(domain.name, f"{busy}, which no cache mode changes")


def _time(disk: DiskEvidence) -> str:
    return format_seconds(disk.seconds)


def _of_ksm(document: RunDocument) -> Sequence[tuple[float, Advice]]:
    """KSM that yields next to nothing for the CPU that it takes.

    What it yields is the saved memory less KSM's own structures (the kernel's ``general_profit``), where that is known.
    It is also a lower bound of what was saved, for recordings that have no zero pages in `ksm_saved_bytes`.
    """
    host = next((cell.host for cell in document.cells), {})
    names = ("ksm_run", "ksm_saved_bytes", "ksmd_cpu_percent", "memory_total_bytes")
    run, saved, cpu, memory = (mean_of(host, name) for name in names)
    if not run >= 0.5 or saved + cpu + memory != saved + cpu + memory:
        return []
    profit = mean_of(host, "ksm_profit_bytes", saved)
    saved = max(profit, saved)
    own = f", less {format_bytes(saved - profit)} for its own structures" if profit < saved else ""
    yields = f"it saved {format_bytes(saved)}, {100 * saved / memory:.1f} % of the memory{own}"
    yields += f", for {cpu:.1f} % of a CPU (ksmd)"
    if 100 * profit / memory < KSM_LITTLE_PERCENT and cpu >= KSMD_MUCH_PERCENT:
        return [(saved, Advice("KSM", "KSM takes CPU here and saves next to nothing", (yields,), KSM_RUN))]
    return [(saved, Advice("KSM", yields))]
