"""The tables of a run's store, and the marks by which such a file is recognised; and what its columns may
hold, as SQLite itself accepts any type.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from vmlab.model.quantities import format_bytes
from vmlab.model.results import MOST_PRINTED, RawOutput
from vmlab.model.sample import SampleNames

APPLICATION_ID = 0x766D6C62
"""``vmlb`` in the file's header, so that other SQLite files are recognised as such."""
VERSION = 1
"""SQLite's ``user_version``; a reader refuses a newer version than its own."""

TABLES = """
CREATE TABLE events (
    id   INTEGER PRIMARY KEY,
    wall REAL NOT NULL,
    mono REAL NOT NULL,
    kind TEXT NOT NULL,
    cell INTEGER,
    body TEXT NOT NULL
);
CREATE INDEX events_kind ON events (kind);
CREATE TABLE raw_outputs (
    id       INTEGER PRIMARY KEY,
    cell     INTEGER NOT NULL,
    workload TEXT NOT NULL,
    tile     INTEGER NOT NULL,
    guest    TEXT NOT NULL,
    name     TEXT NOT NULL,
    body     BLOB NOT NULL
);
CREATE INDEX raw_outputs_cell ON raw_outputs (cell);
CREATE TABLE layouts (
    id    INTEGER PRIMARY KEY,
    names TEXT NOT NULL,
    units TEXT NOT NULL
);
CREATE TABLE samples (
    id     INTEGER PRIMARY KEY,
    layout INTEGER NOT NULL REFERENCES layouts (id),
    wall   REAL NOT NULL,
    mono   REAL NOT NULL,
    body   BLOB NOT NULL
);
CREATE TABLE documents (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
);
"""
"""Samples are stored in order of time, so they need no index on it. ``raw_outputs.body`` is
zlib-compressed UTF-8; ``layouts.names`` and ``units`` are JSON lists of equal length."""

EARLIER_INDEX = "CREATE INDEX samples_mono ON samples (mono)"
"""Stores from before 0.1.0 may have it, and are read and imported as well."""

FLEET_TABLES = """
CREATE TABLE fleet_sources (
    id   INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    run  TEXT NOT NULL,
    wall REAL NOT NULL,
    mono REAL NOT NULL,
    seen INTEGER NOT NULL,
    UNIQUE (host, run)
);
CREATE TABLE fleet_events (
    event  INTEGER PRIMARY KEY REFERENCES events (id),
    source INTEGER NOT NULL REFERENCES fleet_sources (id),
    row    INTEGER NOT NULL,
    UNIQUE (source, row)
);
CREATE TABLE fleet_samples (
    id     INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES fleet_sources (id),
    row    INTEGER NOT NULL,
    layout INTEGER NOT NULL REFERENCES layouts (id),
    wall   REAL NOT NULL,
    mono   REAL NOT NULL,
    body   BLOB NOT NULL,
    UNIQUE (source, row)
);
"""
"""Beside the others in the store of a run of a fleet alone. A source is the run of one host; ``wall`` and ``mono`` were
added to its clocks to give the controller's, ``seen`` is the last of its events that was taken. ``row`` is the number
that an event or a sample has in the host's own store."""


_LARGEST = 253402300800
"""Seconds: the year 10000, as of an event's clocks."""
_LAST_WALL = _LARGEST - 366 * 86400
"""What is counted from the time of a sample is within the year 9999 as well."""
_MOST_NAMES = 20_000
"""Of one layout of samples; a host with hundreds of CPUs and guests has fewer."""
_LONGEST_NAME = 500
_MOST_LAYOUT = 4 * 2**20
"""Letters of its names."""


def whole(value: Any) -> int:
    """A whole number."""
    if type(value) is not int:
        raise ValueError(f"a {_kind(value)} instead of a whole number")
    return value


def number(value: Any) -> float:
    """A number that a monotonic clock may show: finite, and below a generous limit."""
    if not isinstance(value, float | int) or not abs(value) < _LARGEST:
        raise ValueError(f"a {_kind(value)} instead of a number")
    return value


def moment(value: Any) -> float:
    """A time of day in seconds since the epoch, before the year 9999."""
    if not 0 <= number(value) < _LAST_WALL:
        raise ValueError(f"a {_kind(value)} instead of a time")
    return float(value)


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError(f"a {_kind(value)} instead of a text")
    return value


def packed(value: Any, size: int | None = None) -> bytes:
    """Bytes, `size` of them when given."""
    if not isinstance(value, bytes):
        raise ValueError(f"a {_kind(value)} instead of bytes")
    if size is not None and len(value) != size:
        raise ValueError(f"{len(value)} bytes instead of {size}")
    return value


def raw_output(workload: Any, tile: Any, guest: Any, name: Any, body: Any) -> RawOutput:
    """What a tool printed; bytes that are not UTF-8 become lone surrogates. Also raises zlib.error."""
    unpacking = zlib.decompressobj()
    printed = unpacking.decompress(packed(body), MOST_PRINTED + 1)
    if len(printed) > MOST_PRINTED:
        raise ValueError(f"what a tool printed is larger than {format_bytes(MOST_PRINTED)}")
    if not unpacking.eof:
        raise ValueError("what a tool printed is not whole")
    return RawOutput(text(workload), whole(tile), text(guest), text(name), printed.decode("utf-8", "surrogateescape"))


def _names_of(body: Any) -> tuple[str, ...]:
    """A JSON list of names, none of them empty."""
    if len(text(body)) > _MOST_LAYOUT:
        raise ValueError("a layout of samples is too large")
    try:
        names = json.loads(body)
    except RecursionError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError("a layout of samples is no list of names")
    if len(names) > _MOST_NAMES or any(len(name) > _LONGEST_NAME for name in names):
        raise ValueError("a layout of samples is too large")
    return tuple(names)


def sample_names(names: Any, units: Any) -> SampleNames:
    """Names of a sample's values in their order, and the unit of each."""
    found = SampleNames(_names_of(names), _names_of(units))
    if len(found.names) != len(found.units):
        raise ValueError(f"a layout of samples has {len(found.names)} names with {len(found.units)} units")
    return found


def _kind(value: object) -> str:
    return {str: "text", bytes: "blob", type(None): "null", int: "whole number"}.get(type(value), "figure")
