"""A general query log that was captured from a blog's MariaDB, and the data that its queries ask for.

``packaging/query_log/capture.py`` made both files: the log as the server wrote it, and the SQL that fills the database.
"""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

from vmlab.model.errors import WorkloadError

_HEAD = (
    re.compile(r".+, Version: .*\. started with:\s*"),
    re.compile(r"(?i:tcp port): .*"),
    re.compile(r"Time\s+Id\s+Command\s+Argument\s*"),
)
"""The three lines that a server writes when it opens the log: at its beginning, and again after a restart."""
_ENTRY = re.compile(
    r"(?:[0-9]{6}\s+[0-9]{1,2}:[0-9]{2}:[0-9]{2}|"
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?|\t)[\t ]"
    r"\s*(?P<connection>[0-9]+) (?P<command>[A-Z][A-Za-z_]*(?: [A-Za-z_]+){0,4})(?:\t(?P<text>.*)|)",
    re.DOTALL,
)
"""A line that begins an entry; a query with line breaks goes on in lines of its own.

MariaDB, and MySQL before 5.7, write the time as 231127 17:00:00, and once for all entries of a second. MySQL and
Percona Server from 5.7 on write it as RFC 3339 does, in each line. A command may be any word or words: servers add
some.
"""
_TOKEN = re.compile(
    r"(?P<gap>\s+|/\*(?!M?!).*?\*/|/\*M?![0-9]*|\*/|--(?=[\s\x00-\x1f]|$)[^\n]*|\#[^\n]*)"
    r"|'(?:[^'\\]|\\.|'')*+'|\"(?:[^\"\\]|\\.|\"\")*+\"|`[^`]*`|[^\W\d][\w$]*|.",
    re.DOTALL,
)
"""Of a statement: what stands between its words, its texts and names in quotes, its words, and any other letter.

What is in a comment that begins with ``/*!`` or ``/*M!`` is executed, so its words are words.
"""
_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "TABLE", "VALUES")
_MAY_WRITE = re.compile("into|;", re.IGNORECASE)


def parse_general_log(text: str) -> list[list[str]]:
    """The SELECTs of each connection, in order, connections in the order of their first entry.

    `text` is a general log as it stands in its file, of MariaDB or MySQL. Its lines end with a newline and with nothing
    else: any other letter may be part of a statement. Whatever begins an entry ends the one before, known or not, as
    the lines of a restart do, after which a number means another connection. Raises WorkloadError for a line that
    belongs to no entry.
    """
    connections: dict[tuple[int, int], list[str]] = {}
    entry: list[str] = []
    is_query, opened, owner = False, 0, (0, 0)

    def close() -> None:
        queries = connections.setdefault(owner, [])
        if is_query and is_select(query := "\n".join(entry)):
            queries.append(query)

    lines, number = text.removesuffix("\n").split("\n"), 0
    while number < len(lines):
        line = lines[number]
        if _is_head(lines[number : number + 3]):
            close()
            is_query, entry, opened, number = False, [], opened + 1, number + 3
            continue
        if found := _ENTRY.fullmatch(line):
            close()
            owner, is_query, entry = (
                (opened, int(found["connection"])),
                found["command"] == "Query",
                [found["text"] or ""],
            )
        elif entry:
            entry.append(line)
        elif line.strip():
            raise WorkloadError(f"line {number + 1} of the general query log cannot be read: {line[:100]}")
        number += 1
    close()
    return [queries for queries in connections.values() if queries]


def _is_head(lines: Sequence[str]) -> bool:
    return len(lines) == len(_HEAD) and all(one.fullmatch(line) for one, line in zip(_HEAD, lines, strict=True))


def is_select(statement: str) -> bool:
    """Whether a statement is one SELECT that gives its rows to the client.

    It may stand behind comments, parentheses and a WITH. Not what writes: a WITH before another verb, ``SELECT … INTO``
    a file or a variable, and anything behind a semicolon. TABLE, VALUES, SHOW and EXPLAIN are no SELECT.
    """
    if _verb(_words(statement)) != "SELECT":
        return False
    if not _MAY_WRITE.search(statement):
        return True
    words = list(_words(statement))
    end = words.index(";") if ";" in words else len(words)
    return "INTO" not in words and set(words[end:]) <= {";"}


def _words(statement: str) -> Iterator[str]:
    return (found[0].upper() for found in _TOKEN.finditer(statement) if found["gap"] is None)


def _verb(words: Iterator[str]) -> str:
    """The first word, or of a WITH the word behind its tables; empty where there is none."""
    depth, before, tables = 0, "", None
    for word in words:
        if word == "(":
            # Behind the last table of a WITH what it is for may stand in parentheses.
            tables = depth + 1 if depth == tables and before == ")" else tables
            depth += 1
        elif word == ")":
            depth -= 1
        elif tables is None and word != "WITH":
            return word
        elif tables is None:
            tables = depth
        elif depth == tables and word in _VERBS:
            return word
        before = word
    return ""


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
