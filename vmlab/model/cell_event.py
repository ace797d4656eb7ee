"""What happens in a cell of a run: its phases, guests and workloads, what was proved, changed and measured in it."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from vmlab.model.checked import Reading
from vmlab.model.event import CellEvent, Event, event
from vmlab.model.event_fields import (
    Axes,
    Clock,
    Count,
    Guests,
    LatencyCounts,
    LatencyScale,
    Repeat,
    Seen,
    Settings,
    Tile,
)
from vmlab.model.jsonable import FLAT
from vmlab.model.results import CacheProof, LeverProof, Measurement, NeighbourUse, NetworkProof, Provision


@event
class GuestEvent(CellEvent):
    """Base of events of a guest in a tile."""

    is_base: ClassVar = True

    tile: Tile
    guest: str


@event
class WorkloadEvent(CellEvent):
    """Base of events of a workload in a tile, whose client runs in `guest`."""

    is_base: ClassVar = True

    workload: str
    tile: Tile
    guest: str


@event
class SnapshotMade(CellEvent):
    """A guest was booted, prepared and frozen, for this cell and those to come; it took `seconds`, counted apart."""

    guest: str
    snapshot: str
    seconds: float


@event
class SnapshotProgressed(CellEvent):
    """A guest that is being made ready to be frozen has come to `stage`, which is a few words for people."""

    guest: str
    stage: str


@event
class CellStarted(CellEvent):
    """A cell begins; `index` counts from 1. `settings` are in `show --json` as they are here.

    In a `looped` cell each workload starts again when it has ended and verified itself.
    """

    axes: Axes
    repeat: Repeat
    guests: Guests
    settings: Settings = field(default_factory=dict)
    looped: bool = False


@event
class PhaseStarted(CellEvent):
    """A phase of a cell begins."""

    phase: str


@event
class PhaseEnded(CellEvent):
    """A phase of a cell ended after `seconds`."""

    phase: str
    seconds: float


@event
class StepEnded(CellEvent):
    """A step of a cell ended after `seconds`; steps of one part may overlap. `part` is as in `vmlab show --phases`.

    `place` is a guest or a workload of tile `tile`; empty, and tile 0, for a step of the whole cell.
    """

    part: str
    step: str
    seconds: float
    tile: Tile = 0
    place: str = ""


@event
class GuestStateChanged(GuestEvent):
    """A guest went from one state to the next: created, booted, identified, connected, prepared, gone."""

    role: str
    state: str


@event
class GuestInspected(GuestEvent):
    """What a guest was found to be from inside: its `boot` or its `data_disk`, as in `show --json`."""

    seen: Seen


@event
class CacheProved(CellEvent):
    """The cache mode as QEMU's open files and QMP show it."""

    proof: CacheProof = field(metadata=FLAT)


@event
class LeverProved(CellEvent):
    """An attribute of a guest as its QEMU and the kernel show it."""

    proof: LeverProof = field(metadata=FLAT)


@event
class NetworkProved(CellEvent):
    """What a tunnel, its cable, a guest's rules or its limit carried."""

    proof: NetworkProof = field(metadata=FLAT)


@event
class DiskLatencyRead(GuestEvent):
    """How long requests of a guest's disks took that ended after `since`, on the monotonic clock, as its QEMU counted.

    `counts` are by disk (``root``, ``data``) and operation (``read``, ``write``, ``flush``), without those that had no
    requests; `scale` has their bins.
    """

    since: Clock
    scale: LatencyScale
    counts: LatencyCounts


@event
class DiskSilent(GuestEvent):
    """A guest's disk (``root``, ``data``) has answered nothing for `seconds` while so many `requests` were under way;
    with none it answers again.
    """

    disk: str
    seconds: Reading
    requests: Count


@event
class CountersRead(Event):
    """The counters of host and guests were read as the workloads of a cell started (`edge` is ``start``) or when the
    last of them had ended (``end``).

    Seconds before this event at which they were read: the host's, the guests', and those of the guests' disks;
    `sample_ago` is when the sample was taken that has the last of them.
    """

    cell: int
    edge: str
    host_ago: float
    guests_ago: float
    guests_disks_ago: float
    sample_ago: float


