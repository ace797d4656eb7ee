"""Reading a run's store: of a run that lives, of one that died, and of a copy on another machine."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from vmlab.model.errors import StoreError, UsageError
from vmlab.model.event import Event, HostProbed, RunStarted, from_json
from vmlab.model.run import RawOutput, RunHeader
from vmlab.store.life import is_alive
from vmlab.store.schema import APPLICATION_ID, VERSION

_PAGE = 1000
# The plus keeps SQLite from collecting rows by the index on time and sorting them, bodies and all.
_SPAN = "id > ? AND +mono <= ?"


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One stored sample, still packed; `body` is read with `store.samples`."""

    id: int
    layout: int
    wall: float
    mono: float
    body: bytes


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """Names of a sample's values in their order, and the unit of each."""

    names: tuple[str, ...]
    units: tuple[str, ...]


class RunReader:
    """Reads the store at `path` and never changes it. One thread at a time; close it, or use it with ``with``.

    Raises UsageError for a file that is no store or that a newer vmlab wrote, StoreError for a damaged one; each is
    one line with the file's name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise UsageError(f"{path}: no such store")
        with self._told():
            self._connection = sqlite3.connect(_uri(path), uri=True, isolation_level=None, check_same_thread=False)
            try:
                self._check()
            except BaseException:
                self._connection.close()
                raise

    def _check(self) -> None:
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise UsageError(f"{self.path}: is not the store of a run")
        if version > VERSION:
            raise UsageError(f"{self.path}: was written by a newer vmlab (schema {version}, known: {VERSION})")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, zlib.error) as error:
            if isinstance(error, sqlite3.DatabaseError) and error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise UsageError(f"{self.path}: is not the store of a run") from error
            raise StoreError(f"cannot read {self.path}: {error}") from error

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._told():
            return self._connection.execute(statement, values).fetchall()

    def events(self, after: int = 0, kinds: tuple[type[Event], ...] = ()) -> Iterator[tuple[int, Event]]:
        """Row id and event of all that came after row `after`, in order; of some `kinds` only, when given.

        Ends with the last event that is there; ask again with the last row id to follow a run that lives. Kinds of
        a newer version are passed over.
        """
        named = [kind.__name__ for kind in kinds]
        narrowed = f"AND kind IN ({', '.join('?' * len(named))})" if named else ""
        statement = f"SELECT id, body FROM events WHERE id > ? {narrowed} ORDER BY id LIMIT {_PAGE}"
        # A page at a time, so that no long read keeps the writer from folding its log in.
        while rows := self._rows(statement, after, *named):
            for after, body in rows:
                with self._told():
                    event = from_json(body)
                if event is not None:
                    yield after, event
            if len(rows) < _PAGE:
                return

    @property
    def header(self) -> RunHeader | None:
        """What is known of the run from its start; None before it said that it started."""
        header: RunHeader | None = None
        accelerator, host = None, {}
        for _, event in self.events(kinds=(RunStarted, HostProbed)):
            if isinstance(event, RunStarted):
                header = RunHeader(event.run, event.scenario, event.size, event.seed, event.wall)
            elif isinstance(event, HostProbed):
                accelerator, host = event.accelerator, event.host
        if header is None:
            return None
        return RunHeader(header.id, header.scenario, header.size, header.seed, header.started, accelerator, host)

    def raw_outputs(self, cell: int | None = None) -> list[tuple[int, RawOutput]]:
        """Cell and text of everything that tools printed, of one cell or of all, in the order it was kept."""
        rows = self._rows(
            "SELECT cell, workload, tile, guest, name, body FROM raw_outputs WHERE cell = ?1 OR ?1 IS NULL ORDER BY id",
            cell,
        )
        with self._told():
            return [
                (kept, RawOutput(workload, tile, guest, name, zlib.decompress(body).decode("utf-8", "surrogateescape")))
                for kept, workload, tile, guest, name, body in rows
            ]

    def documents(self) -> dict[str, str]:
        """All texts that were kept by a name, such as ``scenario``."""
        return dict(self._rows("SELECT name, body FROM documents ORDER BY name"))

    def sample_layouts(self) -> dict[int, SampleLayout]:
        """All layouts of samples by their id."""
        rows = self._rows("SELECT id, names, units FROM layouts")
        with self._told():
            return {row[0]: SampleLayout(tuple(json.loads(row[1])), tuple(json.loads(row[2]))) for row in rows}

    def sample_rows(
        self, since: float = float("-inf"), until: float = float("inf"), after: int = 0
    ) -> Iterator[SampleRow]:
        """Samples taken from `since` to `until` on the monotonic clock, ends included, and after row `after`."""
        statement = f"SELECT id, layout, wall, mono, body FROM samples WHERE {_SPAN} ORDER BY id LIMIT {_PAGE}"
        after = max(after, self._row_before(since))
        while rows := self._rows(statement, after, until):
            for row in rows:
                yield SampleRow(*row)
            after = rows[-1][0]

    def sample_slices(
        self, layout: int, offset: int, size: int, since: float, until: float, after: int = 0
    ) -> list[tuple[int, float, bytes]]:
        """Row id, monotonic time and `size` bytes at `offset` of every sample of one layout, in order.

        The span is as for `sample_rows`. One series of many ticks comes this way in a millisecond or two.
        """
        statement = f"SELECT id, mono, substr(body, ?, ?) FROM samples WHERE {_SPAN} AND layout = ? ORDER BY id"
        after = max(after, self._row_before(since))
        return [(row[0], row[1], row[2]) for row in self._rows(statement, offset + 1, size, after, until, layout)]

    def _row_before(self, since: float) -> int:
        """The row before the first sample from `since` on. Rows are in order of time, so the index is asked once."""
        found = self._rows("SELECT id FROM samples WHERE mono >= ? ORDER BY mono LIMIT 1", since)
        return int(found[0][0]) - 1 if found else 2**62

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _uri(path: Path) -> str:
    """A URI that opens `path` read-only.

    Where there is no log and nobody who could write one, the file is all there is; taken as immutable it is read from
    a read-only folder too and leaves no ``-shm`` behind.
    """
    log = path.with_name(path.name + "-wal")
    rest = "" if log.exists() or is_alive(path.parent) else "&immutable=1"
    return f"file:{quote(str(path.absolute()))}?mode=ro{rest}"
