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
"""Samples are stored in order of time, so they need no index on it: stores of before that have one are read as well.
``raw_outputs.body`` is zlib-compressed UTF-8; ``layouts.names`` and ``units`` are JSON lists of equal length."""
