"""The disks that a scenario can order in place of the host's own: named numbers, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

DiskName = Literal["hdd-7200", "raid10-4"]
"""How a scenario names them."""

NCQ_DEPTH = 32
"""Commands that a SATA drive orders by itself: Native Command Queuing has 32 tags (Serial ATA II, 2003)."""


@dataclass(frozen=True, slots=True)
class DiskProfile:
    """One disk, or an array of equal disks.

    Times are in seconds, rates in bytes a second. `pairs` is the number of mirrored pairs that are striped in chunks of
    `chunk` bytes; 0 means a single disk. `source` says where the numbers come from.
    """

    name: DiskName
    summary: str
    source: str
    rpm: int
    least_seek: float
    average_seek: float
    rate: float
    read_ahead: int
    pairs: int = 0
    chunk: int = 64 * 2**10

    @property
    def turn(self) -> float:
        """Seconds of one revolution."""
        return 60 / self.rpm

    @property
    def access(self) -> float:
        """Mean seconds of a small random read by one disk with nothing else to do, without the transfer."""
        return self.average_seek + self.turn / 2


_SEVEN_TWO = (
    "average seek 8.2 ms: HGST Ultrastar 7K4000 (SAS) specification, table 6; from track to track 1.0 ms: Hitachi 7K320"
    " specification, table 7; at most 140 MB/s sustained: Seagate Constellation ES Serial ATA product manual, 3.4; half"
    " a turn at 7,200 rpm is 4.17 ms"
)
_AHEAD = 2**20
"""How far a drive reads on into its buffer; our own choice, as no specification names it."""

HDD_7200 = DiskProfile(
    name="hdd-7200",
    summary="one SATA disk of 7,200 rpm, as in servers of 2010 to 2014",
    source=_SEVEN_TWO,
    rpm=7200,
    least_seek=0.001,
    average_seek=0.0082,
    rate=140e6,
    read_ahead=_AHEAD,
)
RAID10_4 = DiskProfile(
    name="raid10-4",
    summary="RAID 10 of four such disks: two mirrored pairs, striped in chunks of 64 KiB",
    source=_SEVEN_TWO + "; each read goes to the nearer head of a pair, each write to both",
    rpm=7200,
    least_seek=0.001,
    average_seek=0.0082,
    rate=140e6,
    read_ahead=_AHEAD,
    pairs=2,
)

DISK_PROFILES: Mapping[str, DiskProfile] = {profile.name: profile for profile in (HDD_7200, RAID10_4)}
"""All of them."""
