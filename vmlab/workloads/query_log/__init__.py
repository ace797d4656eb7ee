"""A general query log that was captured from a blog's MariaDB, and the data that its queries ask for.

``packaging/query_log/capture.py`` made both files: the log as the server wrote it, and the SQL that fills the database.
``packaging/query_log/count_rows.py`` counted the rows that each query has.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from functools import cache
from importlib import resources

_HEAD_LINES = 3
"""What the server writes when it opens the log."""
_ENTRY = re.compile(
    r"(?:[0-9]{6}\s+[0-9:]+|\t)\t\s*(?P<connection>[0-9]+) (?P<command>[A-Z][A-Za-z ]*)(?:\t(?P<text>.*)|)", re.DOTALL
)
"""A line that begins an entry; a query with line breaks goes on in lines of its own."""


def selects_in(log: str) -> tuple[tuple[str, ...], ...]:
    """The SELECTs of each connection, in order, connections in the order of their first entry.

    `log` is a general log as MariaDB writes it. Its lines end with a newline and with nothing else: any other letter
    may be part of a statement.
    """
    connections: dict[str, list[list[str]]] = {}
    entry: list[str] = []
    for line in log.removesuffix("\n").split("\n")[_HEAD_LINES:]:
        if (found := _ENTRY.fullmatch(line)) is None:
            entry.append(line)
            continue
        entry = [found["text"] or ""]
        queries = connections.setdefault(found["connection"], [])
        if found["command"] == "Query":
            queries.append(entry)
    texts = (["\n".join(query) for query in queries] for queries in connections.values())
    selects = (tuple(text for text in one if text.lstrip().startswith("SELECT")) for one in texts)
    return tuple(queries for queries in selects if queries)


def _unpacked(name: str) -> bytes:
    return lzma.decompress(resources.files(__package__).joinpath(name).read_bytes())


@cache
def captured_queries() -> tuple[tuple[str, ...], ...]:
    """The captured SELECTs by connection; see `selects_in`."""
    return selects_in(_unpacked("general.log.xz").decode("utf-8"))


def captured_data() -> bytes:
    """SQL that makes and fills the tables in an empty database."""
    return _unpacked("data.sql.xz")


@cache
def captured_rows() -> tuple[tuple[int, ...], ...]:
    """How many rows each captured SELECT has, by connection."""
    return tuple(map(tuple, json.loads(_unpacked("rows.json.xz"))))


@cache
def digest() -> str:
    """SHA-256 of log and data: others make other snapshots."""
    files = ("data.sql.xz", "general.log.xz")
    content = b"".join(resources.files(__package__).joinpath(name).read_bytes() for name in files)
    return hashlib.sha256(content).hexdigest()
