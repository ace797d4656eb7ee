"""The one stream of a run: every event is a frozen dataclass, written to the store, printed, drawn and replayed.

`wall` is seconds since the epoch, for people; `mono` is seconds of the host's monotonic clock, for durations.
Events travel as JSON, see `event_json`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields
from typing import ClassVar, TypeVar, dataclass_transform

from vmlab.model.checked import Reading
from vmlab.model.domain import Domain
from vmlab.model.event_fields import (
    Axes,
    Cell,
    CellToCome,
    Clock,
    Code,
    Count,
    Guests,
    HostBody,
    LatencyCounts,
    LatencyScale,
    Repeat,
    Seed,
    Seen,
    Settings,
    Tile,
    TimeOfDay,
)
from vmlab.model.jsonable import FLAT
from vmlab.model.results import CacheProof, Measurement, NeighbourUse, NetworkProof, Provision
from vmlab.model.run import AS_WRITTEN

E = TypeVar("E")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def event(cls: type[E]) -> type[E]:
    """A frozen dataclass with slots.

    Equality, hash and text are those of `Event`: made anew for each class they take half the time to load this module.
    """
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)(cls)


@event
class Event:
    """Base of all events; both clocks are read when it is made."""

    registry: ClassVar[dict[str, type[Event]]] = {}

    wall: TimeOfDay = field(default_factory=time.time)
    mono: Clock = field(default_factory=time.monotonic)

    def __init_subclass__(cls) -> None:
        # The module inspect would be cleaner, but importing it slows the start of every command.
        if "kind" in cls.__dict__.get("__annotations__", {}):  # noqa: RUF063
            raise TypeError(f"{cls.__name__} has a field called kind, which names the class where it is stored")
        Event.registry[cls.__name__] = cls

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        said = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self))
        return f"{type(self).__name__}({said})"

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, one.name) for one in fields(self))


@event
class RunStarted(Event):
    """The first event: what will run, where. `cells` is how many at most; `order` is theirs in a repeat.

    A `control` run has one configuration on both sides. `assets` has the SHA-256 of users' own copies
    of suites, by name. With `targets_decide` a missed target fails the run for whoever started it.
    """

    run: str
    scenario: str
    size: str
    seed: Seed
    cells: Cell
    expected_seconds: float
    order: str = AS_WRITTEN
    control: bool = False
    assets: dict[str, str] = field(default_factory=dict)
    targets_decide: bool = False


@event
class HostProbed(Event):
    """The accelerator that a probe found to work, and the host before any load."""

    accelerator: str
    host: HostBody


@event
class ImageReady(Event):
    """The image that guests of the run start from; `how` is ``cached`` or ``built``.

    One that a user has added is ``added``, and has the `name` by which guests ask for it.
    """

    image: str
    how: str
    seconds: float
    name: str = ""


@event
class HostJoined(Event):
    """A host takes cells of a run of a fleet, in its own run `run`; `facts` are its configuration before any load.

    Its clock is ahead of the controller's by `offset_ms`, ± `uncertainty_ms`. All times of the record are the
    controller's.
    """

    name: str
    run: str
    accelerator: str
    facts: HostBody
    offset_ms: Reading
    uncertainty_ms: Reading


@event
class HostLeftOut(Event):
    """A host takes no further cells of a run of a fleet, for `reason`."""

    name: str
    reason: str


@event
class CellPlaced(Event):
    """A cell of a run of a fleet is given to the host `name`; the cell's own events follow."""

    cell: Cell
    name: str


@event
class CellWithdrawn(Event):
    """A cell broke off, and is measured anew: what is recorded of it so far does not count. `name` is its host in a
    fleet, empty for a run of one host that was cut off and goes on.
    """

    cell: Cell
    name: str
    reason: str


@event
class StartAwaited(Event):
    """A cell that starts on several hosts together is ready on one, which announces the start in `lead_seconds`."""

    cell: Cell
    lead_seconds: float


@event
class CommonStartSet(Event):
    """The moment is set at which the `cells`, one on each host, start together.

    `moment` is by the controller's monotonic clock, `moments` by those of the cells' hosts. `uncertainty_ms` is that of
    the offset of each host's clock, by the host's name.
    """

    cells: list[Cell]
    moment: Clock
    moments: list[Clock]
    uncertainty_ms: dict[str, Reading]


@event
class TogetherEnded(Event):
    """The `cells` that hosts ran together have ended, and count as one: each has the `outcome` of the worst of them.

    `skew_ms` is from the first workload that really started on any host to the last, ± `skew_uncertainty_ms`; None
    where not all started. `starts_ms` has for each host how long after the first of all its own first one started.
    """

    cells: list[Cell]
    outcome: str
    reason: str = ""
    starts_ms: dict[str, Reading] = field(default_factory=dict)
    skew_ms: Reading | None = None
    skew_uncertainty_ms: Reading | None = None


