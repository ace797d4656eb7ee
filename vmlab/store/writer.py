"""The one writer of a run's store. Every call is a transaction of its own: a kill -9 loses nothing that returned."""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vmlab.model.errors import StoreError
from vmlab.model.event import Event, to_json
from vmlab.model.run import RawOutput
from vmlab.store.schema import APPLICATION_ID, TABLES, VERSION

_BUSY_SECONDS = 10.0
# A checkpoint calls fsync, which may stall for seconds on the very disk that a workload loads. So it happens when
# the caller says so, between cells, or when the log has grown to 64 MiB.
_CHECKPOINT_PAGES = 16384


class RunWriter:
    """Opens or makes the store at `path` and appends to it; any thread may call, one after another.

    Every method raises StoreError, with one line that names the file, when the disk is full or fails. What was
    written before stays readable then.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None
        with self._told():
            self._open = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._set_up(self._open)

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        # In WAL mode NORMAL is safe against the death of any process; only a power cut may lose the last commits.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.executescript(
                f"BEGIN IMMEDIATE; {TABLES}"
                f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
            )
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        elif version != VERSION:
            raise StoreError(f"{self.path}: has schema {version}, this vmlab writes schema {VERSION}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise StoreError(f"cannot write {self.path}: {error}") from error

    def _insert(self, statement: str, values: tuple[Any, ...]) -> int:
        with self._told():
            if self._open is None:
                raise StoreError(f"cannot write {self.path}: it is closed")
            return self._open.execute(statement, values).lastrowid or 0

    def append(self, event: Event) -> int:
        """Keep one event; its row id, which counts up from 1."""
        row = (event.wall, event.mono, type(event).__name__, getattr(event, "cell", None), to_json(event))
        return self._insert("INSERT INTO events (wall, mono, kind, cell, body) VALUES (?, ?, ?, ?, ?)", row)

    def raw(self, cell: int, output: RawOutput) -> None:
        """Keep what a tool printed, beside the figures that were parsed from it."""
        body = zlib.compress(output.text.encode("utf-8", "surrogateescape"))
        self._insert(
            "INSERT INTO raw_outputs (cell, workload, tile, guest, name, body) VALUES (?, ?, ?, ?, ?, ?)",
            (cell, output.workload, output.tile, output.guest, output.name, body),
        )

    def sample_layout(self, names: Sequence[str], units: Sequence[str]) -> int:
        """The id of the layout that names a sample's values in order, with their units; made when it is new."""
        if len(names) != len(units):
            raise ValueError(f"{len(names)} names with {len(units)} units")
        row = (json.dumps(list(names)), json.dumps(list(units)))
        with self._told():
            if self._open is None:
                raise StoreError(f"cannot write {self.path}: it is closed")
            found = self._open.execute("SELECT id FROM layouts WHERE names = ? AND units = ?", row).fetchone()
        return int(found[0]) if found else self._insert("INSERT INTO layouts (names, units) VALUES (?, ?)", row)

    def sample(self, layout: int, wall: float, mono: float, blob: bytes) -> None:
        """Keep one packed sample; `wall` in seconds since the epoch, `mono` in seconds of the monotonic clock."""
        self._insert("INSERT INTO samples (layout, wall, mono, body) VALUES (?, ?, ?, ?)", (layout, wall, mono, blob))

    def document(self, name: str, text: str) -> None:
        """Keep a text by its name, such as ``scenario``; a later text of the same name takes its place."""
        self._insert("INSERT OR REPLACE INTO documents (name, body) VALUES (?, ?)", (name, text))

    def checkpoint(self) -> None:
        """Fold the log into the file, with fsync: call it where nothing is measured, such as between cells."""
        with self._told():
            if self._open is not None:
                self._open.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Fold the log in and close; a second call does nothing."""
        with self._told():
            connection, self._open = self._open, None
            if connection is not None:
                connection.close()
