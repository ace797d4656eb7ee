"""Where the time of a run went: each second of a cell is in one part, and parts have steps, which may overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from vmlab.analysis.statistics.descriptive import finite
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    GuestStateChanged,
    PhaseEnded,
    PhaseStarted,
    SnapshotMade,
    StepEnded,
)
from vmlab.model.event import (
    CellWithdrawn,
    Event,
    HostProbed,
    RunEnded,
    RunnerFinished,
    RunStarted,
)
from vmlab.model.ordered import ordered_words
from vmlab.model.run import AxisValue, Part, Phase
from vmlab.store.reader import RunReader

SCHEMA = "vmlab.phases/1"

_KINDS = (
    RunStarted,
    HostProbed,
    CellStarted,
    SnapshotMade,
    PhaseStarted,
    PhaseEnded,
    GuestStateChanged,
    StepEnded,
    CellWithdrawn,
    CellEnded,
    RunnerFinished,
    RunEnded,
)
_GONE = "gone"
_BETWEEN = {
    (None, Phase.PROVISION): Part.BEFORE,
    (Phase.PREPARE, Phase.EXECUTE): Part.START,
    (Phase.EXECUTE, Phase.COLLECT): Part.CLOCKS,
    (Phase.CLEAN_UP, None): Part.AFTER,
}
"""What lies between two phases; None stands for the cell's beginning and end."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step of a cell. `began` is in seconds after the cell's beginning, `tile` 0 for a step of the whole cell."""

    part: str
    step: str
    tile: int
    place: str
    began: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class CellTime:
    """One cell: its `seconds` are the sum of its `parts`. Those of one that has no end count to its last event."""

    cell: int
    axes: dict[str, AxisValue]
    repeat: int
    guests: int
    outcome: str | None
    seconds: float
    parts: dict[str, float]
    steps: list[StepTime]


@dataclass(frozen=True, slots=True)
class RunTime:
    """A run: `seconds` from its first event to its last, `outside_seconds` of them in no cell, `parts` of all cells.

    `accelerator` is that of its guests, None where no cell has had one, and `ordered` has the words for parts of the
    host that were not its own.
    """

    schema: str
    run: str
    accelerator: str | None
    ordered: list[str]
    seconds: float
    outside_seconds: float
    parts: dict[str, float]
    cells: list[CellTime]


@dataclass(slots=True)
class _Cell:
    """A cell whose events are being read; `since` is when its present part began, `phase` the last that began."""

    start: CellStarted
    since: float
    phase: str | None = None
    inside: bool = False
    ended: bool = False
    outcome: str | None = None
    parts: dict[str, float] = field(default_factory=dict)
    steps: list[StepTime] = field(default_factory=list)
    states: dict[tuple[int, str], float] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        match event:
            case PhaseStarted():
                self._close(_BETWEEN.get((_phase(self.phase), _phase(event.phase)), Part.OTHER), event.mono)
                self.phase, self.inside = event.phase, True
                self.states.clear()
            case PhaseEnded():
                self._close(event.phase, event.mono)
                self.inside = False
            case CellEnded():
                self._last(event.mono)
                self.ended, self.outcome = True, event.outcome
            case StepEnded():
                self._step(event.part, event.step, event.tile, event.place, event.mono, event.seconds)
            case SnapshotMade():
                self._step(Part.BEFORE, "freeze", 0, event.guest, event.mono, event.seconds)
            case GuestStateChanged() if event.state != _GONE and self.inside:
                key = event.tile, event.guest
                seconds = event.mono - self.states.get(key, self.since)
                self.states[key] = event.mono
                self._step(str(self.phase), f"until {event.state}", event.tile, event.guest, event.mono, seconds)

    def broken_off(self, mono: float) -> None:
        """The last event of a run in which this cell has no end."""
        if not self.ended:
            self._last(mono)

    def _last(self, mono: float) -> None:
        part = self.phase if self.inside else _BETWEEN.get((_phase(self.phase), None), Part.OTHER)
        self._close(str(part), mono)

    def _close(self, part: str, mono: float) -> None:
        self.parts[part] = self.parts.get(part, 0.0) + max(0.0, mono - self.since)
        self.since = mono

    def _step(self, part: str, step: str, tile: int, place: str, mono: float, seconds: float) -> None:
        began = max(0.0, mono - seconds - self.start.mono)
        self.steps.append(
            StepTime(
                part=part,
                step=step,
                tile=tile,
                place=place,
                began=finite(began),
                seconds=finite(seconds),
            )
        )

    def told(self) -> CellTime:
        """What is known of the cell."""
        parts = {name: self.parts[name] for name in _in_order(self.parts)}
        return CellTime(
            cell=self.start.cell,
            axes=dict(self.start.axes),
            repeat=self.start.repeat,
            guests=self.start.guests,
            outcome=self.outcome,
            seconds=sum(parts.values()),
            parts=parts,
            steps=sorted(self.steps, key=lambda step: step.began or 0.0),
        )


def run_time(reader: RunReader) -> RunTime:
    """Where the time of a run went, as far as it came. Raises StoreError for a damaged store."""
    return time_of(event for _, event in reader.events(kinds=_KINDS))


def time_of(events: Iterable[Event]) -> RunTime:
    """Where the time of a run went, from its events in order."""
    cells: dict[int, _Cell] = {}
    run, began, last = "", None, 0.0
    probed: HostProbed | None = None
    for event in events:
        began = event.mono if began is None else began
        last = event.mono
        if isinstance(event, RunStarted):
            run = event.run
        elif isinstance(event, HostProbed):
            probed = event
        elif isinstance(event, CellStarted):
            cells[event.cell] = _Cell(event, event.mono)
        elif isinstance(event, CellWithdrawn):
            cells.pop(event.cell, None)
        elif (cell := cells.get(getattr(event, "cell", 0))) is not None:
            cell.apply(event)
    for cell in cells.values():
        cell.broken_off(last)
    told = [cell.told() for cell in cells.values()]
    seconds = 0.0 if began is None else last - began
    return RunTime(
        schema=SCHEMA,
        run=run,
        accelerator=_accelerator(probed.accelerator if probed else None, told),
        ordered=list(ordered_words(probed.host)) if probed else [],
        seconds=seconds,
        outside_seconds=max(0.0, seconds - sum(one.seconds for one in told)),
        parts=summed(told),
        cells=told,
    )


def of_cell(time: RunTime, cell: int) -> RunTime:
    """The same with one cell alone; what lies outside of cells is still the run's."""
    cells = [one for one in time.cells if one.cell == cell]
    return replace(time, accelerator=_accelerator(time.accelerator, cells), cells=cells, parts=summed(cells))


def _accelerator(probed: str | None, cells: Iterable[CellTime]) -> str | None:
    return probed if any(cell.guests for cell in cells) else None


def summed(cells: Iterable[CellTime]) -> dict[str, float]:
    """The parts of several cells together."""
    total: dict[str, float] = {}
    for cell in cells:
        for name, seconds in cell.parts.items():
            total[name] = total.get(name, 0.0) + seconds
    return {name: total[name] for name in _in_order(total)}


def _in_order(parts: Iterable[str]) -> Iterator[str]:
    """Names of parts in the order of a cell; one that a newer version named comes last."""
    known = list(map(str, Part))
    return iter(sorted(parts, key=lambda name: known.index(name) if name in known else len(known)))


def _phase(name: str | None) -> Phase | None:
    return Phase(name) if name in set(Phase) else None
