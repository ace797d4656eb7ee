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
    HostBody,
    Repeat,
    Seed,
    TimeOfDay,
)
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
        # A base's mark is its own: what is derived from it is a kind.
        if "is_base" not in cls.__dict__:
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
class CellEvent(Event):
    """Base of events of a cell, which is there by its number."""

    is_base: ClassVar = True

    cell: Cell


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

    One that a user has added is ``added``, and has the `name` by which guests ask for it. A layer on vmlab's own image
    has a name, too, such as ``debian with redis-server``.
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
class CellPlaced(CellEvent):
    """A cell of a run of a fleet is given to the host `name`; the cell's own events follow."""

    name: str


@event
class CellWithdrawn(CellEvent):
    """A cell broke off, and is measured anew: what is recorded of it so far does not count. `name` is its host in a
    fleet, empty for a run of one host that was cut off and goes on.
    """

    name: str
    reason: str


@event
class StartAwaited(CellEvent):
    """A cell that starts on several hosts together is ready on one, which announces the start in `lead_seconds`."""

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
class HalfEnded(CellEvent):
    """In records of older versions: a cell with guests on two hosts has ended on the other one, `name`.

    The cell has the worse outcome of both.
    """

    name: str
    outcome: str
    reasons: list[str]


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
    """The cells to come are others, as a viewer asked or because one is measured again.

    `next_axes` are the axis values of the next one, none where none follows. `cells` is the number of the last cell,
    which is their total where none is skipped. `coming` has every cell to come as it is now; None in records of older
    versions.
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
class MeasuredAgain(CellEvent):
    """The cell `cell`, which begins next, measures the cell `again_of` again and takes its place."""

    again_of: Cell


@event
class AttemptsAsked(Event):
    """The cells with these numbers are measured again, as was asked after the run had ended."""

    cells: list[Cell]


@event
class RepeatsAdded(Event):
    """A run that had ended goes on, up to so many `repeats` in all; its plan has so many `cells` then."""

    repeats: Repeat
    cells: Cell


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
