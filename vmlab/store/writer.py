"""The one writer of a run's store. Every call is a transaction: after it returned, kill -9 loses nothing of it.

Into the store of a run of a fleet the controller takes what hosts recorded, each row once, by its own clocks.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from vmlab.model.errors import StoreError, in_one_line
from vmlab.model.event import (
    CellWithdrawn,
    Event,
    RunEnded,
    RunnerFinished,
)
from vmlab.model.event_json import from_json, to_json
from vmlab.model.results import MOST_PRINTED, RawOutput, stored
from vmlab.store.reader import SampleRow
from vmlab.store.sql_schema import APPLICATION_ID, FLEET_TABLES, TABLES, VERSION
from vmlab.system.held_folder import demand, forget, is_held, need, opened, suspect
from vmlab.system.removal import named

FOLD_SECONDS = 10.0
"""How long the end of a run waits for viewers that are in the middle of a read."""
_BUSY_SECONDS = 10.0
_TRUNCATE_SECONDS = 1.0
_FOR_EVER = -1.0
# A checkpoint calls fsync, which may stall for seconds on the disk that a workload loads. So it happens when the caller
# asks for it, between cells, or when the log has grown so far.
_CHECKPOINT_BYTES = 64 * 2**20
_PAGE_BYTES = 8192
"""A sample is one row, and what is left of a page has no room for another: less of larger pages is left."""
INSERT_EVENT = "INSERT INTO events (wall, mono, kind, cell, body) VALUES (?, ?, ?, ?, ?)"
INSERT_RAW = "INSERT INTO raw_outputs (cell, workload, tile, guest, name, body) VALUES (?, ?, ?, ?, ?, ?)"


class UnreadableEventError(StoreError):
    """An event that no reader would take, such as one with a number beyond all bounds. It is not written, as no other
    event could be read any more then.
    """


def event_row(event: Event) -> tuple[float, float, str, int | None, str]:
    """What `INSERT_EVENT` takes of an event. Raises UnreadableEventError."""
    body = to_json(event)
    try:
        from_json(body)
    except ValueError as error:
        raise UnreadableEventError(f"an event cannot be recorded: {error}") from error
    return event.wall, event.mono, type(event).__name__, getattr(event, "cell", None), body


def raw_row(cell: int | None, output: RawOutput) -> tuple[int | None, str, int, str, str, bytes]:
    """What `INSERT_RAW` takes of an output; more than a reader would take of it is cut off."""
    body = zlib.compress(stored(output.text)[:MOST_PRINTED])
    return cell, output.workload, output.tile, output.guest, output.name, body


def _moved(ahead: float, body: str) -> str:
    """The JSON of an event of any version, `ahead` seconds later on the monotonic clock."""
    event = json.loads(body)
    event |= {name: event[name] + ahead for name in ("mono", "since") if name in event}
    return json.dumps(event, separators=(",", ":"))


class RunWriter:
    """Opens or makes the store at `path` and appends to it; any thread may call, one after another. `connect` is
    SQLite's own, unless a test replaces it.

    SQLite opens files by their paths alone: in a folder that this process holds (`held_folder`) the store is made by
    the folder's descriptor, and opened only while the path leads there; else this raises FolderLostError. Later
    nothing is opened any more, and SQLite removes no log whose store is not at its path.

    Every method raises StoreError, with one line that names the file, when the disk is full or fails. What was
    written before stays readable then.
    """

    def __init__(self, path: Path, connect: Callable[..., sqlite3.Connection] = sqlite3.connect) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None
        with self._store_errors():
            held = is_held(path.parent)
            place = _uri_of_held(path) if held else path
            self._open = connect(place, uri=held, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._set_up(self._open)
            if held:
                for file in _beside(path):
                    need(file)

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")  # A store that is there keeps the size that it has.
        connection.execute("PRAGMA journal_mode = WAL")
        # In WAL mode NORMAL is safe against the death of any process; only a power cut may lose the last commits.
        connection.execute("PRAGMA synchronous = NORMAL")
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_BYTES // page}")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.executescript(
                f"BEGIN IMMEDIATE; {TABLES}"
                f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
            )
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        elif version != VERSION:
            raise StoreError(f"{self.path}: has schema {version}, this vmlab writes schema {VERSION}")

    @property
    def _connection(self) -> sqlite3.Connection:
        """Raises StoreError once it is closed."""
        if self._open is None:
            raise StoreError(f"cannot write {self.path}: it is closed")
        return self._open

    @contextmanager
    def _store_errors(self, deadline: float = _FOR_EVER) -> Iterator[None]:
        if not self._lock.acquire(timeout=deadline):
            raise StoreError(f"cannot write {self.path}: an attempt still hangs")
        try:
            yield
        except sqlite3.Error as error:
            raise self._failed(error) from error
        finally:
            self._lock.release()

    def _insert(self, statement: str, values: tuple[Any, ...]) -> int:
        # What `_store_errors` does, without a generator: this is called at every tick.
        with self._lock:
            connection = self._connection
            try:
                return connection.execute(statement, values).lastrowid or 0
            except sqlite3.Error as error:
                raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> StoreError:
        suspect(self.path)
        return StoreError(f"cannot write {self.path}: {error}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._store_errors():
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def append(self, event: Event) -> int:
        """Keep one event; its row id, which counts up from 1."""
        return self._insert(INSERT_EVENT, event_row(event))

    def withdraw(self, event: CellWithdrawn) -> None:
        """Record that a cell broke off, and drop what tools printed in it: it will be printed anew."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM raw_outputs WHERE cell = ?", (event.cell,))
            connection.execute(INSERT_EVENT, event_row(event))

    def reopen(self, ahead: float) -> None:
        """Take back that the run has ended, and add `ahead` seconds to what its record has of the monotonic clock.

        That clock begins anew when the host boots, and nothing is recorded while nothing runs: with what was recorded
        moved up to now, there is no gap before what follows. The wall clock keeps the times as they were.
        """
        ends = (RunnerFinished.__name__, RunEnded.__name__)
        with self._transaction() as connection:
            connection.execute("DELETE FROM events WHERE kind IN (?, ?)", ends)
            connection.create_function("moved", 1, partial(_moved, ahead))
            connection.execute("UPDATE events SET mono = mono + ?, body = moved(body)", (ahead,))
            connection.execute("UPDATE samples SET mono = mono + ?", (ahead,))

    def raw(self, cell: int, output: RawOutput) -> None:
        """Keep what a tool printed, beside the figures that were parsed from it."""
        self._insert(INSERT_RAW, raw_row(cell, output))

    def sample_layout(self, names: Sequence[str], units: Sequence[str]) -> int:
        """The id of the layout that names a sample's values in order, with their units; made when it is new."""
        if len(names) != len(units):
            raise ValueError(f"{len(names)} names with {len(units)} units")
        row = (json.dumps(list(names)), json.dumps(list(units)))
        with self._store_errors():
            found = self._connection.execute("SELECT id FROM layouts WHERE names = ? AND units = ?", row).fetchone()
        return int(found[0]) if found else self._insert("INSERT INTO layouts (names, units) VALUES (?, ?)", row)

    def sample(self, layout: int, wall: float, mono: float, blob: bytes) -> None:
        """Keep one packed sample; `wall` in seconds since the epoch, `mono` in seconds of the monotonic clock."""
        self._insert("INSERT INTO samples (layout, wall, mono, body) VALUES (?, ?, ?, ?)", (layout, wall, mono, blob))

    def drop_samples(self, until_mono: float) -> int:
        """Remove the samples up to a moment; how many. Their room in the file is used for those to come."""
        with self._store_errors():
            return self._connection.execute("DELETE FROM samples WHERE mono <= ?", (until_mono,)).rowcount

    def used_bytes(self) -> int:
        """What the store's pages hold, in bytes; what was removed from it does not count."""
        with self._store_errors():
            size, pages, free = (
                int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("page_size", "page_count", "freelist_count")
            )
        return size * (pages - free)

    def document(self, name: str, text: str) -> None:
        """Keep a text by its name, such as ``scenario``; a later text of the same name replaces it."""
        self._insert("INSERT OR REPLACE INTO documents (name, body) VALUES (?, ?)", (name, text))

    def checkpoint(self) -> None:
        """Fold the log into the file, with fsync: call it only while nothing is measured, such as between cells."""
        with self._store_errors():
            if self._open is not None:
                self._open.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def fold_in(self, deadline: float = FOLD_SECONDS) -> bool:
        """Fold the whole log into the file, which is then complete without the log; returns whether that was possible.

        This waits for viewers that are in the middle of a read, `deadline` seconds in all. A viewer that holds its read
        open for longer prevents it; then file and log together have everything.
        """
        with self._store_errors():
            ask = self._connection.execute
            ask(f"PRAGMA busy_timeout = {round(1000 * deadline)}")
            # Truncating the log must wait for readers; copying it into the file need not.
            _, logged, folded = ask("PRAGMA wal_checkpoint(FULL)").fetchone()
            ask(f"PRAGMA busy_timeout = {round(1000 * min(deadline, _TRUNCATE_SECONDS))}")
            truncated = ask("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
            ask(f"PRAGMA busy_timeout = {round(1000 * _BUSY_SECONDS)}")
        return truncated or bool(logged == folded)

    def close(self, deadline: float = _BUSY_SECONDS) -> None:
        """Close; fold the log in where no viewer has the store open. A second call does nothing.

        Waits `deadline` seconds for a call that hangs in another thread; then raises StoreError.
        """
        with self._store_errors(deadline):
            connection, self._open = self._open, None
            if connection is not None:
                for file in _beside(self.path):
                    forget(file)
                connection.close()


def _beside(store: Path) -> tuple[Path, ...]:
    """The log and its index, which are there for as long as a writer has the store open."""
    return store.with_name(f"{store.name}-wal"), store.with_name(f"{store.name}-shm")


def _uri_of_held(path: Path) -> str:
    """A URI by which SQLite makes no file: it is made here, in the folder that is held. Raises FolderLostError."""
    demand()
    try:
        with named(path), opened(path.parent) as folder:
            # To close one that is there would give up the locks of this process's other connections to it.
            with suppress(FileExistsError):
                os.close(os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder))
            need(path)
    except OSError as error:
        raise StoreError(f"cannot write {in_one_line(error)}") from error
    return f"{path.as_uri()}?mode=rw"


def fold_in_dead(store: Path) -> bool:
    """Fold the log of a run that was killed into its `store`; False where it has none. Raises StoreError.

    Only for a run whose lock no process holds, before this call and during it.
    """
    log = store.with_name(f"{store.name}-wal")
    try:
        if log.stat().st_size == 0 or not store.is_file():
            return False
    except FileNotFoundError:
        return False
    with closing(RunWriter(store)) as writer:
        return writer.fold_in()


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
