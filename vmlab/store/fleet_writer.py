"""The writer of the store of a run of a fleet: what hosts recorded, each row once, by the controller's clocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.event import Event
from vmlab.model.results import RawOutput
from vmlab.store.reader import SampleRow
from vmlab.store.sql_schema import FLEET_TABLES
from vmlab.store.writer import INSERT_EVENT, INSERT_RAW, RunWriter, event_row, raw_row


@dataclass(frozen=True, slots=True)
class Source:
    """The run `run` of `host`, as far as it was taken: its last event `seen` and its last `sample`, by row.

    `wall` and `mono` are added to its clocks.
    """

    id: int
    host: str
    run: str
    wall: float
    mono: float
    seen: int
    sample: int


@dataclass(frozen=True, slots=True)
class TakenEvent:
    """An event of a host, the row that it has there, and what tools printed in the cell that it ends."""

    row: int
    event: Event
    raw: Sequence[RawOutput] = ()


class FleetWriter(RunWriter):
    """As `RunWriter`, with the tables of a fleet. Every call is one transaction."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with self._transaction() as connection:
            if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'fleet_sources'").fetchone():
                for statement in filter(str.strip, FLEET_TABLES.split(";")):
                    connection.execute(statement)

    def add_source(self, host: str, run: str, wall: float, mono: float) -> Source:
        """Make a source known; one that is known keeps the clocks that it has."""
        with self._transaction() as connection:
            row = (host, run, wall, mono)
            connection.execute(
                "INSERT OR IGNORE INTO fleet_sources (host, run, wall, mono, seen) VALUES (?, ?, ?, ?, 0)", row
            )
        return next(source for source in self.sources() if (source.host, source.run) == (host, run))

    def sources(self) -> list[Source]:
        """All sources, in the order in which they were made known."""
        with self._transaction() as connection:
            return [
                Source(*row)
                for row in connection.execute(
                    "SELECT id, host, run, wall, mono, seen, "
                    "(SELECT coalesce(max(row), 0) FROM fleet_samples WHERE source = fleet_sources.id) "
                    "FROM fleet_sources ORDER BY id"
                )
            ]

    def take_events(self, source: Source, events: Sequence[TakenEvent], seen: int) -> list[Event]:
        """Keep what came of a source up to its row `seen`; the events that are new, with the controller's times."""
        new: list[Event] = []
        with self._transaction() as connection:
            (known,) = connection.execute("SELECT seen FROM fleet_sources WHERE id = ?", (source.id,)).fetchone()
            for taken in events:
                if taken.row <= known:
                    continue
                event = dataclasses.replace(
                    taken.event, wall=taken.event.wall + source.wall, mono=taken.event.mono + source.mono
                )
                made = connection.execute(INSERT_EVENT, event_row(event)).lastrowid
                connection.execute("INSERT INTO fleet_events VALUES (?, ?, ?)", (made, source.id, taken.row))
                cell = getattr(event, "cell", None)
                connection.executemany(INSERT_RAW, (raw_row(cell, one) for one in taken.raw))
                new.append(event)
            connection.execute("UPDATE fleet_sources SET seen = max(seen, ?) WHERE id = ?", (seen, source.id))
        return new

    def take_samples(self, source: Source, rows: Sequence[SampleRow], layouts: dict[int, int]) -> None:
        """Keep samples of a source, each once; `layouts` has the id here of each layout there."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO fleet_samples (source, row, layout, wall, mono, body) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (source.id, row.id, layouts[row.layout], row.wall + source.wall, row.mono + source.mono, row.body)
                    for row in rows
                ],
            )
