"""What the planner takes and gives: overrides of the command line, facts of the host, and the plan itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from vmlab.model.run import Accelerator, AxisValue, CacheMode, PlannedCell

if TYPE_CHECKING:
    from vmlab.model.scenario import Scenario
    from vmlab.workloads.contract import WorkloadParams


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line changes of a scenario. None leaves the scenario's word standing.

    `sets` holds assignments as they were typed, such as ``workloads.web.requests=500``.
    """

    size: str = "demo"
    tiles: tuple[int, ...] | None = None
    cache: tuple[CacheMode, ...] | None = None
    repeats: int | None = None
    sets: tuple[str, ...] = ()
    seed: int | None = None
    allow_overcommit: bool = False
    allow_unsafe: bool = False
    cold: bool = False

    def to_json(self) -> dict[str, Any]:
        """A mapping of JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Overrides:
        """The inverse of `to_json`; keys that this version does not know are left out."""
        known = {field.name for field in fields(cls)}
        given: dict[str, Any] = {key: value for key, value in body.items() if key in known}
        frozen: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
        }
        return cls(**frozen)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What the plan must fit into. `accelerator_guess` was not probed: only a booted kernel proves KVM."""

    memory_available_bytes: int
    memory_total_bytes: int
    disk_free_bytes: int
    cpus: int
    accelerator_guess: Accelerator


@dataclass(frozen=True, slots=True)
class GuestPlan:
    """One guest of one cell. `key` is unique within the cell and safe, such as ``t1-file-a``; `tile` counts from 1."""

    key: str
    tile: int
    guest: str
    roles: tuple[str, ...]
    vcpus: int
    memory_bytes: int
    disk_bytes: int
    queues: int
    cpu_shares: int | None


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """One workload of one tile of one cell. `source` and `target` are guests' keys; `source` may be ``host``."""

    name: str
    tile: int
    kind: str
    params: WorkloadParams
    source: str
    target: str | None


@dataclass(frozen=True, slots=True)
class CellPlan:
    """One point of the axes, one repeat. `index` counts from 1 in the order of execution, `repeat` from 1.

    `memory_bytes` is what the guests are given, `disk_bytes` what is written, `seconds` an estimate.
    """

    index: int
    axes: dict[str, AxisValue]
    repeat: int
    cache: CacheMode
    tiles: int
    guests: tuple[GuestPlan, ...]
    workloads: tuple[WorkloadPlan, ...]
    memory_bytes: int
    disk_bytes: int
    seconds: float

    def planned(self) -> PlannedCell:
        """The cell as the store keeps it."""
        return PlannedCell(
            index=self.index,
            axes=dict(self.axes),
            repeat=self.repeat,
            guests=len(self.guests),
            memory_bytes=self.memory_bytes,
            disk_bytes=self.disk_bytes,
            seconds=self.seconds,
        )


@dataclass(frozen=True, slots=True)
class TableSpec:
    """How the result table is laid out: an axis or ``workloads`` on either side; ratios are to `baseline`."""

    columns: str
    rows: str
    baseline: AxisValue | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A scenario made concrete. `scenario` has size and assignments applied; maxima are over cells, never sums.

    `size` is the one that really runs: ``full`` where the scenario has no such size. `notes` are lines for people
    that belong on the results, such as memory overcommit.
    """

    scenario: Scenario
    size: str
    seed: int
    cells: tuple[CellPlan, ...]
    seconds: float
    memory_bytes: int
    disk_bytes: int
    guests: int
    table: TableSpec
    notes: tuple[str, ...]
