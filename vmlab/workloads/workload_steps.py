"""The interface between workloads and the engine.

The engine drives every workload of a cell through the same steps::

    stage     what each side makes ready on its own, such as files and tables; it is kept in guests' snapshots
    rehearse  what `prepare` will do again in each clone, as far as one side can, as the last thing before the snapshot
    prepare   what needs both sides, such as mounts, before the barrier; both count in provision.seconds
    client    the program that the engine starts behind the barrier, at the broadcast time
    progress  each line that the client prints may show how far it is
    settle    work that the system has not finished when the client ends, such as a queue that drains; runs at once,
              while other workloads may still run, so it must be light
    collect   after every workload of the cell has ended: verify the work, then give the figures
    renew     in a loop alone: make both sides ready for the next round, while other workloads run

A workload that did not do all of its work raises WorkloadError from `settle` or `collect`; it never returns
a smaller figure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import ConfigDict

from vmlab.model.asset import Asset, AssetForm
from vmlab.model.checked import LARGEST_FIGURE
from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.scenarios.scenario_part import Described
from vmlab.workloads.metrics import Metric, Reading, ToolTime
from vmlab.workloads.shell import Shell

Side = Literal["source", "target"]


@dataclass(frozen=True, slots=True)
class WorkloadContext:
    """Where one workload of one tile runs. `target` is None for workloads with one side. `reached` is the address that
    others reach the target by, None for its own.

    `seed` is the run's; `tile` counts from 1; `cell` too; `position` from 0, over all workloads of the cell, for what
    must be different where several share an address, such as ports. Draw random numbers from ``(seed, tile, workload)``
    alone, so that both sides of a comparison do the same work, and from `repeat`, the cell's, where each one is to be
    another sample. `round` counts from 1 how often it runs in these guests, which is more than once in a loop alone.
    """

    workload: str
    tile: int
    cell: int
    seed: int
    source: Shell
    target: Shell | None = None
    position: int = 0
    round: int = 1
    reached: str | None = None
    repeat: int = 1

    @property
    def tag(self) -> str:
        """What names this workload's own operations to its servers, such as a user agent or a subject of mail."""
        again = "" if self.round == 1 else f"+{self.round}"
        return f"vmlab-{self.seed}-{self.cell}-{self.tile}-{self.workload}{again}"

    @property
    def peer(self) -> Shell:
        """The target; for workloads with ``sides = 2`` the plan ensures that there is one."""
        if self.target is None:
            raise ValueError(f"workload {self.workload} has no target")
        return self.target

    @property
    def peer_address(self) -> str:
        """The IPv4 address that the source reaches the target by, which may not be one that the target has."""
        return self.reached or self.peer.address


@dataclass(frozen=True, slots=True)
class StagingContext:
    """One side of a workload, alone: its guest may have no network yet, and become many guests later.

    Draw random data from ``(seed, workload)`` alone, so that the guests of all tiles and cells begin equal.
    """

    workload: str
    side: Side
    seed: int
    shell: Shell
    asset: Asset | None = None
    """The user's own copy of a suite, for kinds that name one."""


