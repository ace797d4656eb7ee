"""Where the time of a run went: each second of a cell is in one part, and parts have steps, which may overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.timeline import RunTimeline, demand_cell
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


def run_time(reader: RunReader, cell: int | None = None) -> RunTime:
    """Where the time of a run went, as far as it came, or that of one `cell` alone.

    Raises UsageError where there is no cell of that number, StoreError for a damaged store.
    """
    time = time_of(event for _, event in reader.events(kinds=_KINDS))
    return time if cell is None else of_cell(time, cell)


def time_of(events: Iterable[Event]) -> RunTime:
    """Where the time of a run went, from its events in order."""
    run, began = RunTimeline(), None
    steps: dict[int, _Steps] = {}
    for event in events:
        run.apply(event)
        began = event.mono if began is None else began
        if isinstance(event, CellStarted):
            steps[event.cell] = _Steps(event.mono)
        elif isinstance(event, StepEnded | SnapshotMade | GuestStateChanged) and event.cell in run.cells:
            steps[event.cell].take(event, run.cells[event.cell].phase)
    told = [_cell_time(cell, steps[number].found, run.last_mono) for number, cell in run.cells.items()]
    seconds = 0.0 if began is None else run.last_mono - began
    probed = run.probed
    return RunTime(
        schema=SCHEMA,
        run=run.started.run if run.started else "",
        accelerator=_accelerator(probed.accelerator if probed else None, told),
        ordered=list(ordered_words(probed.host)) if probed else [],
        seconds=seconds,
        outside_seconds=max(0.0, seconds - sum(one.seconds for one in told)),
        parts=summed(told),
        cells=told,
    )


class _Steps:
    """The steps of a cell that began at `began`."""

    def __init__(self, began: float) -> None:
        self.found: list[StepTime] = []
        self._began = began
        self._states: dict[tuple[str, int, str], float] = {}

    def take(self, event: StepEnded | SnapshotMade | GuestStateChanged, phase: PhaseStarted | None) -> None:
        """Note a step; a state of a guest is one, of the `phase` that goes on, from its state before."""
        match event:
            case StepEnded():
                self._step(event.part, event.step, event.tile, event.place, event.mono, event.seconds)
            case SnapshotMade():
                self._step(Part.BEFORE, "freeze", 0, event.guest, event.mono, event.seconds)
            case GuestStateChanged() if event.state != _GONE and phase is not None:
                key = phase.phase, event.tile, event.guest
                seconds = event.mono - self._states.get(key, phase.mono)
                self._states[key] = event.mono
                self._step(phase.phase, f"until {event.state}", event.tile, event.guest, event.mono, seconds)

    def _step(self, part: str, step: str, tile: int, place: str, mono: float, seconds: float) -> None:
        began = finite(max(0.0, mono - seconds - self._began))
        self.found.append(StepTime(part, step, tile, place, began, finite(seconds)))


def _cell_time(cell: CellTimeline, steps: Iterable[StepTime], last: float) -> CellTime:
    """Where the time of a cell went; one without an end ends at `last`."""
    found: dict[str, float] = {}
    phase, since = None, cell.started
    spans = cell.spans_until(last)

    def close(part: str, until: float) -> None:
        nonlocal since
        found[part] = found.get(part, 0.0) + max(0.0, until - since)
        since = until

    for span in spans:
        close(_BETWEEN.get((phase, _phase(span.phase)), Part.OTHER), span.since)
        close(span.phase, span.until)
        phase = _phase(span.phase)
    if not spans or spans[-1].phase in cell.told.phases:
        close(_BETWEEN.get((phase, None), Part.OTHER), last if cell.ended is None else cell.ended)
    parts = _in_order(found)
    told = cell.told
    return CellTime(
        cell=told.cell,
        axes=told.axes,
        repeat=told.repeat,
        guests=told.provision.guests or 0,
        outcome=None if cell.ended is None else told.outcome,
        seconds=sum(parts.values()),
        parts=parts,
        steps=sorted(steps, key=lambda step: step.began or 0.0),
    )


def of_cell(time: RunTime, cell: int) -> RunTime:
    """The same with one cell alone; what lies outside of cells is still the run's. Raises UsageError without it."""
    demand_cell(time.run, [one.cell for one in time.cells], cell)
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
    return _in_order(total)


def _in_order(parts: Mapping[str, float]) -> dict[str, float]:
    """Parts in the order of a cell; one that a newer version named comes last."""
    known = list(map(str, Part))
    order = sorted(parts, key=lambda name: known.index(name) if name in known else len(known))
    return {name: parts[name] for name in order}


def _phase(name: str | None) -> Phase | None:
    return Phase(name) if name in set(Phase) else None
