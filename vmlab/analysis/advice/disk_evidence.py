"""The figures of one disk of a guest of the host's own that advice is made of; NaN for what was not recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vmlab.analysis.shape import (
    DomainDiskDocument,
    DomainDocument,
    RecordingDocument,
    RunDocument,
)
from vmlab.model.domain import DomainDisk, Storage, storage_of
from vmlab.model.results import Summary, mean_of

Figures = Mapping[str, Summary]
_READ = "disk_read_bytes_per_second"
_NOT_KNOWN = "what serves its reads is not known"


@dataclass(frozen=True, slots=True)
class DiskEvidence:
    """Bytes are those of all `seconds`. `from_disk_bytes` are those that the QEMU had read from the host's disks, NaN
    where it is not known whether for this disk; `process_bytes` are all that it read and wrote.

    `not_local` says why nothing of this host tells what the disk does; empty for one on a known local disk.
    `busy_percent`, `below_await_ms` and `below_bytes` are those of the host's disk that holds the file. `available` and
    `cached` memory is the host's.
    """

    name: str
    not_local: str
    cache: str
    direct: bool | None
    seconds: float
    read_bytes: float
    written_bytes: float
    from_disk_bytes: float
    process_read_bytes: float
    process_written_bytes: float
    await_ms: float
    queue: float
    flushes: float
    below: str
    busy_percent: float
    below_await_ms: float
    below_bytes: float
    available_bytes: float
    available_percent: float
    cached_bytes: float

    @property
    def written_percent(self) -> float:
        """The part of all bytes that were written."""
        moved = self.read_bytes + self.written_bytes
        return 100 * self.written_bytes / moved if moved > 0 else math.nan

    @property
    def served_percent(self) -> float:
        """The part of what the guest read that did not come from the host's disk; read-ahead may make it 0."""
        if not self.read_bytes > 0 or self.from_disk_bytes != self.from_disk_bytes:
            return math.nan
        return 100 * max(0.0, 1 - self.from_disk_bytes / self.read_bytes)


def evidence_of(document: RunDocument) -> Iterator[DiskEvidence]:
    """That of every disk in a recording."""
    recording = document.recording
    host: Figures = next((cell.host for cell in document.cells), {})
    for domain in recording.domains if recording else ():
        for disk in domain.disks:
            assert recording is not None
            yield _evidence(recording, domain, disk, host)


def _evidence(
    recording: RecordingDocument, domain: DomainDocument, disk: DomainDiskDocument, host: Figures
) -> DiskEvidence:
    figures, below = disk.figures, recording.disks.get(disk.below, {})
    total, available = mean_of(host, "memory_total_bytes"), mean_of(host, "memory_available_bytes")
    return DiskEvidence(
        name=f"{domain.name} {disk.target}",
        not_local=_why_not_local(disk),
        cache=disk.cache_words,
        direct=disk.direct,
        seconds=recording.seconds,
        read_bytes=_area(figures, "disk_read_bytes_per_second"),
        written_bytes=_area(figures, "disk_write_bytes_per_second"),
        from_disk_bytes=_from_disk(domain, disk),
        process_read_bytes=_area(domain.figures, "host_read_bytes_per_second"),
        process_written_bytes=_area(domain.figures, "host_write_bytes_per_second"),
        await_ms=mean_of(figures, "disk_await_ms"),
        queue=mean_of(figures, "disk_queue_depth"),
        flushes=mean_of(figures, "disk_flushes_per_second"),
        below=disk.below,
        busy_percent=mean_of(below, "disk_util_percent"),
        below_await_ms=mean_of(below, "disk_await_ms"),
        below_bytes=_area(below, "disk_read_bytes_per_second") + _area(below, "disk_write_bytes_per_second"),
        available_bytes=available,
        available_percent=100 * available / total,
        cached_bytes=mean_of(host, "memory_cached_bytes"),
    )


def _why_not_local(disk: DomainDisk) -> str:
    """The first of the disk's own file and those that it reads beside it of which too little is disk."""
    if why := _unknown(disk.protocol, disk.file_system, disk.below):
        return f"it {why}"
    for one in disk.backing:
        if why := _unknown(one.protocol, one.file_system, one.below):
            return f"it reads {one.file}, too, which {why}"
        if one.below != disk.below:
            return f"it reads {one.file}, too, which is on {one.below}, another disk of the host than {disk.below}"
    return ""


def _unknown(protocol: str, file_system: str, below: str) -> str:
    """What is to be said of a file or a disk on storage that is no known local disk."""
    match storage_of(protocol, file_system, below):
        case Storage.LOCAL:
            return ""
        case Storage.NETWORK:
            return f"is reached over the network ({protocol}), past this host's page cache and disks: {_NOT_KNOWN}"
        case Storage.DEVICE:
            return f"is driven past this host's page cache and block layer ({protocol}): {_NOT_KNOWN}"
        case Storage.MEMORY:
            return f"is in this host's memory ({file_system or below}), with no disk below it"
        case Storage.ZFS:
            return f"is on ZFS, whose own cache (ARC) serves reads, and not the page cache: {_NOT_KNOWN}"
        case Storage.LOOP:
            return f"is on {below}, a loop device, which reads another file with a page cache of its own: {_NOT_KNOWN}"
        case Storage.OTHER:
            return (
                f"is read by way of {file_system or protocol}, with no known disk of this host below it: {_NOT_KNOWN}"
            )
        case _:
            return f"is on no disk of this host that is known, as its QEMU's open files tell none: {_NOT_KNOWN}"


def _from_disk(domain: DomainDocument, disk: DomainDiskDocument) -> float:
    """What the process had read, where nothing else that it reads through the host's block layer can be a good part.

    The domain's own figure counts CD-ROMs, too. What QEMU reaches past the block layer is in no count of the process; a
    folder that it shares with its guest is, and nothing tells how much.
    """
    if domain.shares:
        return math.nan
    own = _area(disk.figures, _READ)
    others = [(_past_block_layer(one), _area(one.figures, _READ)) for one in domain.disks if one is not disk]
    read = sum(area for is_past, area in others if not is_past)
    every = _area(domain.figures, _READ) - own - sum(area for is_past, area in others if is_past)
    read = max(read, every) if every == every else read
    return _area(domain.figures, "host_read_bytes_per_second") if read <= own / 20 else math.nan


def _past_block_layer(disk: DomainDiskDocument) -> bool:
    return disk.storage in (Storage.NETWORK, Storage.DEVICE) and not disk.backing


def _area(figures: Figures, name: str) -> float:
    return figures[name].area if name in figures else math.nan
