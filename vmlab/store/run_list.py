"""The list of all runs, with what is known of those that were read before.

What was read of a run is kept in one file beside the runs' folders. It counts only while the run's store and its log
are still the files that were read, by inode, size and times; so the list never tells anything else than
the stores. Whoever lists runs brings the file up to date. Where it is missing, damaged or cannot be written, stores are
read.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vmlab.model.errors import UsageError
from vmlab.model.places import state_folder
from vmlab.model.run import RUNNING
from vmlab.store.life import is_alive
from vmlab.store.runs import STORE, RunSummary, run_folders
from vmlab.store.tags import all_tags
from vmlab.system.given_file import read_given
from vmlab.system.new_file import new_file

_SCHEMA = "vmlab.run-list/4"
"""Its number changes with the fields of `RunSummary`, and with what `summarise` makes of a store."""
# The kernel's clock for files moves every few milliseconds, so that two changes may leave the same times. A file that
# has not changed for so long shows every later change.
_SETTLED_NANOSECONDS = 2 * 10**9

Stamp = list[list[int] | None]
"""Of a store and its log, None for no log: inode, size, and when the content changed, in nanoseconds; of the store also
when the inode changed.
"""
_Kept = dict[str, dict[str, Any]]
"""By the run's id: the `summary`, and the `stamp` of what it was read from."""


def kept_file() -> Path:
    """Where it is kept what was read of runs."""
    return state_folder() / "run-list.json"


def list_runs() -> list[RunSummary]:
    """All runs with their names, the newest first. A damaged store affects its own line only."""
    tags = all_tags()
    found = summaries()
    if not tags:
        return found
    return [replace(run, tags=tuple(name for name, of in tags.items() if run.id in of)) for run in found]


def summaries() -> list[RunSummary]:
    """As `list_runs`, without the names that users gave to runs."""
    before = _read()
    after: _Kept = {}
    found = []
    settled = time.time_ns() - _SETTLED_NANOSECONDS
    for folder in run_folders():
        stamp = _stamp(folder)
        kept = before.get(folder.name)
        if kept is None or kept["stamp"] != stamp or (kept["summary"]["ended"] is None and is_alive(folder)):
            summary = _summarise(folder)
            kept = {"stamp": stamp, "summary": _body(summary)} if _may_be_kept(summary, stamp, settled) else None
        else:
            summary = RunSummary(**kept["summary"])
        if kept is not None:
            after[folder.name] = kept
        found.append(summary)
    if after != before:
        _write(after)
    return found


def _summarise(folder: Path) -> RunSummary:
    # Imported late: where nothing is new, neither SQLite nor the events are needed.
    from vmlab.store.run_summary import summarise

    return summarise(folder / STORE)


def _body(summary: RunSummary) -> dict[str, Any]:
    """What the store says; names are kept elsewhere."""
    return {name: value for name, value in asdict(summary).items() if name != "tags"}


def _may_be_kept(summary: RunSummary, stamp: Stamp | None, settled: int) -> bool:
    """Whether the run is over and sound, and every later change of its files would show."""
    if stamp is None or summary.problem is not None or summary.outcome == RUNNING:
        return False
    return all(file is None or max(file[2:]) < settled for file in stamp)


def _stamp(folder: Path) -> Stamp | None:
    """The stamp of a run's files; None where there is no store."""
    place = f"{folder}/{STORE}"
    store = _file_stamp(place)
    if store is None:
        return None
    log = _file_stamp(f"{place}-wal")
    # Whenever root opens a log, SQLite gives it to the store's owner, which changes the last of the times and no more.
    return [store, None if log is None else log[:3]]


def _file_stamp(path: str) -> list[int] | None:
    try:
        # A Path for each file takes longer than the kernel, where there are thousands of runs.
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _read() -> _Kept:
    """What is kept; nothing where the file cannot be read, is not as it was written, or is of another version."""
    try:
        check, _, text = read_given(kept_file(), _MOST_KEPT).partition(b"\n")
    except UsageError:
        return {}
    if check != _check(text):
        return {}
    found: _Kept = json.loads(text)
    return found


_MOST_KEPT = 64 * 2**20
"""Bytes of the file, which has some hundred for each run."""


def _check(text: bytes) -> bytes:
    return f"{_SCHEMA} {zlib.crc32(text):08x}".encode()


def _write(kept: _Kept) -> None:
    text = json.dumps(kept, separators=(",", ":")).encode()
    with contextlib.suppress(OSError), new_file(kept_file()) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(_check(text) + b"\n" + text)


class RunList:
    """All runs, newest first; `read` may be called as often as one likes, from one thread at a time."""

    def __init__(self) -> None:
        self._ended: dict[str, RunSummary] | None = None

    def read(self) -> list[RunSummary]:
        """The runs as they are now."""
        ended = self._ended
        if ended is None:
            found = summaries()
        else:
            found = [ended.get(folder.name) or _summarise(folder) for folder in run_folders()]
        self._ended = {run.id: run for run in found if run.outcome != RUNNING and run.problem is None}
        return found
