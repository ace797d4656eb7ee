"""The figures of one disk of a guest of the host's own that advice is made of; NaN for what was not recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vmlab.analysis.shape import AggregateDocument, DomainDiskDocument, DomainDocument, RecordingDocument, RunDocument
from vmlab.model.domain import DomainDisk

Figures = Mapping[str, AggregateDocument]


@dataclass(frozen=True, slots=True)
class DiskEvidence:
    """Bytes are those of all `seconds`. `from_disk_bytes` are those that the QEMU had read from the host's disks.

    `busy_percent`, `below_await_ms` and `below_bytes` are those of the host's disk that holds the file. `available` and
    `cached` memory is the host's.
    """

    name: str
    cache: str
    direct: bool | None
    seconds: float
    read_bytes: float
    written_bytes: float
    from_disk_bytes: float
    await_ms: float
    queue: float
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
        if not self.read_bytes > 0:
            return math.nan
        return 100 * max(0.0, 1 - self.from_disk_bytes / self.read_bytes)


def evidence_of(document: RunDocument) -> Iterator[DiskEvidence]:
    """That of every disk in a recording."""
    recording = document["recording"]
    host: Figures = next((cell["host"] for cell in document["cells"]), {})
    for domain in recording["domains"] if recording else ():
        for disk in domain["disks"]:
            assert recording is not None
            yield _evidence(recording, domain, disk, host)


def _evidence(
    recording: RecordingDocument, domain: DomainDocument, disk: DomainDiskDocument, host: Figures
) -> DiskEvidence:
    known = DomainDisk(disk["target"], disk["file"], cache=disk["cache"], o_direct=disk["o_direct"])
    figures, below = disk["figures"], recording["disks"].get(disk["below"], {})
    total, available = _mean(host, "memory_total_bytes"), _mean(host, "memory_available_bytes")
    return DiskEvidence(
        name=f"{domain['name']} {disk['target']}",
        cache=known.cache_words,
        direct=known.direct,
        seconds=recording["seconds"],
        read_bytes=_area(figures, "disk_read_bytes_per_second"),
        written_bytes=_area(figures, "disk_write_bytes_per_second"),
        from_disk_bytes=_from_disk(domain, disk),
        await_ms=_mean(figures, "disk_await_ms"),
        queue=_mean(figures, "disk_queue_depth"),
        below=disk["below"],
        busy_percent=_mean(below, "disk_util_percent"),
        below_await_ms=_mean(below, "disk_await_ms"),
        below_bytes=_area(below, "disk_read_bytes_per_second") + _area(below, "disk_write_bytes_per_second"),
        available_bytes=available,
        available_percent=100 * available / total,
        cached_bytes=_mean(host, "memory_cached_bytes"),
    )


def _from_disk(domain: DomainDocument, disk: DomainDiskDocument) -> float:
    """What the process had read, where no other disk of the guest can have read a good part of it."""
    own = _area(disk["figures"], "disk_read_bytes_per_second")
    others = [one for one in domain["disks"] if one is not disk]
    read = sum(_area(one["figures"], "disk_read_bytes_per_second") for one in others)
    return _area(domain["figures"], "host_read_bytes_per_second") if read <= own / 20 else math.nan


def _mean(figures: Figures, name: str) -> float:
    return figures[name]["mean"] if name in figures else math.nan


def _area(figures: Figures, name: str) -> float:
    return figures[name]["area"] if name in figures else math.nan
