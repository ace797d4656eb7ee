"""What the cells of a run share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vmlab.guests.added_guest import log_in
from vmlab.guests.image.added import AddedImage
from vmlab.guests.ssh import SshShell
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.protocols import GuestDisk, Hypervisor
from vmlab.lab.cell.cell_events import Emit, KeepsRaw
from vmlab.lab.cell.cpu_floor import CpuFloor
from vmlab.lab.cell.live_switch import HostKsm
from vmlab.lab.provision.added_guests import LogIn
from vmlab.lab.provision.disk_integrity import Integrity
from vmlab.lab.provision.guest_set import Connect
from vmlab.lab.provision.host_side import OpenBare, OpenTiles
from vmlab.lab.provision.snapshot_provider import SnapshotProvider
from vmlab.lab.provision.timing import USUAL, Timing
from vmlab.plan.terms import CellPlan, Plan
from vmlab.telemetry.host_counters import HostCounters, host_counters
from vmlab.telemetry.recorder import ReadTimes
from vmlab.telemetry.standstill import StandstillWatch
from vmlab.workloads.shell import Shell

ReadAt = Callable[[float], Awaitable[ReadTimes | None]]


async def nothing_read(mono: float) -> None:
    """There is no recorder."""


@dataclass(frozen=True, slots=True)
class CellHost:
    """What a cell uses of the host.

    `tiles` gives it as a place for workloads, and `far` makes of that the host once more, for what runs from host to
    host. `bare` makes a guest on the host. `mean` is the mean of one figure over a span of the monotonic clock,
    `extremes` its lowest and highest value. `read_at` has the recorder read all counters at a moment of that clock.
    `settings` gives those in force, `counters` and `standstills` fresh counters and a fresh watch of the lab's
    processes. `disk` is below the guests' files. Without `ksm` no viewer can switch it.
    """

    tiles: OpenTiles
    far: Callable[[Shell], Shell]
    bare: OpenBare
    mean: Callable[[str, float, float], float]
    extremes: Callable[[str, float, float], tuple[float, float]]
    settings: Callable[[], Mapping[str, str | int | None]] = dict
    read_at: ReadAt = nothing_read
    counters: Callable[[], HostCounters] = host_counters
    standstills: Callable[[], StandstillWatch] = lambda: StandstillWatch(inside=False)
    disk: GuestDisk = field(default_factory=GuestDisk)
    ksm: HostKsm | None = None


@dataclass(frozen=True, slots=True)
class GuestOrigins:
    """What a cell's guests start from, and how they are reached.

    Without `snapshot_provider` they boot, and without `integrity` the files below them are not checked. `added` has the
    images that users have added, by name, `layers` those with packages, by these.
    """

    image: BootImage
    connect: Connect = SshShell.connect
    log_in: LogIn = log_in
    added: Mapping[str, AddedImage] = field(default_factory=dict)
    layers: Mapping[tuple[str, ...], BootImage] = field(default_factory=dict)
    snapshot_provider: SnapshotProvider | None = None
    integrity: Integrity | None = None

    @property
    def disks(self) -> list[Path]:
        """The disks of all images."""
        added = (one.disk for one in self.added.values())
        return [self.image.disk, *(one.disk for one in self.layers.values()), *added]


@dataclass(frozen=True, slots=True)
class CellSurroundings:
    """What the cells of a run share. Without `cpu_floor` no CPU time is held against what was known before.

    `why_called_off` gives the reason why a cell was cancelled, `widened` the plan of a cell with so many tiles; it
    raises UsageError and RefusedError where that is not possible.
    """

    run: str
    plan: Plan
    hypervisor: Hypervisor
    emit: Emit
    raw: KeepsRaw
    host: CellHost
    guests: GuestOrigins
    timing: Timing = USUAL
    cpu_floor: CpuFloor | None = None
    why_called_off: Callable[[], str] = lambda: "stopped"
    widened: Callable[[CellPlan, int], CellPlan] = lambda cell, _tiles: cell
