"""A general query log that was captured from a blog's MariaDB, and the data that its queries ask for.

``packaging/query_log/capture.py`` made both files: the log as the server wrote it, and the SQL that fills the database.
"""

from __future__ import annotations

import hashlib
import lzma
import re
from functools import cache
from importlib import resources

from vmlab.model.errors import WorkloadError

_HEAD_LINES = 3
_ENTRY = re.compile(
    r"(?:\d{6}\s+\d+:\d\d:\d\d\t|\t\t)\s*(?P<connection>\d+) "
    r"(?P<command>Connect|Query|Quit|Init DB|Prepare|Execute|Close stmt|Statistics|Field List|Ping)\t(?P<text>.*)"
)
"""A line that begins an entry; a query with line breaks goes on in lines of its own."""


def parse_general_log(text: str) -> list[list[str]]:
    """The SELECTs of each connection, in order, connections in the order of their first entry.

    `text` is MariaDB 10.11's general log as it stands in its file. Raises WorkloadError for a line that belongs to no
    entry.
    """
    connections: dict[int, list[str]] = {}
    query: list[str] | None = None
    owner = 0
    for number, line in enumerate(text.splitlines()[_HEAD_LINES:], start=_HEAD_LINES + 1):
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            if query is None:
                raise WorkloadError(f"line {number} of the general query log cannot be read: {line[:100]}")
            query.append(line)
            continue
        _keep(connections, owner, query)
        owner = int(entry["connection"])
        query = [entry["text"]] if entry["command"] == "Query" else None
    _keep(connections, owner, query)
    return [queries for queries in connections.values() if queries]


def _keep(connections: dict[int, list[str]], owner: int, query: list[str] | None) -> None:
    queries = connections.setdefault(owner, [])
    if query is not None and query[0].lstrip().upper().startswith("SELECT"):
        queries.append("\n".join(query))


def _unpacked(name: str) -> bytes:
    return lzma.decompress(resources.files(__package__).joinpath(name).read_bytes())


@cache
def captured_queries() -> tuple[tuple[str, ...], ...]:
    """The captured SELECTs by connection; see `parse_general_log`."""
    text = _unpacked("general.log.xz").decode("utf-8")
    return tuple(tuple(queries) for queries in parse_general_log(text))


def captured_data() -> bytes:
    """SQL that makes and fills the tables in an empty database."""
    return _unpacked("data.sql.xz")


@cache
def digest() -> str:
    """SHA-256 of both files: another log or other data make other snapshots."""
    files = ("data.sql.xz", "general.log.xz")
    content = b"".join(resources.files(__package__).joinpath(name).read_bytes() for name in files)
    return hashlib.sha256(content).hexdigest()
