"""Takes what a host's own run recorded into the record of the fleet's run, each row once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from vmlab.fleet.host_answers import Layout, RawOfCell, Rows
from vmlab.model.cell_event import CellEnded
from vmlab.model.errors import CommandFailed
from vmlab.model.event import (
    CellsReplanned,
    CommandReceived,
    Event,
    HostProbed,
    Notice,
    RepeatsEnded,
    RunEnded,
    RunnerFinished,
    RunStarted,
)
from vmlab.model.run import Outcome
from vmlab.store.writer import FleetWriter, Source, TakenEvent

_OF_ITS_RUN = (RunStarted, HostProbed, CommandReceived, CellsReplanned, RepeatsEnded, RunnerFinished, RunEnded)
"""Events of a host's own run that are none of the fleet's."""
_VALUE_BYTES = 4


@dataclass(eq=False)
class Taking:
    """What is taken of one source. `seen` and `sample` are the last rows so far."""

    _writer: FleetWriter
    _source: Source
    _is_placed: Callable[[int], bool]
    """Whether a cell was given to this host."""
    _raw: Callable[[int], Awaitable[RawOfCell]]
    """Asks for what tools printed in a cell."""
    probed: HostProbed | None = field(default=None, init=False)
    ended: RunEnded | None = field(default=None, init=False)
    layouts: dict[int, tuple[int, int]] = field(default_factory=dict, init=False)
    """The layouts of samples that are known, by their numbers there: each with its number here, and its bytes."""

    def __post_init__(self) -> None:
        self.seen, self.sample = self._source.seen, self._source.sample

    async def take(self, rows: Rows) -> list[Event]:
        """Keep new rows; the events among them that are new. Raises StoreError, and CommandFailed for nonsense."""
        taken: list[TakenEvent] = []
        for row in rows.events:
            if row.row <= self.seen:
                continue
            event = row.event()
            if isinstance(event, HostProbed):
                self.probed = event
            elif isinstance(event, RunEnded):
                self.ended = event
            if event is not None and (kept := self._of_fleet(event)) is not None:
                raw: Sequence[object] = ()
                if isinstance(kept, CellEnded):
                    raw = [one.output() for one in (await self._raw(kept.cell)).raw]
                taken.append(TakenEvent(row.row, kept, raw))  # type: ignore[arg-type]
        # Samples first: a cell that has ended then has all of its own.
        self._take_samples(rows)
        new = self._writer.take_events(self._source, taken, rows.seen)
        self.seen = max(self.seen, rows.seen)
        return new

    def _of_fleet(self, event: Event) -> Event | None:
        """The event as the fleet keeps it; None for one that it does not."""
        if isinstance(event, _OF_ITS_RUN):
            return None
        if (cell := getattr(event, "cell", None)) is not None and not self._is_placed(cell):
            return None
        match event:
            case CellEnded(outcome=Outcome.ABORTED):
                # Its run breaks off too: the cell is withdrawn then.
                return None
            case Notice():
                return replace(event, text=f"{self._source.host}: {event.text}")
            case _:
                return event

    def _take_samples(self, rows: Rows) -> None:
        for layout in rows.layouts:
            self.layouts[layout.id] = self._known(layout), _VALUE_BYTES * len(layout.names)
        new = [one.packed() for one in rows.samples if one.row > self.sample]
        for one in new:
            if one.layout not in self.layouts or len(one.body) != self.layouts[one.layout][1]:
                raise CommandFailed(f"host {self._source.host} sent a sample that has no known layout")
        if new:
            self._writer.take_samples(self._source, new, {there: here for there, (here, _) in self.layouts.items()})
            self.sample = new[-1].id

    def _known(self, layout: Layout) -> int:
        if len(layout.names) != len(layout.units):
            raise CommandFailed(f"host {self._source.host} sent a layout of samples that is none")
        return self._writer.sample_layout(layout.names, layout.units)
