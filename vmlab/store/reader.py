"""Reading a run's store: of a live run, of one that died, and of a copy on another machine."""

from __future__ import annotations

import heapq
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

from vmlab.integrity.long_work import beside, current
from vmlab.model.cell_event import WorkloadProgressed
from vmlab.model.errors import StoreError, UsageError
from vmlab.model.event import Event
from vmlab.model.event_json import from_json
from vmlab.model.names import MOST_HOSTS, is_host_name
from vmlab.model.quantities import format_bytes
from vmlab.model.results import RawOutput
from vmlab.model.sample import SampleNames
from vmlab.store.life import is_alive
from vmlab.store.sql_schema import (
    APPLICATION_ID,
    VERSION,
    moment,
    number,
    packed,
    raw_output,
    sample_names,
    text,
    whole,
)
from vmlab.system.file_system import has_record_locks
from vmlab.system.given_file import demand_given

_PAGE = 1000
_FIRST_PAGE = 64
_PAGES_AT_ONCE = 256
"""Of SQLite's pages, when all of a store is copied."""
_PAGE_BYTES = 16 * 2**20
"""A page of events or samples ends with the row that exceeds this."""
_MOST_VALUE = 64 * 2**20
"""Bytes of the largest text or blob that is read; what a run writes is far smaller."""
MOST_AT_ONCE = 256 * 2**20
"""Bytes of one table's texts that are read: of all events, of all that tools printed, of all documents."""
_ROW_BYTES = 100
"""What a row takes in memory beside its texts."""
_MOST_NAMES = 2**20
"""Of all layouts of samples. Each change of a run's guests makes a layout, of some hundred or thousand names."""
_OF_ANY_KIND = f"SELECT id, body FROM events WHERE id > ? ORDER BY id LIMIT {_PAGE}"
_OF_KIND = f"SELECT id, body FROM events WHERE id > ? AND kind = ? AND id <= ? ORDER BY id LIMIT {_PAGE}"
# The plus keeps SQLite from collecting rows by the index on time of older stores, and sorting them, bodies and all.
_SPAN = "id > ? AND +mono <= ?"
_LOG_BEGINS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
"""The last bit says in which order of bytes checksums were made: https://www.sqlite.org/fileformat2.html#walformat"""
_LOCKLESS = "&vfs=unix-none"
_COMPLETE = "&immutable=1"


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One stored sample, still packed; `body` is read with `store.samples`."""

    id: int
    layout: int
    wall: float
    mono: float
    body: bytes


class NotBegunError(UsageError):
    """The store has nothing in it yet: the run that writes it has just begun, or it is no store at all."""


class RunReader:
    """Reads the store at `path` without changing it. For one thread at a time; close it, or use ``with``.

    With `host`, of a run of a fleet: what came of that host, and what is of the whole run. Raises UsageError for a file
    that is no store or that a newer vmlab wrote, StoreError for a damaged one; each is one line with the file's name.
    """

    def __init__(self, path: Path, host: str | None = None) -> None:
        self.path = path
        self.host = host
        """The one of a fleet whose view this is; None where it is that of the whole run."""
        self._layouts = dict[int, SampleNames]()
        """Each is read once: every cell asks for all, and a run may have hundreds."""
        self._names_left = _MOST_NAMES
        try:
            there = path.is_file()
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from error
        if not there:
            if path.exists():
                demand_given(path)
            raise NotBegunError(f"{path}: no such store")
        with self._store_errors():
            uri = _uri(path)
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
            if uri.endswith(_LOCKLESS):
                # The index of the log is in this process's own memory then, and not in a file that is locked.
                self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            try:
                self._check()
            except BaseException:
                self._connection.close()
                raise

    def _check(self) -> None:
        # The writer makes the file first, and all that is in it in one transaction, which may come between two of these
        # questions: where the first finds something, the others do.
        (begun,) = self._connection.execute("PRAGMA schema_version").fetchone()
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if not begun or application != APPLICATION_ID:
            error = UsageError if begun else NotBegunError
            raise error(f"{self.path}: is not the store of a run")
        if version > VERSION:
            raise UsageError(f"{self.path}: was written by a newer vmlab (schema {version}, known: {VERSION})")
        if self.host is not None:
            # Views of this connection alone, which stand in the place of the tables of the same name.
            sources = "SELECT id FROM fleet_sources WHERE host = " + _quoted(self.host)
            self._connection.execute(
                "CREATE TEMP VIEW samples AS SELECT id, layout, wall, mono, body FROM main.fleet_samples "
                f"WHERE source IN ({sources})"
            )
            self._connection.execute(
                "CREATE TEMP VIEW events AS SELECT id, wall, mono, kind, cell, body FROM main.events AS taken "
                "LEFT JOIN main.fleet_events AS came ON came.event = taken.id "
                f"WHERE came.source IS NULL OR came.source IN ({sources})"
            )

    def hosts(self) -> tuple[str, ...]:
        """The hosts of a run of a fleet, in the order in which they joined; none of any other run."""
        if not self._rows("SELECT name FROM sqlite_schema WHERE name = 'fleet_sources'"):
            return ()
        rows = self._held_rows(f"SELECT host FROM fleet_sources GROUP BY host ORDER BY min(id) LIMIT {MOST_HOSTS + 1}")
        with self._store_errors():
            if len(rows) > MOST_HOSTS or not all(is_host_name(host) for (host,) in rows):
                raise ValueError(f"its hosts are more than {MOST_HOSTS}, or have other names than hosts have")
            return tuple(text(host) for (host,) in rows)

    def of_host(self, host: str) -> RunReader:
        """Another reader of this store, for one of its `hosts`; the caller closes it."""
        return RunReader(self.path, host)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, zlib.error) as error:
            # Errors that the sqlite3 module finds itself, such as text that is not UTF-8, have no error code.
            code = getattr(error, "sqlite_errorcode", None)
            if code == sqlite3.SQLITE_NOTADB:
                raise UsageError(f"{self.path}: is not the store of a run") from error
            why = "it holds text that is not UTF-8" if isinstance(error, sqlite3.Error) and code is None else error
            raise StoreError(f"cannot read {self.path}: {why}") from error

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._store_errors():
            return self._connection.execute(statement, values).fetchall()

    def _held_rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """As `_rows`, where texts may be large: StoreError for more than `MOST_AT_ONCE`."""
        with self._store_errors():
            found: list[tuple[Any, ...]] = []
            held = 0
            for row in self._connection.execute(statement, values):
                held = _within(held + _ROW_BYTES + _bytes_of(row))
                found.append(row)
            return found

    def _page(self, statement: str, *values: Any, most: int = _PAGE) -> tuple[list[tuple[Any, ...]], bool]:
        """The rows of a statement that asks for `most`, up to about `_PAGE_BYTES`, and whether there may be more."""
        with self._store_errors(), closing(self._connection.execute(statement, values)) as cursor:
            found: list[tuple[Any, ...]] = []
            held = 0
            for row in cursor:
                found.append(row)
                held += _bytes_of(row)
                if held > _PAGE_BYTES:
                    return found, True
            return found, len(found) == most

    def damage(self) -> str | None:
        """What SQLite's own check of the whole file finds first; None for a sound store."""
        (verdict,) = beside(lambda: self._rows("PRAGMA integrity_check(1)"), self._connection.interrupt)[0]
        return None if verdict == "ok" else str(verdict)

    def events(
        self, after: int = 0, kinds: tuple[type[Event], ...] = (), *, all_kept: bool = False
    ) -> Iterator[tuple[int, Event]]:
        """Row id and event of all that came after row `after`, in order; of some `kinds` only, when given.

        Ends with the last event that is there; ask again with the last row id to follow a live run. Kinds of a newer
        version are skipped. StoreError for more than `MOST_AT_ONCE`, of which a workload's progress is one event in
        each stage, as no fold of events keeps more of it; or where `all_kept` each.
        """
        stages, held = set[object](), 0
        for row, body in self._chosen(after, kinds) if kinds else self._bodies(_OF_ANY_KIND, after):
            event = self._event(row, body)
            if event is not None and kinds and not isinstance(event, kinds):
                raise StoreError(f"cannot read {self.path}: event {row}: is a {type(event).__name__}")
            if event is None:
                continue
            place = None
            if isinstance(event, WorkloadProgressed) and not all_kept:
                place = event.cell, event.workload, event.tile, event.stage
            if place is None or place not in stages:
                stages.add(place)
                with self._store_errors():
                    held = _within(held + len(body))
            yield row, event

    def _chosen(self, after: int, kinds: Sequence[type[Event]]) -> Iterator[tuple[int, str]]:
        """Row ids and texts of some kinds, in order.

        One walk along the index for each: with several kinds in one query, SQLite reads the whole table, or sorts the
        rest for every page. All walks end at the same row, because the writer may add events between them.
        """
        (last,) = self._rows("SELECT max(id) FROM events")[0]
        return heapq.merge(*(self._bodies(_OF_KIND, after, kind.__name__, last or 0) for kind in kinds))

    def _event(self, row: int, body: str) -> Event | None:
        try:
            return from_json(body)
        except (ValueError, TypeError) as error:
            raise StoreError(f"cannot read {self.path}: event {row}: {error}") from error

    def _bodies(self, statement: str, after: int, *values: str | int) -> Iterator[tuple[int, str]]:
        """Row ids and texts, a page at a time: a long read would keep the writer from folding its log in."""
        more = True
        while more:
            rows, more = self._page(statement, after, *values)
            yield from cast(list[tuple[int, str]], rows)
            after = rows[-1][0] if rows else after

    def count(self, kind: type[Event]) -> int:
        """How many events of one kind there are, without reading them."""
        return whole(self._rows("SELECT count(*) FROM events WHERE kind = ?", kind.__name__)[0][0])

    def raw_outputs(self, cell: int | None = None) -> list[tuple[int, RawOutput]]:
        """Cell and text of everything that tools printed, of one cell or of all, in the order of writing."""
        rows = self._held_rows(
            "SELECT cell, workload, tile, guest, name, body FROM raw_outputs WHERE cell = ?1 OR ?1 IS NULL ORDER BY id",
            cell,
        )
        with self._store_errors():
            found: list[tuple[int, RawOutput]] = []
            held = 0
            for kept, *output in rows:
                found.append((whole(kept), raw_output(*output)))
                held = _within(held + len(found[-1][1].text))
            return found

    def documents(self) -> dict[str, str]:
        """All texts that were stored under a name, such as ``scenario``."""
        rows = self._held_rows("SELECT name, body FROM documents ORDER BY name")
        with self._store_errors():
            return {text(name): text(body) for name, body in rows}

    def sample_layouts(self) -> dict[int, SampleNames]:
        """All layouts of samples by their id."""
        with self._store_errors():
            for (row,) in self._connection.execute("SELECT id FROM layouts"):
                if row not in self._layouts:
                    (said,) = self._rows("SELECT names, units FROM layouts WHERE id = ?", row)
                    layout = self._layouts[row] = sample_names(*said)
                    # One without names takes memory, too.
                    self._names_left -= 1 + len(layout.names)
                if self._names_left < 0:
                    raise ValueError(f"its layouts of samples have more than {_MOST_NAMES} names")
            return dict(self._layouts)

    def sample_count(self) -> int:
        """How many samples there are, those without a time among them, which no other method gives."""
        return whole(self._rows("SELECT count(*) FROM samples")[0][0])

    def sample_rows(
        self, since: float = float("-inf"), until: float = float("inf"), after: int = 0
    ) -> Iterator[SampleRow]:
        """Samples taken from `since` to `until` on the monotonic clock, ends included, and after row `after`."""
        statement = f"SELECT id, layout, wall, mono, body FROM samples WHERE {_SPAN} ORDER BY id LIMIT ?"
        after = self._row_before(since, after)
        # Pages grow, as who reads a cell needs few rows behind it, and who reads a run needs all.
        more, most = True, _FIRST_PAGE
        while more:
            rows, more = self._page(statement, after, until, most, most=most)
            most = min(2 * most, _PAGE)
            for row in rows:
                yield self._sample(*row)
            after = rows[-1][0] if rows else after

    def _sample(self, row: int, layout: Any, wall: Any, mono: Any, body: Any) -> SampleRow:
        with self._store_errors():
            return SampleRow(row, whole(layout), moment(wall), number(mono), packed(body))

    def sample_slices(
        self, layout: int, offset: int, size: int, since: float, until: float, after: int = 0
    ) -> Iterator[list[tuple[int, float, bytes]]]:
        """Row id, monotonic time and `size` bytes at `offset` of every sample of one layout, in order, by pages.

        The span is as for `sample_rows`. Reading one series of many ticks takes a millisecond or two.
        """
        statement = f"SELECT id, mono, substr(body, ?, ?) FROM samples WHERE {_SPAN} AND layout = ? ORDER BY id LIMIT ?"
        after, more = self._row_before(since, after), True
        while more:
            rows = self._rows(statement, offset + 1, size, after, until, layout, _PAGE)
            with self._store_errors():
                page = [(row, number(mono), packed(body, size)) for row, mono, body in rows]
            yield page
            after, more = (page[-1][0], len(page) == _PAGE) if page else (after, False)

    def _row_before(self, since: float, after: int) -> int:
        """The row before the first sample from `since` on, but not before `after`.

        It is found by halves: rows are in order of time, and so no index is written at every tick.
        """
        if since == float("-inf"):
            return after
        before, beyond = after, (self._rows("SELECT max(id) FROM samples")[0][0] or 0) + 1
        while beyond - before > 1:
            middle = (before + beyond) // 2
            # Where a row is missing, the next one that is there stands for it.
            found = self._rows("SELECT mono FROM samples WHERE id >= ? ORDER BY id LIMIT 1", middle)
            with self._store_errors():
                early = any(number(mono) < since for (mono,) in found)
            before, beyond = (middle, beyond) if early else (before, middle)
        return before

    def copy(self, target: Path) -> None:
        """Make a store at `target` with all that this one has, its log included. Raises StoreError."""
        work = current()

        def copied(_status: int, left: int, total: int) -> None:
            work.step((total - left) * work.total / max(1, total) - work.done)

        with self._store_errors(), closing(sqlite3.connect(target)) as copy:
            copy.execute("PRAGMA synchronous = OFF")
            work.begin(f"reading {self.path}", self.path.stat().st_size)
            self._connection.backup(copy, pages=_PAGES_AT_ONCE, progress=copied)
            # A single file, which needs no folder that can be written.
            copy.execute("PRAGMA journal_mode = DELETE")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _quoted(word: str) -> str:
    """A text as SQL has it: a view takes no parameters."""
    return "'" + word.replace("'", "''") + "'"


