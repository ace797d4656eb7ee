"""A run for programs while it goes on: its events as they come, and how far it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.api.opened_run import Run, named
from vmlab.lab.commands.stopping import STOP_SECONDS, is_over, run_meant
from vmlab.lab.process.event_feed import watch
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.event import Event
from vmlab.model.run import RUNNING, Outcome
from vmlab.report.event_words import event_sentence


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened in a run, such as the ``CellEnded`` of cell `cell`, which is None for the whole run's.

    `at` is in UTC, `mono` in seconds of the host's monotonic clock, for durations. `fields` are those that this `kind`
    has in the store. `sentence` is what the command line says of it, empty for kinds of which it says nothing.
    """

    kind: str
    at: datetime
    mono: float
    cell: int | None
    fields: Mapping[str, Any]
    sentence: str


class AttachedRun(Iterator[RunEvent]):
    """The events of a run, from its first one on, and its state as far as they were taken.

    Taking the next one waits for it. There is none after the last one of a run that is over, when no process of it is
    left; a run that was killed has no ``RunEnded``. Events of progress are only those from now on.
    Raises VmlabError, with one line, for a damaged store.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._events = watch(folder)
        self._timeline = RunTimeline()
        self._over = False

    def __next__(self) -> RunEvent:
        for event in self._events:
            if event is not None:
                self._timeline.apply(event)
                return _of(event, self._timeline.cells_planned)
        self._over = self._over or is_over(self._folder, STOP_SECONDS)
        raise StopIteration

    @property
    def id(self) -> str:
        """The run's id."""
        return self._folder.id

    @property
    def outcome(self) -> str:
        """``running``, and after the last event ``passed``, ``failed``, ``invalid`` or ``aborted``."""
        if self._timeline.ended is not None:
            return str(self._timeline.ended.outcome)
        return str(Outcome.ABORTED) if self._over else RUNNING

    @property
    def exit_code(self) -> int | None:
        """That of ``vmlab run``; None until it has ended, and for a run that was killed."""
        return None if self._timeline.ended is None else self._timeline.ended.exit_code

    @property
    def cell(self) -> int | None:
        """The number of the cell that runs; None between cells. Of a fleet's it is the newest."""
        cell = self._timeline.cell
        return None if cell is None or cell.ended is not None else cell.told.cell

    @property
    def phase(self) -> str | None:
        """The phase of that cell: ``provision``, ``prepare``, ``execute``, ``collect`` or ``clean up``."""
        cell = self._timeline.cell
        return None if cell is None or cell.phase is None else str(cell.phase.phase)

    @property
    def cells_ended(self) -> int:
        """How many cells have ended."""
        return sum(cell.ended is not None for cell in self._timeline.cells.values())

    @property
    def cells_planned(self) -> int:
        """How many cells it is to have, as it was planned last; 0 before it has begun."""
        return self._timeline.cells_planned


def attach_run(run: str | Run | None = None) -> AttachedRun:
    """Follow a run as ``vmlab attach`` does; None is the one under way, or where there is none the newest.

    It changes nothing, and the run goes on when nobody takes events any more. Raises VmlabError, with one line, for
    what names no run, and for None where several are under way.
    """
    return AttachedRun(run_meant(None if run is None else named(run), or_newest=True))


def _of(event: Event, cells: int) -> RunEvent:
    fields = asdict(event)
    said = event_sentence(event, cells)
    return RunEvent(
        kind=type(event).__name__,
        at=datetime.fromtimestamp(fields.pop("wall"), UTC),
        mono=fields.pop("mono"),
        cell=fields.pop("cell", None),
        fields=fields,
        sentence="" if said is None else said.text,
    )
