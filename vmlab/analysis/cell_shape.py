"""A cell of a run as it was recorded: the part of ``vmlab.run/1`` that is under ``cells``, see `analysis.shape`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vmlab.model.jsonable import FLAT, INNER, fields_of
from vmlab.model.results import CacheProof, LeverProof, Measurement, NeighbourUse, NetworkProof, Provision, Summary
from vmlab.model.run import AxisValue


@dataclass(frozen=True, slots=True)
class RemadeDocument:
    """A figure that was made again from raw texts after the run, `at` a time of day by `version` of vmlab.

    `was` and `value` are None where the figure was new, and where it went.
    """

    workload: str
    tile: int
    guest: str
    metric: str
    was: float | None
    value: float | None
    unit: str
    version: str
    at: str | None


@dataclass(frozen=True, slots=True)
class OverTilesDocument:
    """One metric over all tiles of a cell.

    `sd` is of a sample (n - 1) and None for one tile, `cv` is `sd` in percent of the mean, `jain` Jain's index of
    fairness. `best` and `worst` are None for a metric of which neither end is better. `overlap` is the span in which
    the workload ran in all tiles, as a share of the span in which it ran in any; None where that is not known, as of
    several tiles' figures of one part of a run.
    """

    workload: str
    metric: str
    unit: str
    tiles: int
    mean: float
    worst: float | None
    best: float | None
    sum: float | None
    sd: float | None
    cv: float | None
    jain: float | None
    more_is_better: bool | None
    overlap: float | None


@dataclass(frozen=True, slots=True)
class WorkloadDocument:
    """How one workload of one tile ended. `began` and `ended` are seconds after the common start, None if not known.

    `speed_percent` is the CPUs' mean speed meanwhile, relative to the best of each in the run; None if not traced.
    """

    workload: str
    tile: int
    guest: str
    outcome: str
    reason: str
    began: float | None
    ended: float | None
    speed_percent: float | None = None


@dataclass(frozen=True, slots=True)
class MovedDocument:
    """Bytes in one direction while the workloads ran: by the guests' disks, and by the host's disk.

    `memory_percent` is the part of the guests' bytes that the host's disk did not move meanwhile; None where they are
    too few for a share, or not known.
    """

    guests_bytes: float | None
    host_bytes: float | None
    memory_percent: float | None


@dataclass(frozen=True, slots=True)
class TrafficDocument:
    """Where the guests' bytes went, with one sentence that says so.

    `exact` where the counters were read as the workloads started and had ended; else they are by ticks of the recorder,
    of which the first and the last lie in part outside.
    """

    read: MovedDocument
    written: MovedDocument
    sentence: str
    exact: bool


@dataclass(frozen=True, slots=True)
class PercentilesDocument:
    """Percentiles of one operation (``read``, ``write``, ``flush``), in ms; None where there was no request."""

    operation: str
    requests: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class OneDiskLatency:
    """The same of one disk (``root``, ``data``) of a guest."""

    guest: str
    tile: int
    disk: str
    found: PercentilesDocument = field(metadata=FLAT)


@dataclass(frozen=True, slots=True)
class DiskLatencyDocument:
    """How long requests of the guests' disks took, of each disk and over all of them together.

    A percentile may be off by `error_percent`, between `least_ms` and `most_ms`; at these it may be any that is less or
    more.
    """

    error_percent: float
    least_ms: float
    most_ms: float
    over_disks: list[PercentilesDocument]
    disks: list[OneDiskLatency]


@dataclass(frozen=True, slots=True)
class BoundDocument:
    """The resource that was at its limit: ``cpu``, ``disk``, ``memory`` or ``none``; see `analysis.bound`.

    `where` is ``host``, or the guest whose processors were at their limit; empty for ``none``. `evidence` are shares in
    percent: means, and ``…_at_limit_percent`` of the time.
    """

    resource: str
    where: str
    sentence: str
    evidence: dict[str, float]


@dataclass(frozen=True, slots=True)
class BootDocument:
    """The way to boot that was asked for, and systemd's report: its state, default target, active and failed units."""

    mode: str
    state: str
    target: str
    units: list[str]
    failed: list[str]


