"""The one stream of a run: every event is a frozen dataclass, written to the store, printed, drawn and replayed.

`wall` is seconds since the epoch, for people; `mono` is seconds of the host's monotonic clock, for durations.
Events travel as JSON objects with a ``kind`` that names the class.
"""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

from vmlab.model.run import AxisValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events; both clocks are read when it is made."""

    registry: ClassVar[dict[str, type[Event]]] = {}

    wall: float = field(default_factory=time.time)
    mono: float = field(default_factory=time.monotonic)

    def __init_subclass__(cls) -> None:
        # The module inspect, which would ask more nicely, costs every command a part of its start-up time.
        if "kind" in cls.__dict__.get("__annotations__", {}):  # noqa: RUF063
            raise TypeError(f"{cls.__name__} has a field called kind, which names the class where it is stored")
        Event.registry[cls.__name__] = cls


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """The first event: what will run, where. `cells` is how many are planned."""

    run: str
    scenario: str
    size: str
    seed: int
    cells: int
    expected_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProbed(Event):
    """The accelerator that a probe showed to work, and the host as it is before any load."""

    accelerator: str
    host: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReady(Event):
    """The image that all guests of the run start from; `how` is ``cached`` or ``built``."""

    image: str
    how: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotMade(Event):
    """A guest was booted, prepared and frozen, for this cell and those to come; it took `seconds`, counted apart."""

    cell: int
    guest: str
    snapshot: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStarted(Event):
    """A cell begins; `index` counts from 1."""

    cell: int
    axes: dict[str, AxisValue]
    repeat: int
    guests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted(Event):
    """A phase of a cell begins."""

    cell: int
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnded(Event):
    """A phase of a cell ended after `seconds`."""

    cell: int
    phase: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestStateChanged(Event):
    """A guest went from one state to the next: created, booted, identified, connected, prepared, gone."""

    cell: int
    tile: int
    guest: str
    role: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheProved(Event):
    """The cache mode as QEMU's open files and QMP tell it; fields as in `run.CacheProof`."""

    cell: int
    guest: str
    file: str
    o_direct: bool
    writeback: bool
    direct: bool
    no_flush: bool
    expected: str
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadStarted(Event):
    """A workload really began. `late_ms` is its true start less the broadcast one, in host time, ± `uncertainty_ms`.

    `benchmark` is the workload's kind in the scenario.
    """

    cell: int
    workload: str
    tile: int
    guest: str
    benchmark: str
    late_ms: float
    uncertainty_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadProgressed(Event):
    """How far a workload is: `done` of `total` in `unit`, in its stage `stage`."""

    cell: int
    workload: str
    tile: int
    done: float
    total: float
    unit: str
    stage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadEnded(Event):
    """A workload ended with an outcome, after `seconds`; `reason` is empty when it passed."""

    cell: int
    workload: str
    tile: int
    guest: str
    outcome: str
    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementTaken(Event):
    """One figure, as in `run.Measurement`."""

    cell: int
    workload: str
    tile: int
    guest: str
    metric: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEnded(Event):
    """A cell ended. `summary` holds what `show --json` tells of it besides its measurements and proofs."""

    cell: int
    outcome: str
    reasons: list[str]
    wall_seconds: float | None
    start_skew_ms: float | None
    skew_uncertainty_ms: float | None = None
    provision: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Event):
    """One line for people; `level` is ``info``, ``warning`` or ``error``."""

    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReceived(Event):
    """A viewer asked the runner for something: ``stop`` and what may come later."""

    command: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsReplanned(Event):
    """A viewer changed the cells to come: `cells` are planned now in all, `next_axes` is the next one's place."""

    cells: int
    next_axes: dict[str, AxisValue]
    expected_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerFinished(Event):
    """The runner's last word; its launcher still clears up behind it and then says RunEnded."""

    outcome: str
    exit_code: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The last event, after clean-up. `exit_code` is what `vmlab run` returns."""

    outcome: str
    exit_code: int
    reason: str = ""


def to_json(event: Event) -> str:
    """One line of JSON with the class's name under ``kind``."""
    body = {"kind": type(event).__name__, **dataclasses.asdict(event)}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str) -> Event | None:
    """The event that `to_json` wrote; None for a kind that this version does not know.

    Fields that this version does not know are left out, so that an older viewer reads a newer store.
    Raises ValueError where the text is not such an object.
    """
    body = json.loads(text)
    if not isinstance(body, dict) or "kind" not in body:
        raise ValueError("not an event")
    cls = Event.registry.get(body.pop("kind"))
    if cls is None:
        return None
    known = {f.name for f in dataclasses.fields(cls)}
    return cls(**{name: value for name, value in body.items() if name in known})
