"""What a cell leaves behind: measurements, the output of tools, proofs. Events and documents carry these values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vmlab.model.checked import Reading
from vmlab.model.event_fields import Guests, Tile
from vmlab.model.quantities import format_bytes

_TOLD_CPU_PERCENT = 1.0
_TOLD_DISK_BYTES = 1 << 20
"""A guest that took less of both, in a second, is not named."""
MOST_PRINTED = 64 * 2**20
"""Bytes that a program of the lab may print; one that prints more has failed."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure that a workload produced. `tile` counts from 1; `guest` is where the client ran, or ``host``.

    Where the tool gave no number, `value` is NaN in an event, and None in the state of a run.
    """

    workload: str
    tile: Tile
    guest: str
    metric: str
    value: Reading | None
    unit: str


@dataclass(frozen=True, slots=True)
class RawOutput:
    """What a tool printed, kept beside every figure that was parsed from it."""

    workload: str
    tile: int
    guest: str
    name: str
    text: str


def stored(text: str) -> bytes:
    """The bytes of what a tool printed, as they are kept. Bytes that were not UTF-8, lone surrogates in the text, come
    back; any other lone surrogate, which JSON of a guest may have, is kept as its escape.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class CacheProof:
    """What QEMU's open file shows of the cache mode, against what was asked.

    `o_direct` is the flag in ``/proc/PID/fdinfo``; `writeback`, `direct` and `no_flush` are QMP's cache flags. An image
    in a pool of Ceph is no open file, and `o_direct` is `direct` once more.
    """

    guest: str
    file: str
    o_direct: bool
    writeback: bool
    direct: bool
    no_flush: bool
    expected: str
    agrees: bool

    @property
    def host_file(self) -> Path | None:
        """The file on the host; None for an image in a pool of Ceph, ``rbd:POOL/IMAGE``."""
        return None if self.file.startswith("rbd:") else Path(self.file)


@dataclass(frozen=True, slots=True)
class LeverProof:
    """What a running guest of a `tile` shows of one of its attributes, against what was asked.

    `lever` is the scenario's key. `found` is in its words as far as there are any; `by` says where it was read.
    """

    guest: str
    tile: int
    lever: str
    expected: str
    found: str
    agrees: bool
    by: str


@dataclass(frozen=True, slots=True)
class CpuUse:
    """For how many seconds a guest's QEMU used a CPU, and for how many its vCPUs waited for one, since it started.

    Differences are what it did in a span.
    """

    ran: float
    waited: float

    def __sub__(self, before: CpuUse) -> CpuUse:
        return CpuUse(self.ran - before.ran, max(0.0, self.waited - before.waited))


@dataclass(frozen=True, slots=True)
class Drained:
    """How long the host wrote dirty pages before a switch, and how many bytes; None where its kernel does not tell."""

    seconds: float = 0.0
    written_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkCounts:
    """Bytes that devices of the lab's network have carried since they were made.

    `tunnel` and the `cable` below it count both directions together, and are None where there is no tunnel. `limited`
    has for each guest with limited bandwidth, by its key, what went to it and what came from it; `translated` for each
    with an elastic address what of that had its address translated.
    """

    tunnel: int | None
    cable: int | None
    limited: Mapping[str, tuple[int, int]]
    translated: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NetworkProof:
    """What a device of the lab's network carried while the workloads ran, against what it must or may have carried.

    `device` is ``tunnel``, ``cable``, ``nat`` for the rules that translate a guest's address, or ``limit``; `guest` the
    key of the guest that has rules or limit, `direction` ``to`` it, ``from`` it, or ``both``. It `agrees` with at least
    and at most so many bytes, None for no such bound.
    """

    device: str
    guest: str
    direction: str
    carried_bytes: int
    least_bytes: int | None
    most_bytes: int | None

    agrees: bool

    @classmethod
    def of(
        cls, device: str, guest: str, direction: str, carried: int, least: int | None, most: int | None
    ) -> NetworkProof:
        """One that agrees where what was carried is within its bounds."""
        agrees = (least is None or least <= carried) and (most is None or carried <= most)
        return cls(device, guest, direction, carried, least, most, agrees)


@dataclass(frozen=True, slots=True)
class Provision:
    """Where a cell's guests came from: `how` is ``restored`` or ``cold``, None in older records.

    They were ready after `seconds`, None where they never were. `snapshots` has the SHA-256 of the frozen state that
    each guest began from, by its key; none of cold ones.
    """

    how: str | None = None
    seconds: Reading | None = None
    guests: Guests | None = None
    snapshots: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NeighbourUse:
    """What a guest of the host took over a span: its share of all CPUs in percent, and bytes of its disks a second."""

    name: str
    cpu_percent: float
    disk_bytes_per_second: float

    @property
    def cpu_words(self) -> str:
        """``34 %``, of all CPUs."""
        return f"{self.cpu_percent:.0f} %"

    @property
    def disk_words(self) -> str:
        """``3.1 MiB/s``."""
        return f"{format_bytes(int(self.disk_bytes_per_second))}/s"

    @property
    def took_cpu(self) -> bool:
        """Whether its share of the CPUs is worth a word."""
        return self.cpu_percent >= _TOLD_CPU_PERCENT

    @property
    def used_disks(self) -> bool:
        """Whether the bytes of its disks are worth a word."""
        return self.disk_bytes_per_second >= _TOLD_DISK_BYTES


@dataclass(frozen=True, slots=True)
class Summary:
    """One value over a span. `p95` is the value that 95 % of the time (of the requests, for a wait) stayed at or below.

    `area` is in CPU-seconds for shares of CPU, bytes moved for bytes a second, joules for watts, seconds for other
    percentages, else in the figure's unit times seconds.
    """

    mean: float
    max: float
    p95: float
    area: float


def mean_of(figures: Mapping[str, Summary], name: str, otherwise: float = math.nan) -> float:
    """The mean of a figure; `otherwise` where it was never read."""
    return figures[name].mean if name in figures else otherwise