@dataclass(frozen=True, slots=True)
class DataDiskDocument:
    """A data disk as its guest has it; `queues` are those that its kernel uses."""

    device: str
    bytes: int
    queues: int
    read_ahead_bytes: int
    write_cache: bool


@dataclass(frozen=True, slots=True)
class SeenDocument:
    """What one guest was found to be from inside: how it booted, and its data disk; None where it was not inspected."""

    guest: str
    tile: int
    boot: BootDocument | None = None
    data_disk: DataDiskDocument | None = None


@dataclass(frozen=True, slots=True)
class LeverDocument:
    """What was set of the scenario's key `lever`, and what the cell `got` of it, in `unit` where these are amounts.

    It is of a `guest` or of a `workload`, in one `tile` or, for None, in all. `delivered`: this cell is within
    `cell_within_percent` of what was `configured`, and the mean over its repeats within `within_percent`; None where
    that cannot be told, for the reason in `because`.
    """

    lever: str
    guest: str
    workload: str
    tile: int | None
    configured: float | str
    got: float | str | None
    unit: str
    within_percent: float
    cell_within_percent: float
    delivered: bool | None
    because: str = ""
    name: str = field(default="", metadata=INNER)  # What people call the lever.

    @property
    def where(self) -> str:
        """The guest, or the workload."""
        return self.guest or self.workload


@dataclass(frozen=True, slots=True)
class StageDocument:
    """The host's figures in one stage of a workload, from its first progress event to that of the next stage."""

    workload: str
    tile: int
    stage: str
    seconds: float
    host: dict[str, Summary]


@dataclass(frozen=True, slots=True)
class SwitchDocument:
    """A switch of `what` (``cache``, ``ksm``) under running guests, `at` a time of day, `seconds` after their start.

    One of the cache mode took its time: `pauses_ms` are by a guest's key how long it may have stood still. The host
    wrote dirty pages for `drained_seconds` before, in all `drained_bytes`, None where its kernel does not tell.
    """

    what: str
    at: str | None
    seconds: float
    origin: str
    before: str
    after: str
    pauses_ms: dict[str, float | None] = field(default_factory=dict)
    drained_seconds: float | None = None
    drained_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TileChangeDocument:
    """A tile was added to a looped cell, or retired, `seconds` after the start."""

    at: str | None
    seconds: float
    origin: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class RoundFigure:
    """A figure of one round."""

    value: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class RoundDocument:
    """One round of a workload in a looped cell, `verified` so long after the start; its client took `seconds`."""

    workload: str
    tile: int
    guest: str
    round: int
    outcome: str
    reason: str
    verified: float
    seconds: float | None
    figures: dict[str, RoundFigure]


@dataclass(frozen=True, slots=True)
class LoopRow:
    """A workload in one tile, or in all for `tile` None, over its `rounds`. Figures are None where they are not known.

    `throughput` is in `unit`: that of its kind's metric, or of rounds in a second (`of_rounds`) where the kind has
    none. `latency_seconds` is of the metric that is named.
    """

    workload: str
    tile: int | None
    rounds: int
    throughput: float | None
    unit: str
    of_rounds: bool
    latency_seconds: float | None
    latency_metric: str


@dataclass(frozen=True, slots=True)
class SpanDocument:
    """The host between two changes, `since` and `until` in seconds after the start.

    `cache` is the guests' mode in it, None where they differ; `ksm` is that of the host, and `tiles` worked, None where
    that is not known.

    `loop` has the rounds that were verified meanwhile, of a looped cell.
    """

    since: float
    until: float
    cache: str | None
    ksm: str | None
    tiles: int | None
    host: dict[str, Summary]
    disk_latency: DiskLatencyDocument | None
    loop: list[LoopRow]