@event
class NeighboursCounted(CellEvent):
    """What each of the host's own guests took while the workloads of a cell ran; [] where there were none."""

    neighbours: list[NeighbourUse]


@event
class CacheSwitched(CellEvent):
    """All disks of a cell's running guests were switched from the cache mode `before` to `after`, as `origin` asked.

    `pauses_ms` are by a guest's key how long its QEMU took, in which the guest may have stood still. Before, the host
    wrote dirty pages of the disks for `drained_seconds`, in all `drained_bytes`; None where its kernel does not tell.
    """

    what: ClassVar = "cache"

    origin: str
    before: str
    after: str
    pauses_ms: dict[str, Reading]
    drained_seconds: Reading
    drained_bytes: int | None = None


@event
class KsmSwitched(CellEvent):
    """The host's KSM was switched ``on`` or ``off`` under a cell's running guests, as `origin` asked."""

    what: ClassVar = "ksm"

    origin: str
    before: str
    after: str


Switched = CacheSwitched | KsmSwitched
"""What running guests have was changed, which invalidates their cell; `what` is the scenario's word."""
SWITCHED = (CacheSwitched, KsmSwitched)


@event
class TilesChanged(CellEvent):
    """A looped cell had `before` tiles and has `after` now, as `origin` asked.

    A tile that is added counts from the start of its workloads, one that is retired until its last round was verified.
    """

    origin: str
    before: Tile
    after: Tile


@event
class WorkloadStarted(WorkloadEvent):
    """A workload has started. `late_ms` is its true start minus the broadcast one, in host time, ± `uncertainty_ms`.

    `benchmark` is the workload's kind in the scenario; `round` is how often it has started in this cell.
    """

    benchmark: str
    late_ms: float
    uncertainty_ms: float
    round: Count = 1


@event
class WorkloadProgressed(CellEvent):
    """How far a workload is: `done` of `total` in `unit`, in its stage `stage`."""

    workload: str
    tile: Tile
    done: float
    total: float
    unit: str
    stage: str = ""


@event
class WorkloadEnded(WorkloadEvent):
    """A workload ended with an outcome, after `seconds`; `reason` is empty when it passed."""

    outcome: str
    seconds: Reading
    reason: str = ""


@event
class RoundEnded(WorkloadEvent):
    """A workload of a looped cell ended its `round`, and was verified; its client took `seconds`.

    `values` are its figures by metric, in `units`; none where it failed, for `reason`. `throughput` and `latency` are
    the metrics that a loop shows for them, ``run_time`` for lack of a better one.
    """

    round: Count
    outcome: str
    seconds: Reading
    values: dict[str, Reading]
    units: dict[str, str]
    throughput: str
    latency: str
    reason: str = ""


@event
class MeasurementTaken(CellEvent):
    """One figure of a workload."""

    figure: Measurement = field(metadata=FLAT)


@event
class FiguresRemade(WorkloadEvent):
    """Figures of a workload were made again from its raw texts, after the run, by `version` of vmlab.

    `was` and `values` have those that changed, by metric: one that is new is not in `was`, one that went not in
    `values`. `units` are of both. `mono` is that of the cell's last event before.
    """

    version: str
    was: dict[str, Reading]
    values: dict[str, Reading]
    units: dict[str, str]


@event
class CellEnded(CellEvent):
    """A cell ended, with what `show --json` has of it apart from its measurements and proofs.

    `missed` is how many targets its tiles missed; 0 also where it did not pass, and in older records. A cell is
    `disturbed` if it is invalid for causes outside of it alone.
    """

    outcome: str
    reasons: list[str]
    wall_seconds: Reading | None
    start_skew_ms: Reading | None
    skew_uncertainty_ms: Reading | None = None
    provision: Provision = field(default_factory=Provision)
    missed: Count = 0
    disturbed: bool = False
