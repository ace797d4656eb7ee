"""The tables of a run's store, and the marks by which such a file is recognised."""

from __future__ import annotations

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