@event
class HalfEnded(Event):
    """In records of older versions: a cell with guests on two hosts has ended on the other one, `name`.

    The cell has the worse outcome of both.
    """

    cell: Cell
    name: str
    outcome: str
    reasons: list[str]


@event
class SnapshotMade(Event):
    """A guest was booted, prepared and frozen, for this cell and those to come; it took `seconds`, counted apart."""

    cell: Cell
    guest: str
    snapshot: str
    seconds: float


@event
class SnapshotProgressed(Event):
    """A guest that is being made ready to be frozen has come to `stage`, which is a few words for people."""

    cell: Cell
    guest: str
    stage: str


@event
class CellStarted(Event):
    """A cell begins; `index` counts from 1. `settings` are in `show --json` as they are here.

    In a `looped` cell each workload starts again when it has ended and verified itself.
    """

    cell: Cell
    axes: Axes
    repeat: Repeat
    guests: Guests
    settings: Settings = field(default_factory=dict)
    looped: bool = False


@event
class PhaseStarted(Event):
    """A phase of a cell begins."""

    cell: Cell
    phase: str


@event
class PhaseEnded(Event):
    """A phase of a cell ended after `seconds`."""

    cell: Cell
    phase: str
    seconds: float


@event
class StepEnded(Event):
    """A step of a cell ended after `seconds`; steps of one part may overlap. `part` is as in `vmlab show --phases`.

    `place` is a guest or a workload of tile `tile`; empty, and tile 0, for a step of the whole cell.
    """

    cell: Cell
    part: str
    step: str
    seconds: float
    tile: Tile = 0
    place: str = ""


@event
class GuestStateChanged(Event):
    """A guest went from one state to the next: created, booted, identified, connected, prepared, gone."""

    cell: Cell
    tile: Tile
    guest: str
    role: str
    state: str


@event
class GuestInspected(Event):
    """What a guest was found to be from inside: its `boot` or its `data_disk`, as in `show --json`."""

    cell: Cell
    tile: Tile
    guest: str
    seen: Seen


@event
class CacheProved(Event):
    """The cache mode as QEMU's open files and QMP show it."""

    cell: Cell
    proof: CacheProof = field(metadata=FLAT)


@event
class NetworkProved(Event):
    """What a tunnel, its cable, a guest's rules or its limit carried."""

    cell: Cell
    proof: NetworkProof = field(metadata=FLAT)


@event
class DiskLatencyRead(Event):
    """How long requests of a guest's disks took that ended after `since`, on the monotonic clock, as its QEMU counted.

    `counts` are by disk (``root``, ``data``) and operation (``read``, ``write``, ``flush``), without those that had no
    requests; `scale` has their bins.
    """

    cell: Cell
    tile: Tile
    guest: str
    since: Clock
    scale: LatencyScale
    counts: dict[str, dict[str, LatencyCounts]]


@event
class DiskSilent(Event):
    """A guest's disk (``root``, ``data``) has answered nothing for `seconds` while so many `requests` were under way;
    with none it answers again.
    """

    cell: Cell
    tile: Tile
    guest: str
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
class NeighboursCounted(Event):
    """What each of the host's own guests took while the workloads of a cell ran; [] where there were none."""

    cell: Cell
    neighbours: list[NeighbourUse]


@event
class CacheSwitched(Event):
    """All disks of a cell's running guests were switched from the cache mode `before` to `after`, as `origin` asked.

    `pauses_ms` are by a guest's key how long its QEMU took, in which the guest may have stood still. Before, the host
    wrote dirty pages of the disks for `drained_seconds`, in all `drained_bytes`; None where its kernel does not tell.
    """

    what: ClassVar = "cache"

    cell: Cell
    origin: str
    before: str
    after: str
    pauses_ms: dict[str, Reading]
    drained_seconds: Reading
    drained_bytes: int | None = None


@event
class KsmSwitched(Event):
    """The host's KSM was switched ``on`` or ``off`` under a cell's running guests, as `origin` asked."""

    what: ClassVar = "ksm"

    cell: Cell
    origin: str
    before: str
    after: str


Switched = CacheSwitched | KsmSwitched
"""What running guests have was changed, which invalidates their cell; `what` is the scenario's word."""
SWITCHED = (CacheSwitched, KsmSwitched)


