"""A scenario as it is written: guests, workloads, axes, sizes and limits.

The models are strict and frozen; their values come from YAML, so nothing is guessed from text. What needs more than
the file itself, such as the parameters of a kind of workload, is checked by the planner.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from vmlab.model.units import Bytes, Seconds

GUEST_ATTRIBUTES = ("vcpus", "memory", "queues", "cpu_shares")
"""Attributes of guests whose name alone is an axis, over all guests."""
BUILT_IN_AXES = ("tiles", "cache", *GUEST_ATTRIBUTES)
RESERVED_NAMES = ("axes", "guests", "host", "repeats", "workloads")
"""Words that neither a guest nor a workload nor an axis may be called: the language gives them a meaning."""
ROLES = ("fileserver", "web", "database", "mail")
SIZES = ("smoke", "demo", "full")
MOST_TILES = 64
MOST_OF_EACH = 64
"""Guests, and workloads, of one tile."""
MOST_AXES = 8

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}", re.ASCII)
_AXIS_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}", re.ASCII)
_NAME_WORDS = "small letters, digits and dashes, at most 31, the first a letter"


def check_name(name: object) -> object:
    """A name of a guest, a workload or an image; it may stand in file names, XML and host names as it is.

    Raises ValueError for a name that is anything but harmless, or that means something else.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"needs {_NAME_WORDS}")
    if name in RESERVED_NAMES:
        raise ValueError("is taken: the scenario language gives the word a meaning of its own")
    return name


def check_axis_name(name: object) -> object:
    """A name of an axis: as `check_name`, with underscores allowed."""
    if not isinstance(name, str) or not _AXIS_NAME.fullmatch(name) or name in RESERVED_NAMES:
        raise ValueError("needs small letters, digits, dashes and underscores, the first a letter")
    return name


def _as_tuple(value: object) -> object:
    """One word stands for a list of it."""
    return [value] if isinstance(value, str) else value


def _vcpus(value: object) -> object:
    if value == "host" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 256):
        return value
    raise ValueError("needs a whole number from 1 to 256, or the word host for as many as the host has")