@dataclass(frozen=True, slots=True)
class TargetDocument:
    """A limit on a metric of one tile; `at_least` says which side of it is right, `implied` that a pace asks for it.

    It is not `applicable` where the workload never gives the metric with its settings. `load` is how much of the limit
    the value takes: 1 at the limit, more where it is missed. It, `value` and `met` are None where nothing was measured;
    `load` also where the value was 0 and more was asked for. `written_in` is the scenario's own unit of the limit, such
    as ms; `limit` and `value` are in `unit`.
    """

    workload: str
    tile: int
    metric: str
    unit: str
    limit: float
    at_least: bool
    implied: bool
    applicable: bool
    written_in: str
    value: float | None
    load: float | None
    met: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDocument:
    """One point of the axes, one repeat; `settings` spells out what it is configured as.

    `block` is the repeat, all cells of which follow each other, and `position` the place of the cell in it, from 1. A
    warm-up is repeat and block 0. A cell with `switches` has the host's figures in `spans` alone. A `looped` cell has
    `rounds` in place of measurements, and `loop` over them. `speed_percent` is the CPUs' mean speed over its total wall
    clock, as that of a workload. `disk_latency` and `neighbours` are None where nobody counted, as in older records.
    `hypervisor` is the host of a fleet that ran it, None in any other run. `linked` said where guests were on two hosts
    in earlier versions.

    A cell that is measured again keeps its place: `attempt` counts from 1, and `replaced_by` is the number of the
    cell that took its place, whose figures count instead. JSON has both where there is more than one attempt.
    """

    cell: int
    hypervisor: str | None = None
    linked: None = None
    axes: dict[str, AxisValue] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    repeat: int
    block: int = 1
    position: int = 1
    warm_up: bool = False
    outcome: str
    reasons: list[str] = field(default_factory=list)
    provision: Provision = field(default_factory=Provision)
    yardstick: None = None
    speed_percent: float | None = None
    wall_seconds: float | None = None
    start_skew_ms: float | None = None
    skew_uncertainty_ms: float | None = None
    phases: dict[str, float] = field(default_factory=dict)
    workloads: list[WorkloadDocument] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    remade: list[RemadeDocument] = field(default_factory=list)
    over_tiles: list[OverTilesDocument] = field(default_factory=list)
    targets: list[TargetDocument] = field(default_factory=list)
    host: dict[str, Summary] = field(default_factory=dict)
    disk_traffic: TrafficDocument | None = None
    bound_by: BoundDocument | None = None
    disk_latency: DiskLatencyDocument | None = None
    neighbours: list[NeighbourUse] | None = None
    stages: list[StageDocument] = field(default_factory=list)
    switches: list[SwitchDocument] = field(default_factory=list)
    tile_changes: list[TileChangeDocument] = field(default_factory=list)
    spans: list[SpanDocument] = field(default_factory=list)
    looped: bool = False
    loop: list[LoopRow] = field(default_factory=list)
    rounds: list[RoundDocument] = field(default_factory=list)
    cache_proof: list[CacheProof] = field(default_factory=list)
    lever_proof: list[LeverProof] = field(default_factory=list)
    network_proof: list[NetworkProof] = field(default_factory=list)
    seen_in_guests: list[SeenDocument] = field(default_factory=list)
    delivered: list[LeverDocument] = field(default_factory=list)
    attempt: int = 1
    replaced_by: int | None = None
    level_divisor: int = field(default=1, metadata=INNER)
    """What divides the level of each test of repeats within its run (`sample_size.level_divisor`)."""

    def json_fields(self) -> dict[str, Any]:
        """The cell as it stands in ``vmlab.run/1``."""
        once = self.attempt == 1 and self.replaced_by is None
        return {name: one for name, one in fields_of(self).items() if not (once and name in ("attempt", "replaced_by"))}
