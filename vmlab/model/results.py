"""What a cell leaves behind: measurements, the output of tools, proofs of cache modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MOST_PRINTED = 64 * 2**20
"""Bytes that a program of the lab may print; one that prints more has failed."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure that a workload produced. `tile` counts from 1; `guest` is where the client ran, or ``host``."""

    workload: str
    tile: int
    guest: str
    metric: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class RawOutput:
    """What a tool printed, kept beside every figure that was parsed from it."""

    workload: str
    tile: int
    guest: str
    name: str
    text: str


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
    key of the guest that has rules or limit, `direction` ``to`` it, ``from`` it, or ``both``. It agrees with at `least`
    and at `most` so many bytes, None for no such bound.
    """

    device: str
    guest: str
    direction: str
    carried_bytes: int
    least_bytes: int | None
    most_bytes: int | None

    @property
    def agrees(self) -> bool:
        """Whether it is within its bounds."""
        least, most = self.least_bytes, self.most_bytes
        return (least is None or least <= self.carried_bytes) and (most is None or self.carried_bytes <= most)
