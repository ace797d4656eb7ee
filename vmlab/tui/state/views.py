"""What viewers draw: frozen pictures of a run, its current cell, its guests and its workloads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from vmlab.model.names import guest_key
from vmlab.model.run import RUNNING, AxisValue

if TYPE_CHECKING:
    from vmlab.analysis.cell_shape import LoopRow
    from vmlab.model.cell_event import DiskSilent
    from vmlab.report.run.tiles_board import Board, TargetBar

Axes = tuple[tuple[str, AxisValue], ...]
"""Names and values of a cell's axes in order; hashable."""


class LogLine(NamedTuple):
    """One line of the event log. `level` is ``info``, ``good``, ``warning`` or ``error``; `wall` seconds since 1970."""

    wall: float
    level: str
    text: str


class Part(NamedTuple):
    """What the scenario says of a workload: the guest that runs its client, and the one that serves it."""

    client: str
    server: str | None = None


Intent = Mapping[str, Part]
"""The scenario's workloads by name."""


class WorkloadView(NamedTuple):
    """One workload of a guest. `began` is on the monotonic clock; `seconds` is None while it runs.

    `fraction` is 0 to 1 within its `stage` and None before its first progress event; `last_seconds` is how long it took
    the last time it ran under the same axes and size, None where it never did.
    """

    name: str
    began: float
    fraction: float | None = None
    stage: str = ""
    outcome: str = RUNNING
    seconds: float | None = None
    last_seconds: float | None = None

    def elapsed(self, now: float) -> float:
        """Seconds since it began, or how long it took; `now` is on the monotonic clock."""
        return max(0.0, now - self.began) if self.seconds is None else self.seconds


class GuestView(NamedTuple):
    """One guest. `state` is as in the runner's events, and ``running`` while a workload's client runs in it.

    `serves` names the workloads whose server it is. `vcpus` is 0 where that is not known.
    """

    tile: int
    guest: str
    role: str
    state: str
    workloads: tuple[WorkloadView, ...] = ()
    serves: tuple[str, ...] = ()
    vcpus: int = 0

    @property
    def key(self) -> str:
        """The guest's name in samples, such as ``t1-file-a``."""
        return guest_key(self.tile, self.guest)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended: what was sampled last says nothing of now."""
        return self.state == "gone"


class Moment(NamedTuple):
    """What began at `mono`, on the monotonic clock, in one word for the time axis; `tone` names its colour."""

    mono: float
    word: str
    tone: str = "quiet"


class FreezingView(NamedTuple):
    """A guest that is made ready to be frozen since `began` (monotonic), and is in `stage`; `seconds` once it is."""

    guest: str
    stage: str
    began: float
    seconds: float | None = None


class CellView(NamedTuple):
    """One cell that began; its `number` counts from 1.

    Times are on the monotonic clock; `wall_seconds` is known when it ended.
    """

    number: int
    axes: Axes
    repeat: int
    phase: str = ""
    phase_began: float = 0.0
    outcome: str = RUNNING
    wall_seconds: float | None = None
    settings: Mapping[str, Any] = MappingProxyType({})
    switches: tuple[tuple[float, str, str], ...] = ()
    """When it was switched while it ran, on the monotonic clock, what, and to which state."""

    tile_changes: tuple[tuple[float, int], ...] = ()
    """When tiles were added or retired while it ran, and how many there were then."""

    @property
    def tiles(self) -> AxisValue | None:
        """How many tiles it has at present."""
        return self.tile_changes[-1][1] if self.tile_changes else self.axis("tiles")

    @property
    def cache(self) -> AxisValue | None:
        """The cache mode of its guests at present; None where they differ."""
        return self.now.get("cache", self.axis("cache"))

    @property
    def ksm(self) -> str | None:
        """Whether the host's KSM is ``on`` or ``off`` at present; None where that is not known."""
        began: str | None = self.settings.get("host", {}).get("ksm")
        return self.now.get("ksm", began)

    @property
    def now(self) -> dict[str, str]:
        """What was switched while it ran, with its present state."""
        return {what: after for _, what, after in self.switches}

    def axis(self, name: str) -> AxisValue | None:
        """The value of one axis, or of the attribute of this name that all guests share; None where there is none."""
        value: AxisValue | None = dict(self.axes).get(name, self.settings.get(name))
        return value


class RunView(NamedTuple):
    """A run as it stands. `began` and `ended` are on the monotonic clock; an empty `id` means that there is no run.

    `next_axes` are the axis values of the next cell if the user changed the cells to come, else None. `length` is the
    seconds that the whole run took, where that is known because it was recorded. `moments` are the newest beginnings
    of cells and phases, and changes by the user. `coming` are the axis values of the next cell, None where they are
    not known or there is none. `freezing` are the guests that this cell freezes, in the order in which they began.
    `ordered` has the words for parts of the host that are not its own. `executed` has begin and end of the newest
    execute phases, infinity for the end of one that goes on.
    """

    id: str = ""
    scenario: str = ""
    size: str = ""
    cells_planned: int = 0
    expected_seconds: float = 0.0
    began: float = 0.0
    accelerator: str = ""
    ordered: tuple[str, ...] = ()
    outcome: str = RUNNING
    reason: str = ""
    ended: float | None = None
    stopping: bool = False
    cell: CellView | None = None
    cells: tuple[CellView, ...] = ()
    guests: tuple[GuestView, ...] = ()
    log: tuple[LogLine, ...] = ()
    next_axes: Axes | None = None
    length: float | None = None
    moments: tuple[Moment, ...] = ()
    coming: Axes | None = None
    freezing: tuple[FreezingView, ...] = ()
    executed: tuple[tuple[float, float], ...] = ()
    silent: tuple[DiskSilent, ...] = ()
    """The disks of guests that answer nothing now."""
    loop: tuple[LoopRow, ...] = ()
    """The newest round of each workload and tile of the cell, where it is looped."""

    @property
    def switched(self) -> tuple[float, ...]:
        """When running guests were switched, or tiles added and retired, on the monotonic clock, in order."""
        cells = self.cells if self.cell is None else (*self.cells, self.cell)
        switched = {moment for cell in cells for moment, _, _ in cell.switches}
        return tuple(sorted(switched | {moment for cell in cells for moment, _ in cell.tile_changes}))

    def elapsed(self, now: float) -> float:
        """Seconds since the run began, or how long it took."""
        return max(0.0, (now if self.ended is None else self.ended) - self.began) if self.id else 0.0


class Measured(NamedTuple):
    """What a run's cells say so far: the board of tiles, and the targets of `cell`, the last whose work is done."""

    board: Board | None = None
    cell: int = 0
    targets: tuple[TargetBar, ...] = ()


NO_RUN = RunView()
"""The sentinel that screens show when no run is watched."""


class Readiness(NamedTuple):
    """What was found out of this host: in `words` what it has or lacks, by what is begun how long that takes and what
    it needs, and how many `scenarios` there are.
    """

    words: str = ""
    needs: Mapping[str, str] = MappingProxyType({})
    scenarios: int = 0
    is_ready: bool = True
