"""A run as it was recorded. ``vmlab.run/1``, its document for other programs, is made of these fields by `jsonable`;
docs/reference/json.md specifies it.

Times of day are ISO 8601 with their zone, durations seconds, and None (``null``) is what was not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vmlab.analysis.cell_shape import CellDocument
from vmlab.model.domain import DomainDisk
from vmlab.model.jsonable import fields_of
from vmlab.model.results import Summary
from vmlab.model.run import AS_WRITTEN, AxisValue
from vmlab.model.scenarios.table_words import TABLE

SCHEMA = "vmlab.run/1"


@dataclass(frozen=True, slots=True)
class AxisDocument:
    """The values of an axis in the scenario's order, and its name in headings (may be empty)."""

    values: list[AxisValue]
    label: str


@dataclass(frozen=True, slots=True)
class AbsentDocument:
    """A value of an axis that has no cells, and why."""

    axes: dict[str, AxisValue]
    reason: str


@dataclass(frozen=True, slots=True)
class TableDocument:
    """How results are laid out. `columns`, `rows` and `baseline` are the outermost of each side.

    `column_parts` and `row_parts` are all: axes, ``workloads``, ``metrics`` or ``statistics``, the outermost first.
    `baseline_place` is a baseline that was given by parts; see `model.table.Table` for the others.
    """

    columns: str
    rows: str
    baseline: AxisValue | None
    column_parts: list[str]
    row_parts: list[str]
    metrics: list[str]
    statistics: list[str]
    over: str
    relative: str | None
    baseline_place: dict[str, AxisValue]
    best_of: int | None


@dataclass(frozen=True, slots=True)
class BesideDocument:
    """A run that measured on the same host at the same time, who started it, and when it was first seen."""

    run: str
    user: str
    seen: str | None


@dataclass(frozen=True, slots=True)
class UntilDocument:
    """What a run is repeated up to, a spread or answers, and what came of it: None while it is not known.

    `looks` are the numbers of repeats after which it is looked at, by its table where `looks_at` says so, else by its
    claims. One of spread and looks is None, or both where the time of `seconds` alone ends the run. JSON has `seconds`
    where there is such a time, and `looks_at` where it is the table.
    """

    spread_percent: float | None
    looks: list[int] | None
    at_least: int
    at_most: int
    repeats: int | None
    widest_percent: float | None
    reached: bool | None
    seconds: float | None = None
    looks_at: str | None = None

    @property
    def table_looks(self) -> int:
        """How many looks at its tables are planned; 1 where there are none, or claims are looked at."""
        return len(self.looks) if self.looks and self.looks_at == TABLE else 1

    def json_fields(self) -> dict[str, Any]:
        """As it stands in ``vmlab.run/1``."""
        omitted = [name for name in ("seconds", "looks_at") if getattr(self, name) is None]
        return {name: one for name, one in fields_of(self).items() if name not in omitted}


@dataclass(frozen=True, slots=True)
class SpeedDocument:
    """How fast the CPUs were while workloads ran, in percent of the best of each CPU in the run.

    `mean_percent` is over time and CPUs, `lowest_percent` and `highest_percent` are of one CPU in one tick.
    `steal_percent` is the CPU time that something above the host took meanwhile, None where that is not known.
    """

    mean_percent: float
    lowest_percent: float
    highest_percent: float
    steal_percent: float | None


@dataclass(frozen=True, slots=True)
class ExtensionDocument:
    """Blocks were added to a run that had ended, `at` a time of day, up to so many `repeats` in all."""

    repeats: int
    at: str | None


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A scenario's text as the run was started with it, and the values of its variables."""

    text: str
    variables: dict[str, str]


