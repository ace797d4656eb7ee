"""What the cells of a run share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vmlab.guests.image.added import AddedImage
from vmlab.guests.ssh import SshShell
from vmlab.hypervisor.contract import BootImage, Hypervisor
from vmlab.lab.cell.cell_events import Emit, KeepsRaw
from vmlab.lab.cell.live_ksm import HostKsm
from vmlab.lab.provision.added_guests import LogIn
from vmlab.lab.provision.disk_integrity import Integrity
from vmlab.lab.provision.guest_disk import GuestDisk
from vmlab.lab.provision.guest_set import Connect
from vmlab.lab.provision.host_side import OpenTiles
from vmlab.lab.provision.snapshot_provider import SnapshotProvider
from vmlab.lab.provision.timing import USUAL, Timing
from vmlab.plan.terms import Plan
from vmlab.telemetry.host_counters import HostCounters, host_counters
from vmlab.telemetry.standstill import StandstillWatch
from vmlab.workloads.contract import Shell


@dataclass(frozen=True, slots=True)
class CellSurroundings:
    """What a cell uses but does not own. `host_tiles` gives the host as a place for workloads, and `far_host` makes of
    it the host once more, for what runs from the host to the host.

    `why_called_off` gives the reason why a cell was cancelled, `host_settings` those in force. `host_mean` is the
    mean of one host figure over a span of the monotonic clock. Without `snapshot_provider` guests boot, and without
    `integrity` the files below them are not checked. `added` has the images that users have added, by name; `disk`
    is below the guests' files. `standstills` gives a fresh watch of the lab's processes. Without `ksm` no viewer
    can switch it.
    """

    run: str
    plan: Plan
    hypervisor: Hypervisor
    image: BootImage
    emit: Emit
    raw: KeepsRaw
    host_tiles: OpenTiles
    far_host: Callable[[Shell], Shell]
    host_mean: Callable[[str, float, float], float]
    host_extremes: Callable[[str, float, float], tuple[float, float]]
    connect: Connect = SshShell.connect
    snapshot_provider: SnapshotProvider | None = None
    integrity: Integrity | None = None
    timing: Timing = USUAL
    why_called_off: Callable[[], str] = lambda: "stopped"
    host_settings: Callable[[], Mapping[str, str | int | None]] = dict
    host_counters: Callable[[], HostCounters] = host_counters
    standstills: Callable[[], StandstillWatch] = lambda: StandstillWatch(inside=False)
    log_in: LogIn = SshShell.log_in
    added: Mapping[str, AddedImage] = field(default_factory=dict)
    disk: GuestDisk = field(default_factory=GuestDisk)
    ksm: HostKsm | None = None
