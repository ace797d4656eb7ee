"""A scenario as it is written: guests, workloads, axes, sizes and limits.

The models are strict and frozen; their values come from YAML, so nothing is guessed from text. What needs more than
the file itself, such as the parameters of a kind of workload, is checked by the planner.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from vmlab.model.names import HOST_PLACE
from vmlab.model.roles import ROLES
from vmlab.model.run import HIGHEST_SEED, MOST_AXES, MOST_CELLS, MOST_OF_EACH, MOST_REPEATS
from vmlab.model.scenarios.axis import RESERVED_NAMES, Axis, AxisName
from vmlab.model.scenarios.guest import GuestAttributes
from vmlab.model.scenarios.host_settings import Host
from vmlab.model.scenarios.recorded import Recorded
from vmlab.model.scenarios.reference import Claim, Reference
from vmlab.model.scenarios.repetition import Order, Until, Warm, as_until
from vmlab.model.scenarios.scenario_part import ScenarioPart, as_tuple, matched
from vmlab.model.scenarios.table import Table
from vmlab.model.units import Bytes, Seconds, number_or_percent

HypervisorKind = Literal["embedded", "qemu:///system"]
HYPERVISORS: tuple[HypervisorKind, ...] = get_args(HypervisorKind)
SIZES = ("smoke", "demo", "full", "published")

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}", re.ASCII)


def check_name(name: object) -> object:
    """The name of a guest or a workload; it can be used unchanged in file names, XML and host names.

    Raises ValueError for other characters, and for reserved names.
    """
    if matched(name, _NAME, "needs small letters, digits and dashes, at most 31, the first a letter") in RESERVED_NAMES:
        raise ValueError("is taken: the scenario language gives the word a meaning of its own")
    return name


_NAME_SCHEMA = WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$", "not": {"enum": [*RESERVED_NAMES]}})
Name = Annotated[str, BeforeValidator(check_name), _NAME_SCHEMA]
if TYPE_CHECKING:
    Role = str
else:
    Role = Literal[*ROLES]
Roles = Annotated[
    tuple[Role, ...],
    Field(strict=False),
    BeforeValidator(as_tuple),
    WithJsonSchema(
        {"anyOf": [{"enum": [*ROLES]}, {"type": "array", "items": {"enum": [*ROLES]}, "uniqueItems": True}]}
    ),
]


class Guest(GuestAttributes):
    """One guest of a tile; every tile has its own."""

    role: Annotated[Roles, Field(description=f"What the guest serves: {', '.join(ROLES)}, or a list of these.")] = ()


class WorkloadEntry(ScenarioPart):
    """One benchmark; all other keys are parameters of its kind, see `params`."""

    model_config = ConfigDict(extra="allow")

    kind: str
    """Which benchmark; docs/reference/workloads.md describes each."""
    source: str | None = Field(default=None, alias="from")
    """The guest that runs the client, for kinds with two sides; for some of them ``host``."""
    target: str | None = Field(default=None, alias="to")
    """The guest that serves it, for kinds with two sides; for some of them ``host``."""
    on: str | None = None
    """Where a kind with one side runs: a guest, or ``host``."""

    @property
    def params(self) -> dict[str, Any]:
        """The parameters as they are written."""
        return dict(self.model_extra or {})

    @property
    def places(self) -> tuple[str, ...]:
        """Guests that it needs."""
        named = (self.source, self.target, self.on)
        return tuple(dict.fromkeys(place for place in named if place is not None and place != HOST_PLACE))


class Limits(ScenarioPart):
    """Limits beyond which a measured cell is marked invalid, with the reason."""

    start_skew: Seconds = 0.5
    """How far apart the workloads may have started, such as 500 ms."""
    host_steal_percent: Annotated[float, *number_or_percent(0)] = 25.0
    """How much CPU time a hypervisor below the host may have taken (steal), as a share of all CPUs."""
    host_speed_percent: Annotated[float, *number_or_percent(0)] = 30.0
    """How fast the CPUs must have run, as a share of each CPU's best in the run; below 90 % there is a notice."""
    host_other_percent: Annotated[float, *number_or_percent(0)] = 20.0
    """How much CPU time the host's other work may have taken, as a share of all CPUs; above 5 % there is a notice."""
    held_back_percent: Annotated[float, *number_or_percent(0)] = 5.0
    """For how much of the time a CPU quota may have kept the lab from running."""
    memory_pressure_percent: Annotated[float, *number_or_percent(0)] = 10.0
    """For how much of the time a task on the host may have waited for memory; above 1 % there is a notice."""
    swapped_bytes: Annotated[Bytes, Field(ge=0, alias="swapped")] = 2**20
    """How much the host may have swapped out and in while the workloads ran."""
    tick_lateness: Seconds = 0.5
    """How late the host's samples may have been taken on average, such as 500 ms; each sample covers a second."""
    clock_drift_percent: Annotated[float, *number_or_percent(0)] = 5.0
    """How far a guest's clock may drift from the host's while a workload runs."""