@dataclass(frozen=True, slots=True)
class FleetHostDocument:
    """A host of a fleet: its own `run`, what it was before any load, and how far its clock was ahead.

    `left_out` is why it took no further cells; None where it took part to the end.
    """

    name: str
    run: str
    accelerator: str
    facts: dict[str, Any]
    offset_ms: float | None
    uncertainty_ms: float | None
    left_out: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """The run itself; `image` is vmlab's own image by its id, `host` what the host was before any load.

    `hosts` are those of a fleet, none of any other run; `host` then has what is the same on all of them.

    `added_images` has the ids of the images that users added and guests started from, by their names, `assets` the
    SHA-256 of users' own copies of suites.

    `written` is None in runs of before scenarios had variables, and then JSON lacks it. It also lacks
    `note` and `tags` where no user gave any.

    `until` is None for a number of repeats. `throughput` has the metric that scores take for the throughput of each
    workload of a known kind; ``run_time`` stands for its inverse. A `control` run has one configuration on
    both sides. `speed` is None where the CPUs' speed was not traced. `extended` has the times at which repeats were
    added after the run had ended; JSON has it where there are any.
    """

    id: str
    scenario: str
    size: str = ""
    outcome: str = ""
    started: str | None = None
    ended: str | None = None
    accelerator: str | None = None
    seed: int | None = None
    image: str | None = None
    added_images: dict[str, str] = field(default_factory=dict)
    assets: dict[str, str] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    hosts: list[FleetHostDocument] = field(default_factory=list)
    speed: SpeedDocument | None = None
    reason: str = ""
    exit_code: int | None = None
    cells_planned: int = 0
    order: str = AS_WRITTEN
    written: WrittenDocument | None = None
    control: bool = False
    targets_decide: bool = False
    until: UntilDocument | None
    extended: list[ExtensionDocument] = field(default_factory=list)
    axes: dict[str, AxisDocument]
    absent: list[AbsentDocument]
    table: TableDocument | None
    throughput: dict[str, str]
    notices: list[str] = field(default_factory=list)
    measured_beside: list[BesideDocument] = field(default_factory=list)
    note: str = ""
    tags: list[str] = field(default_factory=list)

    def json_fields(self) -> dict[str, Any]:
        """The run as it stands in ``vmlab.run/1``."""
        omitted = [name for name in ("written", "extended", "note", "tags") if not getattr(self, name)]
        return {name: one for name, one in fields_of(self).items() if name not in omitted}


@dataclass(frozen=True, slots=True)
class DomainDiskDocument(DomainDisk):
    """A disk of a guest of the host's own, with its figures."""

    figures: dict[str, Summary] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DomainDocument:
    """A guest of the host's own: see `model.domain.Domain`."""

    name: str
    source: str
    vcpus: int
    memory_bytes: int
    accelerator: str
    shares: list[str]
    figures: dict[str, Summary]
    disks: list[DomainDiskDocument]


@dataclass(frozen=True, slots=True)
class RecordingDocument:
    """What a recording of the host has of its own guests over `seconds`; `disks` are those of the host below them."""

    seconds: float
    domains: list[DomainDocument]
    disks: dict[str, dict[str, Summary]]


@dataclass(frozen=True, slots=True)
class OverHostsDocument:
    """One metric over all hosts that ran a cell together: the `sum` of a rate, None of anything else, and the `worst`
    figure of any tile with its host, None for a metric of which neither end is better.
    """

    workload: str
    metric: str
    unit: str
    more_is_better: bool | None
    sum: float | None
    worst: float | None
    worst_host: str | None


@dataclass(frozen=True, slots=True)
class TogetherDocument:
    """The `cells` that the hosts of a fleet ran together, which count as one.

    `start_skew_ms` is from the first workload that started on any host to the last; it and its uncertainty are None
    where not all started. `starts_ms` has for each host how long after the first of all its own first one started.
    """

    cells: list[int]
    axes: dict[str, AxisValue]
    repeat: int
    outcome: str
    reason: str
    start_skew_ms: float | None
    skew_uncertainty_ms: float | None
    starts_ms: dict[str, float]
    over_hosts: list[OverHostsDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument:
    """The whole of a run; `tables` are its results laid out as `run` says, `scores` those of `analysis.scores`.

    `together` are the cells that hosts of a fleet ran together, [] of every other run. `recording` is that of `vmlab
    record`, None of every other run.
    """

    schema: str = SCHEMA
    run: RunPart
    cells: list[CellDocument] = field(default_factory=list)
    together: list[TogetherDocument] = field(default_factory=list)
    tables: list[Any] = field(default_factory=list)
    scores: dict[str, Any] = field(default_factory=dict)
    recording: RecordingDocument | None = None