@event
class TilesChanged(Event):
    """A looped cell had `before` tiles and has `after` now, as `origin` asked.

    A tile that is added counts from the start of its workloads, one that is retired until its last round was verified.
    """

    cell: Cell
    origin: str
    before: Tile
    after: Tile


@event
class WorkloadStarted(Event):
    """A workload has started. `late_ms` is its true start minus the broadcast one, in host time, ± `uncertainty_ms`.

    `benchmark` is the workload's kind in the scenario; `round` is how often it has started in this cell.
    """

    cell: Cell
    workload: str
    tile: Tile
    guest: str
    benchmark: str
    late_ms: float
    uncertainty_ms: float
    round: Count = 1


@event
class WorkloadProgressed(Event):
    """How far a workload is: `done` of `total` in `unit`, in its stage `stage`."""

    cell: Cell
    workload: str
    tile: Tile
    done: float
    total: float
    unit: str
    stage: str = ""


@event
class WorkloadEnded(Event):
    """A workload ended with an outcome, after `seconds`; `reason` is empty when it passed."""

    cell: Cell
    workload: str
    tile: Tile
    guest: str
    outcome: str
    seconds: Reading
    reason: str = ""


@event
class RoundEnded(Event):
    """A workload of a looped cell ended its `round`, and was verified; its client took `seconds`.

    `values` are its figures by metric, in `units`; none where it failed, for `reason`. `throughput` and `latency` are
    the metrics that a loop shows for them, ``run_time`` for lack of a better one.
    """

    cell: Cell
    workload: str
    tile: Tile
    guest: str
    round: Count
    outcome: str
    seconds: Reading
    values: dict[str, Reading]
    units: dict[str, str]
    throughput: str
    latency: str
    reason: str = ""


@event
class MeasurementTaken(Event):
    """One figure of a workload."""

    cell: Cell
    figure: Measurement = field(metadata=FLAT)


@event
class FiguresRemade(Event):
    """Figures of a workload were made again from its raw texts, after the run, by `version` of vmlab.

    `was` and `values` have those that changed, by metric: one that is new is not in `was`, one that went not in
    `values`. `units` are of both. `mono` is that of the cell's last event before.
    """

    cell: Cell
    workload: str
    tile: Tile
    guest: str
    version: str
    was: dict[str, Reading]
    values: dict[str, Reading]
    units: dict[str, str]


@event
class CellEnded(Event):
    """A cell ended, with what `show --json` has of it apart from its measurements and proofs.

    `missed` is how many targets its tiles missed; 0 also where it did not pass, and in older records.
    """

    cell: Cell
    outcome: str
    reasons: list[str]
    wall_seconds: Reading | None
    start_skew_ms: Reading | None
    skew_uncertainty_ms: Reading | None = None
    provision: Provision = field(default_factory=Provision)
    missed: Count = 0


@event
class Notice(Event):
    """One line for people; `level` is ``info``, ``warning`` or ``error``."""

    level: str
    text: str


@event
class AnotherRunSeen(Event):
    """Another run measured on this host at the same time, from this moment or before (``--concurrent``).

    `user` is who started it, `launcher` its process as the host sees it, `folder` the place of its record.
    """

    run: str
    user: str
    launcher: Count
    folder: str


RESUME = "resume"


@event
class CommandReceived(Event):
    """A viewer asked the runner for something, such as ``stop``; or `RESUME`: the run was cut off, and goes on."""

    command: str
    origin: str


@event
class CellsReplanned(Event):
    """A viewer changed the cells to come: `next_axes` are the axis values of the next one, none where none follows.

    `cells` is the number of the last cell, which is their total where none is skipped. `coming` has every cell to come
    as it is now; None in records of older versions.
    """

    cells: Cell
    next_axes: Axes
    expected_seconds: float
    coming: list[CellToCome] | None = None


@event
class RepeatsEnded(Event):
    """A run whose scenario names a spread has enough `repeats`, after `cells` cells in all; none follows.

    `widest_percent` is the spread of the least certain figure, None where it is not known; `reached` is whether it is
    as small as was asked for.
    """

    repeats: Repeat
    cells: Cell
    widest_percent: Reading | None
    reached: bool


@event
class DomainsSeen(Event):
    """The host's own guests that run from now on; in recordings of the host alone."""

    domains: list[Domain]


@event
class RunnerFinished(Event):
    """The last event of the runner; its launcher cleans up afterwards, and RunEnded shows whether something is left."""

    outcome: str
    exit_code: Code
    reason: str = ""


@event
class RunEnded(Event):
    """The last event, after clean-up. `exit_code` is what `vmlab run` returns."""

    outcome: str
    exit_code: Code
    reason: str = ""
