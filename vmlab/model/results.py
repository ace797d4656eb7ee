"""What a cell leaves behind: measurements, the output of tools, proofs of cache modes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
class Drained:
    """How long the host wrote dirty pages before a switch, and how many bytes; None where its kernel does not tell."""

    seconds: float = 0.0
    written_bytes: int | None = None