@dataclass(frozen=True, slots=True)
class Client:
    """The program that runs behind the barrier on the source. `deadline` is in seconds from the start."""

    argv: tuple[str, ...]
    deadline: float
    environment: dict[str, str] = field(default_factory=dict)
    stdin: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """A client that ended. `seconds` is by the source's own monotonic clock, from just before exec to its end."""

    status: int
    seconds: float
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` in `unit`, within a stage such as ``there`` or ``back``.

    Raises ValueError for numbers that no record can hold.
    """

    done: float
    total: float
    unit: str
    stage: str = ""

    def __post_init__(self) -> None:
        if not all(abs(number) <= LARGEST_FIGURE for number in (self.done, self.total)):
            raise ValueError(f"a progress of {self.done!s:.20} of {self.total!s:.20}")


@dataclass(frozen=True, slots=True)
class Collected:
    """What a verified workload gives: metric to value, and the raw text of every tool behind them, by a name.

    Units are not given here: `Workload.metrics` has them.
    """

    values: Mapping[str, float]
    raw: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one instance of a workload costs, for the plan.

    `disk_bytes` is what it writes to guests' disks, or to the host's; `seconds` is an honest guess of preparation and
    execution together under the accelerator that is asked for, alone on an idle host with two cores. Of these,
    `idle_seconds` are spent in pauses and in waiting for a pace. `staging_seconds` come on top where guests are not
    restored with what was staged in them.
    """

    disk_bytes: int
    seconds: float
    idle_seconds: float = 0.0
    staging_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stored:
    """The least that lies in `folder` of one side at a time, in bytes; `key` is the parameter that asks for it."""

    side: Side
    bytes: int
    key: str
    folder: str = "/"


class WorkloadParams(Described):
    """Base of every workload's parameters: frozen, unknown keys refused, each field with a docstring."""

    model_config = ConfigDict(frozen=True, extra="forbid")


P = TypeVar("P", bound=WorkloadParams)


class Workload(ABC, Generic[P]):
    """One benchmark. Instances are made for each tile of each cell and may keep state between the steps."""

    kind: ClassVar[str]
    sides: ClassVar[Literal[1, 2]]
    """1: the scenario says ``on: GUEST`` (or ``on: host``); 2: it says ``from: GUEST`` and ``to: GUEST``."""
    takes_pair: ClassVar[bool] = False
    """Of a kind with one side: whether it may have ``from`` and ``to`` in place of ``on``."""
    needs_guest: ClassVar[bool] = False
    """Whether it runs in virtual machines alone, and never on the host, nor in a guest that is there."""
    roles: ClassVar[tuple[str | None, str | None]] = (None, None)
    """Roles that (source, target) must have, such as ``(None, "database")``; None where any will do."""
    host_sides: ClassVar[frozenset[Side]] = frozenset()
    """Of a kind with two sides: which may be the host. All tiles share its /run, and each has its own /data."""
    Params: ClassVar[type[WorkloadParams]]
    summary: ClassVar[str]
    """One sentence for ``vmlab schema`` and the console."""
    metrics: ClassVar[Mapping[str, Metric]]
    """Every metric that `collect` may give, by its name, in the order of tables; see `with_run_time`.

    The only place for units, labels and which end is better. Code that shows or compares figures reads it through
    ``declared`` of ``registry.kinds()[kind]``, without an instance. A metric that some parameters leave out, such as
    the reads of a workload that writes alone, is declared all the same and not given then.
    """
    throughput: ClassVar[str] = RUN_TIME
    """The metric that scores take for throughput: the rate of all that an instance does. ``run_time`` stands for its
    inverse, for a kind that measures no such rate: amounts of work are the same in each tile.
    """
    latency: ClassVar[str] = RUN_TIME
    """The metric that a loop shows for how long one operation takes; ``run_time`` for a kind that tells none."""
    follows_speed: ClassVar[bool] = False
    """Whether its times grow as the CPUs' speed falls, as measured: then comparisons can take that speed out."""
    needs_cpu: ClassVar[bool] = False
    """Whether the CPU time of the guest tells that the work was done, as nothing but the tool's own report does: then
    it is held against the least that the same work ever took on this host. See `lab/cell/cpu_needs.py`."""
    loops: ClassVar[bool] = False
    """Whether it can run again in the same guests, after `renew`."""

    arrived: ClassVar[str] = ""
    """The metric with the bytes that arrived over the network, without headers; empty where none is known.

    What tunnels and limits have carried is held against it.
    """

    paced: ClassVar[str] = ""
    """What a ``pace`` of it counts in a second, such as ``requests``; empty for a kind that takes no pace.

    A kind that takes one has ``pace`` among its parameters, and gives `pace.PACE_METRICS` where it is given.
    """

    tools: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]] = ((), ())
    """Programs that (source, target) need beside Python and the role's servers; the lab's own image has them all."""
    packages: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The Debian package of each of `tools` that is not called as its package."""
    asset: ClassVar[AssetForm | None] = None
    """What a user has to have a copy of for it; None for a kind that needs nothing."""
    texts: ClassVar[tuple[str, ...]] = ()
    """The names of the raw texts that `figures` reads, and that `collect` keeps.

    Empty where figures need more, such as what a server counted meanwhile: they cannot be made again then.
    """

    def __init__(self, params: P) -> None:
        self.params: P = params

    @classmethod
    def declared(cls, params: Mapping[str, Any]) -> Mapping[str, Metric]:
        """`metrics`, for a kind whose parameters name metrics with these besides.

        `params` are as records have them or as a scenario writes them; a record may be anybody's, so none is an error.
        """
        return cls.metrics

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """The metrics that `collect` never gives with these parameters, which are as records have them."""
        return frozenset()

    @classmethod
    def is_timed(cls, params: Mapping[str, Any]) -> bool:
        """Whether it works for a fixed time, whatever the host does: then its run time is no result.

        `params` are as records have them.
        """
        return False

    @classmethod
    def needs_windows(cls, params: Mapping[str, Any]) -> bool:
        """Whether with these parameters it runs in guests with Windows, and nowhere else; `params` as in `is_timed`.

        Its source is a `windows.WindowsPlace` then.
        """
        return False

    @abstractmethod
    def footprint(self, accelerator: str) -> Footprint:
        """What this instance costs; `accelerator` is ``kvm`` or ``tcg``."""

    def stored(self) -> tuple[Stored, ...]:
        """What must fit on the disks of its sides, for kinds of which a user chooses how much that is."""
        return ()

    def staged_by(self) -> dict[str, Any]:
        """The parameters that `stage` depends on; guests whose stages agree share a snapshot."""
        return {}

    async def stage(self, context: StagingContext) -> None:
        """Make ready what one side needs on its own. Roles' services run already; the peer may not exist yet.

        Nothing that is stored on this instance is available in `prepare`, which may be called in another run.
        """
        return

    async def rehearse(self, context: StagingContext) -> None:
        """Do what `prepare` does, as far as one side alone can, and undo it; not called for guests that booted.

        The caches of a guest that is about to be saved are empty. What this reads stays in its memory, and no clone
        has to read it from the disk. The caches are emptied again before the start, so no figure depends on it.
        """
        return

    @abstractmethod
    async def prepare(self, context: WorkloadContext) -> None:
        """Make ready what needs both sides. Both were staged."""

    @abstractmethod
    def client(self, context: WorkloadContext) -> Client:
        """The program that is timed. Called while `prepare` is under way, so it may depend only on context and
        parameters.
        """

    def progress(self, line: str) -> Progress | None:
        """The progress that a line of the client's standard output shows; None when it shows none."""
        return None

    async def settle(self, context: WorkloadContext, finished: Finished) -> None:
        """Wait for, and time, the work that the system still has after the client's end."""
        return

    @abstractmethod
    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """Verify and give figures, ``run_time`` in seconds among them. Raises WorkloadError."""

    async def renew(self, context: WorkloadContext) -> None:
        """Bring both sides back to where `prepare` left them, after a round that was verified; for kinds with `loops`.

        `context` is that of the round that begins; other workloads of the tile work meanwhile.
        """
        return

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """All figures, from `texts` alone; the client ran for `seconds`. Raises WorkloadError.

        `collect` has its figures from here, and `vmlab reparse` makes them again long after the guests are gone.
        """
        raise WorkloadError(f"values of the kind {self.kind} need more than the texts that are kept of it")

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """How much of the client's run these figures account for, and what it does besides; see `tool_time`.

        `texts` are those that were kept, `accelerator` is ``kvm`` on the host as well. None, which no kind of the lab's
        own gives, leaves the tool's time unchecked.
        """
        return None

    def readings(self, collected: Collected) -> tuple[Reading, ...]:
        """What was collected as readings, in the order in which they are declared.

        Raises WorkloadError for a metric that the kind does not declare, a value that no record can hold, and
        where ``run_time`` is missing.
        """
        metrics = self.declared(dict(self.params))
        for name, value in collected.values.items():
            if name not in metrics:
                raise WorkloadError(f"kind {self.kind} gave a metric that it does not declare: {name}")
            if not abs(value) <= LARGEST_FIGURE:
                raise WorkloadError(f"kind {self.kind} gave {value!s:.20} for {name}")
        if RUN_TIME not in collected.values:
            raise WorkloadError(f"kind {self.kind} gave no run_time")
        return tuple(
            Reading(name, float(collected.values[name]), metric.unit, metric.better)
            for name, metric in metrics.items()
            if name in collected.values
        )


AnyWorkload = Workload[Any]