def _within(held: int) -> int:
    if held > MOST_AT_ONCE:
        raise ValueError(f"one of its tables holds more than {format_bytes(MOST_AT_ONCE)}")
    return held


def _bytes_of(row: Sequence[Any]) -> int:
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def _uri(path: Path) -> str:
    """A URI that opens `path` read-only.

    Without a log, and without a process that could write one, the file is complete. Opened as immutable it can be read
    from a read-only folder too, and no ``-shm`` file is made. On a file system without locks no process of this host
    can write, and SQLite would take what it cannot lock for locked, so it reads file and log without. A log that is not
    SQLite's is somebody else's, and so is the file. (The file itself must not be opened beside SQLite: closing it would
    give up this process's locks on it.) The log goes when its writer ends, at any time.
    """
    log, rest = path.with_name(path.name + "-wal"), ""
    try:
        with log.open("rb") as file:
            begins = file.read(len(_LOG_BEGINS[0]))
        if begins not in (b"", *_LOG_BEGINS):
            rest = _COMPLETE
        elif not has_record_locks(log):
            rest = _LOCKLESS
    except FileNotFoundError:
        rest = "" if is_alive(path.parent) else _COMPLETE
    except OSError:
        pass  # SQLite says what is wrong with it.
    return f"file:{quote(str(path.absolute()))}?mode=ro{rest}"
