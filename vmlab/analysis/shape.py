"""The shape of ``vmlab.run/1``, the document of a run that other programs rely on; docs/json.md is its promise.

Times of day are ISO 8601 with their zone, durations seconds, and None (``null``) is what was not measured.
"""

from __future__ import annotations

from typing import Any, TypedDict

from vmlab.model.run import AxisValue

SCHEMA = "vmlab.run/1"
RUNNING = "running"
"""The outcome of a run or a cell that has not ended and still may; otherwise it is one of `model.run.Outcome`."""


class AxisDocument(TypedDict):
    """The values of an axis in the scenario's order, and its word for headings (may be empty)."""

    values: list[AxisValue]
    label: str


class TableDocument(TypedDict):
    """How results are laid out: an axis' name or ``workloads`` on either side."""

    columns: str
    rows: str
    baseline: AxisValue | None


class RunPart(TypedDict):
    """The run itself; `host` is what the host was before any load."""

    id: str
    scenario: str
    size: str
    outcome: str
    started: str | None
    ended: str | None
    accelerator: str | None
    seed: int | None
    host: dict[str, Any]
    reason: str
    exit_code: int | None
    cells_planned: int
    axes: dict[str, AxisDocument]
    table: TableDocument | None
    notices: list[str]


class ProvisionDocument(TypedDict):
    """How the guests came to be ready: ``restored`` or ``cold``, and after how many seconds.

    `snapshots` has the SHA-256 of the frozen state that each guest began from, by its key; empty for cold ones.
    """

    how: str | None
    seconds: float | None
    guests: int
    snapshots: dict[str, str]


class MeasurementDocument(TypedDict):
    """One figure that a workload produced; None where the tool gave no number."""

    workload: str
    tile: int
    guest: str
    metric: str
    value: float | None
    unit: str


class OverTilesDocument(TypedDict):
    """One metric over all tiles of a cell; `worst` is the longest time or the lowest rate, None for other units."""

    workload: str
    metric: str
    unit: str
    tiles: int
    mean: float
    worst: float | None


class WorkloadDocument(TypedDict):
    """How one workload of one tile ended."""

    workload: str
    tile: int
    guest: str
    outcome: str
    reason: str


class AggregateDocument(TypedDict):
    """One host figure over the execute phase; `area` is its integral over time; see `telemetry.summary.area_unit`."""

    mean: float
    max: float
    p95: float
    area: float


class ProofDocument(TypedDict):
    """A cache mode as QEMU's open file and QMP tell it."""

    guest: str
    file: str
    o_direct: bool
    writeback: bool
    direct: bool
    no_flush: bool
    expected: str
    agrees: bool


class CellDocument(TypedDict):
    """One point of the axes, one repeat."""

    cell: int
    axes: dict[str, AxisValue]
    repeat: int
    outcome: str
    reasons: list[str]
    provision: ProvisionDocument
    wall_seconds: float | None
    start_skew_ms: float | None
    skew_uncertainty_ms: float | None
    phases: dict[str, float]
    workloads: list[WorkloadDocument]
    measurements: list[MeasurementDocument]
    over_tiles: list[OverTilesDocument]
    host: dict[str, AggregateDocument]
    cache_proof: list[ProofDocument]


class RunDocument(TypedDict):
    """The whole of a run."""

    schema: str
    run: RunPart
    cells: list[CellDocument]