_NAME_SCHEMA = WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$", "not": {"enum": [*RESERVED_NAMES]}})
Name = Annotated[str, BeforeValidator(check_name), _NAME_SCHEMA]
AxisName = Annotated[str, BeforeValidator(check_axis_name), WithJsonSchema({"type": "string"})]
Role = Literal["fileserver", "web", "database", "mail"]
Roles = Annotated[
    tuple[Role, ...],
    Field(strict=False),
    BeforeValidator(_as_tuple),
    WithJsonSchema(
        {"anyOf": [{"enum": [*ROLES]}, {"type": "array", "items": {"enum": [*ROLES]}, "uniqueItems": True}]}
    ),
]
Vcpus = Annotated[
    int | Literal["host"],
    BeforeValidator(_vcpus),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 256}, {"const": "host"}]}),
]
Paths = Annotated[
    tuple[str, ...],
    Field(strict=False),
    BeforeValidator(_as_tuple),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
Scalar = bool | int | float | str


class ScenarioPart(BaseModel):
    """Base of the models here: frozen, strict, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class Guest(ScenarioPart):
    """One guest of a tile; every tile has its own."""

    role: Roles = ()
    """What the guest serves: fileserver, web, database or mail, or a list of these."""
    vcpus: Vcpus = 1
    """Virtual CPUs, 1 to 256; ``host`` for as many as the host has."""
    memory: Annotated[Bytes, Field(ge=64 * 2**20, le=2**44)]
    """RAM, such as 512 MiB."""
    disk: Annotated[Bytes, Field(ge=2**30, le=2**46)] = 8 * 2**30
    """Size of the disk as the guest sees it, such as 8 GiB; only what is written takes room on the host."""
    queues: Annotated[int, Field(ge=1, le=64)] = 1
    """Queues of the virtio disk."""
    cpu_shares: Annotated[int | None, Field(ge=2, le=262144)] = None
    """Weight of the guest's CPU time against other guests (cgroup); 1024 is everybody's default."""


class WorkloadEntry(ScenarioPart):
    """One benchmark; keys besides these are parameters of its kind and are found in `params`."""

    model_config = ConfigDict(extra="allow")

    kind: str
    """Which benchmark: filecopy, oltp, http, smtp, cpu."""
    source: str | None = Field(default=None, alias="from")
    """The guest that runs the client, for kinds with two sides."""
    target: str | None = Field(default=None, alias="to")
    """The guest that serves it, for kinds with two sides."""
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
        return tuple(dict.fromkeys(place for place in named if place is not None and place != "host"))


class Axis(ScenarioPart):
    """What is varied: its values, and where each is put."""

    values: Annotated[tuple[Scalar, ...], Field(min_length=1, max_length=100, strict=False)]
    """The values, in order; every one makes a cell of its own."""
    sets: Paths = ()
    """Where a value is put: ``workloads.primes.threads``, ``guests.*.memory``, or a list of such paths."""
    label: str = ""
    """A word for people, in headings of tables."""


class Limits(ScenarioPart):
    """When a cell that was measured is not to be believed; it is then marked invalid, with the reason."""

    start_skew: Seconds = 0.5
    """How far apart the workloads may have started, such as 500 ms."""
    host_steal_percent: Annotated[float, Field(ge=0, le=100)] = 25.0
    """How much CPU time something above the host may have taken, as a share of all CPUs."""
    host_other_percent: Annotated[float, Field(ge=0, le=100)] = 80.0
    """How much CPU time the host's other work may have taken, as a share of all CPUs; above 10 it is told."""
    clock_drift_percent: Annotated[float, Field(ge=0, le=100)] = 5.0
    """How far a guest's clock may run apart from the host's while a workload runs."""


class Table(ScenarioPart):
    """How results are laid out: an axis, or ``workloads``, on either side."""

    columns: str
    """The name of an axis, or ``workloads``."""
    rows: str = "workloads"
    """The name of an axis, or ``workloads``."""
    baseline: Scalar | None = None
    """The column that the others are compared with."""


class Allow(ScenarioPart):
    """What is refused unless the scenario says that it is meant."""

    memory_overcommit: bool = False
    """Guests may be given more memory than the host has free."""
    unsafe_cache: bool = False
    """The cache mode ``unsafe`` may be used: a crash of the host may lose the guests' data."""


class Reference(ScenarioPart):
    """Published figures that the scenario reproduces; free in form."""

    model_config = ConfigDict(extra="allow")

    source: str
    """Title, author and place of what was published."""


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
    hypervisor: Literal["embedded", "qemu:///system"] = "embedded"
    """Where guests run: ``embedded`` keeps libvirt inside the run."""
    image: Name = "debian"
    """The image that all guests start from."""
    guests: Annotated[dict[Name, Guest], Field(max_length=MOST_OF_EACH)] = Field(default_factory=dict)
    """The guests of one tile, by name."""
    workloads: Annotated[dict[Name, WorkloadEntry], Field(min_length=1, max_length=MOST_OF_EACH)]
    """The benchmarks of one tile, by name; all of them start together."""
    axes: Annotated[dict[AxisName, Axis], BeforeValidator(_axes), Field(max_length=MOST_AXES)] = Field(
        default_factory=dict
    )
    """What is varied; every combination of values is a cell."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often every cell is run."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 1
    """Seed of all random data, so that both sides of a comparison do the same work."""
    sizes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The same experiment, smaller: changes for ``smoke`` and ``demo``; ``full`` is what the scenario says."""
    limits: Limits = Limits()
    """When a measured cell is invalid."""
    table: Table | None = None
    """How results are laid out; chosen from the axes where it is left out."""
    reference: Reference | None = None
    """Published figures that the scenario reproduces."""
    allow: Allow = Allow()
    """What is refused unless it is meant."""