class Allow(ScenarioPart):
    """What is refused unless the scenario allows it."""

    memory_overcommit: bool = False
    """Guests may need more memory than the host has free, QEMU's own included."""
    unsafe_cache: bool = False
    """The cache mode ``unsafe`` may be used: a crash of the host may lose the guests' data."""
    noise: bool = False
    """Cells count whatever else the host did: load that would make them invalid only gives a notice."""
    equal_weight: bool = False
    """The lab has the same CPU weight as the host's own guests, and may take all free memory."""


TargetLimit = Annotated[
    str | int | float, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]})
]
"""A limit in the unit of its metric, such as ``500 ms``; the planner, which knows the metric, reads it."""


def _axes(value: object) -> object:
    """A bare list stands for an axis with these values."""
    if not isinstance(value, dict):
        return value
    return {name: {"values": axis} if isinstance(axis, list) else axis for name, axis in value.items()}


class Scenario(ScenarioPart):
    """An experiment: guests, what they do to each other, and what is varied."""

    name: Name
    """The scenario's name, as ``vmlab ls`` shows it."""
    summary: str = ""
    """One sentence on what it shows."""
    hypervisor: HypervisorKind = "embedded"
    """Which libvirt runs the guests: ``embedded`` is one inside the run, ``qemu:///system`` is the host's own."""
    guests: Annotated[dict[Name, Guest], Field(max_length=MOST_OF_EACH)] = Field(default_factory=dict)
    """The guests of one tile, by name."""
    workloads: Annotated[dict[Name, WorkloadEntry], Field(min_length=1, max_length=MOST_OF_EACH)]
    """The benchmarks of one tile, by name; all of them start together."""
    provision: Literal["restored", "cold"] = "restored"
    """How guests become ready: restored from snapshots, or all booted (``cold``), as for experiments with KSM."""
    helper: bool = True
    """Whether a resident helper in restored guests starts the lab's programs; otherwise SSH does."""
    host: Host = Host()
    """Settings of the whole host while the cells run, restored afterwards; emulated disk; limits of CPUs and memory."""
    axes: Annotated[dict[AxisName, Axis], BeforeValidator(_axes), Field(max_length=MOST_AXES)] = Field(
        default_factory=dict
    )
    """What is varied; every combination of values is a cell."""
    repeats: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 1
    """How often every cell is run."""
    until: Annotated[Until | None, BeforeValidator(as_until)] = None
    """Instead of `repeats`: the spread at which repeats end, such as 2 %, or a mapping with bounds."""
    again: Annotated[int, Field(ge=0, le=MOST_CELLS)] | None = None
    """How many times in all cells are measured again because something outside disturbed them: by default a quarter
    of the cells, and at least 2."""
    order: Order = "random"
    """Order of the cells in each repeat: random (from the seed) or as written."""
    warm_up: bool = False
    """Whether a copy of the first cell, shown but never counted, runs ahead of all others."""
    warm: Warm = False
    """Whether caches of guests and host, or only those of the `host`, stay as preparation left them."""
    steady_seconds: Annotated[Seconds, Field(alias="steady", ge=0, le=3600)] = 0.0
    """How long workloads wait at most for a steady CPU speed before they start, such as 30 s."""
    seed: Annotated[int, Field(ge=0, le=HIGHEST_SEED)] = 1
    """Seed of all random data and of the cells' order, so that both sides of a comparison do the same work."""
    sizes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Changes for ``smoke`` and ``demo``, which are smaller, and ``published``, a host as in a publication."""
    targets: dict[Name, dict[str, TargetLimit]] = Field(default_factory=dict)
    """What each tile must deliver: limits on workloads' metrics, such as ``web: {latency_p95: 500 ms}``."""
    limits: Limits = Limits()
    """When a measured cell is invalid."""
    table: Table | None = None
    """How results are laid out; chosen from the axes if left out."""
    reference: Reference | None = None
    """Published values that the scenario reproduces."""
    recorded: Recorded | None = None
    """The recorded load of a disk, which the workloads copy; `vmlab advise -o` writes it."""
    allow: Allow = Allow()
    """Permits what is otherwise refused."""

    @property
    def time_limit(self) -> float | None:
        """How many seconds a run may take; None where its scenario names no time."""
        return None if self.until is None else self.until.time

    @property
    def table_looks(self) -> int:
        """How many looks at its tables are planned, over which the level of their tests is divided; 1 for none."""
        looks = self.until.looks if self.until is not None and self.until.looks_at == "table" else None
        return len(looks or (1,))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the publication claims; none where the scenario reproduces no figures."""
        return () if self.reference is None else self.reference.claims
