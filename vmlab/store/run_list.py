"""The list of all runs, with what is known of those that were read before.

What was read of a run is kept in one file beside the runs' folders. It counts only while the run's store, its log and
its note are still the files that were read, by inode, size and times; so the list never tells anything else than
the stores. In a folder that is the same nothing has appeared, so only files that were there are asked for. Whoever
lists runs brings the file up to date. Where it is missing, damaged or cannot be written, stores are read. What runs
take on the disk is kept likewise.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from vmlab.model.jsonable import picked, time_of_day
from vmlab.model.places import runs_folder, state_folder
from vmlab.model.run import RUNNING
from vmlab.store.kept_file import SETTLED_NANOSECONDS, KeptFile, file_stamp
from vmlab.store.life import LOG, NOTE, is_alive
from vmlab.store.runs import STORE, RunSummary, all_tags, run_names

_SCHEMA = "vmlab.run-list/7"
"""Its number changes with the fields of `RunSummary`, and with what `summarise` makes of a store."""
_FIELDS = tuple(name for name in RunSummary.__slots__ if name != "tags")
"""What is kept of a summary, in the order of its fields; names are kept elsewhere."""
_TAGS = RunSummary.__slots__.index("tags")
_as_kept: Callable[..., RunSummary] = RunSummary
_ENDED = _FIELDS.index("ended")
_values_of = attrgetter(*_FIELDS)

Stamp = list[list[int] | None]
"""Of a run's folder, its store, the store's log and the run's note, None for what is not there: inode, size, and when
the content changed, in nanoseconds; but for the log also when the inode changed. The folder's is None where it
changed just now, so that a later change may not show.
"""
_Kept = dict[str, list[Any]]
"""By the run's id: the stamp of what was read, and the values of `_FIELDS`."""


def kept_file() -> Path:
    """Where it is kept what was read of runs."""
    return state_folder() / "run-list.json"


def list_runs() -> list[RunSummary]:
    """All runs with their names, the newest first. A damaged store affects its own line only."""
    return _with_tags(summaries())


def runs_with_sizes() -> tuple[list[RunSummary], dict[str, int]]:
    """As `list_runs`, and what each takes on the disk, in bytes by its id."""
    found = _stamped()
    return _with_tags([run for _, run in found]), bytes_on_disk({run.id: stamp for stamp, run in found})


def _with_tags(runs: list[RunSummary]) -> list[RunSummary]:
    """The runs with the names that users gave to them. Raises OSError."""
    tags = all_tags()
    if not tags:
        return runs
    return [replace(run, tags=tuple(name for name, of in tags.items() if run.id in of)) for run in runs]


def summaries() -> list[RunSummary]:
    """As `list_runs`, without the names that users gave to runs."""
    return [run for _, run in _stamped()]


def _stamped() -> list[tuple[Stamp | None, RunSummary]]:
    """All runs, each with the stamp of its files before they were read."""
    file = KeptFile(kept_file(), _SCHEMA)
    before: _Kept = file.read()
    after: _Kept = {}
    found = list[tuple[Stamp | None, RunSummary]]()
    settled = time.time_ns() - SETTLED_NANOSECONDS
    runs = runs_folder()
    place, unchanged = str(runs), True
    for name in run_names():
        kept = before.get(name)
        if kept is not None and _is_as_it_was(f"{place}/{name}", kept[0]) and kept[1][_ENDED] is not None:
            after[name] = kept
            found.append((kept[0], _as_kept(*kept[1][:_TAGS], (), *kept[1][_TAGS:])))
            continue
        stamp = _stamp(f"{place}/{name}", settled, kept[0] if kept else None)
        if kept is None or not _same(kept[0], stamp) or (kept[1][_ENDED] is None and is_alive(runs / name)):
            summary = _summarise(runs / name)
            kept = [stamp, list(_values_of(summary))] if _may_be_kept(summary, stamp, settled) else None
            unchanged = False
        else:
            summary = _as_kept(*kept[1][:_TAGS], (), *kept[1][_TAGS:])
            if kept[0] != stamp:
                kept, unchanged = [stamp, kept[1]], False
        if kept is not None:
            after[name] = kept
        found.append((stamp, summary))
    if (not unchanged or len(after) != len(before)) and after != before:
        file.write(after)
    return found


def _summarise(folder: Path) -> RunSummary:
    # Imported late: where nothing is new, neither SQLite nor the events are needed.
    from vmlab.store.run_summary import summarise

    return summarise(folder / STORE)


def _may_be_kept(summary: RunSummary, stamp: Stamp | None, settled: int) -> bool:
    """Whether the run is over and sound, and every later change of its files would show."""
    if stamp is None or summary.problem is not None or summary.outcome == RUNNING:
        return False
    return all(file is None or max(file[2:]) < settled for file in stamp[1:])


def _is_as_it_was(folder: str, before: Stamp) -> bool:
    """Whether `_stamp` would give the same: nearly all of many runs are as they were, and nothing is made for these."""
    of_folder, of_store, log, note = before
    return (
        of_folder is not None
        and file_stamp(folder) == of_folder
        and file_stamp(f"{folder}/{STORE}") == of_store
        and (log is None or (file_stamp(f"{folder}/{STORE}-wal") or [])[:3] == log)
        and (note is None or file_stamp(f"{folder}/{NOTE}") == note)
    )


def _same(before: Stamp | None, now: Stamp | None) -> bool:
    """Whether the files of a run are the same; its folder may have changed, as when its store was opened."""
    return before is not None and now is not None and before[1:] == now[1:]


def _stamp(folder: str, settled: int, before: Stamp | None) -> Stamp | None:
    """The stamp of the files in a run's folder; None where there is no store. `before` is one that was made before."""
    store = f"{folder}/{STORE}"
    of_folder, found = file_stamp(folder), file_stamp(store)
    if found is None or of_folder is None:
        return None
    there = before if before is not None and before[0] == of_folder else _ALL
    log = file_stamp(f"{store}-wal") if there[2] else None
    note = file_stamp(f"{folder}/{NOTE}") if there[3] else None
    # Whenever root opens a log, SQLite gives it to the store's owner, which changes the last of the times and no more.
    return [of_folder if max(of_folder[2:]) < settled else None, found, log[:3] if log else None, note]


_ALL: Stamp = [[0]] * 4


class RunList:
    """All runs, newest first; `read` may be called as often as one likes, from one thread at a time."""

    def __init__(self) -> None:
        self._ended: dict[str, tuple[Stamp | None, RunSummary]] | None = None

    def read(self) -> list[RunSummary]:
        """The runs as they are now, with their names. Raises OSError where the names cannot be read."""
        found = _stamped() if self._ended is None else [*self._again(self._ended)]
        over = ((stamp, run) for stamp, run in found if run.outcome != RUNNING and run.problem is None)
        self._ended = {run.id: (stamp, run) for stamp, run in over}
        return _with_tags([run for _, run in found])

    def _again(self, ended: Mapping[str, tuple[Stamp | None, RunSummary]]) -> Iterator[tuple[Stamp | None, RunSummary]]:
        place, settled = runs_folder(), time.time_ns() - SETTLED_NANOSECONDS
        for name in run_names():
            before, run = ended.get(name, (None, None))
            # Before a run is read: what is written meanwhile is found the next time.
            stamp = _stamp(f"{place}/{name}", settled, before)
            yield stamp, run if run is not None and _same(before, stamp) else _summarise(place / name)


def runs_document(
    runs: Sequence[RunSummary], sizes: Mapping[str, int], waiting: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """What `vmlab ls --json` prints of these runs; `sizes` are what each takes on the disk, in bytes by its id, and
    `waiting` are those that wait for their turn on this host.
    """
    return {
        "schema": "vmlab.runs/1",
        "runs": [_run_json(run, sizes[run.id]) for run in runs],
        "waiting": [dict(one) for one in waiting],
    }


def tags_document() -> dict[str, Any]:
    """What `vmlab tag --json` prints. Raises RefusedError where this user may not read the runs, and OSError."""
    here = set(run_names())
    entries = [
        {
            "name": name,
            "run": runs[0] if len(runs) == 1 else None,
            "runs": list(runs),
            "here": bool(runs) and here.issuperset(runs),
        }
        for name, runs in all_tags().items()
    ]
    return {"schema": "vmlab.tags/1", "tags": entries}


def _run_json(run: RunSummary, size: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        **picked(run, "id", "scenario", "size", "outcome"),
        "started": time_of_day(run.started),
        "ended": time_of_day(run.ended),
        **picked(run, "cells_done", "cells_planned"),
        "tags": list(run.tags),
        "control": run.control,
        "bytes": size,
        "cells_missed": run.cells_missed,
    }
    if run.runner_pid is not None:
        body["runner_pid"] = run.runner_pid
    if run.problem is not None:
        body["problem"] = run.problem
    if run.note:
        body["note"] = run.note
    return body


_SIZES_SCHEMA = "vmlab.run-sizes/1"
_GROW = (STORE, f"{STORE}-wal", LOG)
_BLOCK = 512
_STORE_WITHIN = f"/{STORE}"


def sizes_file() -> Path:
    """Where it is kept what was found."""
    return state_folder() / "run-sizes.json"


def bytes_of(run: str) -> int:
    """What a run's folder takes on the disk, in bytes; what cannot be read counts nothing."""
    return sum(size for _, size in _walked(f"{runs_folder()}/{run}"))


def bytes_on_disk(runs: Mapping[str, Stamp | None]) -> dict[str, int]:
    """The same of many runs, by their ids; `runs` are all that are to be kept, with stamps where these are known."""
    file = KeptFile(sizes_file(), _SIZES_SCHEMA)
    before, after = file.read(), dict[str, Any]()
    settled = time.time_ns() - SETTLED_NANOSECONDS
    place, found = runs_folder(), dict[str, int]()
    for run, seen in runs.items():
        kept = before.get(run)
        if kept is None or not _is_as_kept(f"{place}/{run}", kept[1], seen):
            kept = _looked_at(place / run, settled)
        found[run] = kept[0]
        if kept[1]:
            after[run] = kept
    if after != before:
        file.write(after)
    return found


def _is_as_kept(folder: str, kept: Mapping[str, list[int]], seen: Stamp | None) -> bool:
    """Whether all that was kept of a run's folder is as it was; `seen` is how it was found just now."""
    for name, stamp in kept.items():
        found = None if seen is None else seen[0] if name == "" else seen[1] if name == _STORE_WITHIN else None
        if (found or file_stamp(folder + name)) != stamp:
            return False
    return True


def _looked_at(folder: Path, settled: int) -> list[Any]:
    """What a run takes, and the stamps for which that holds, by names within its folder; none where it may not be
    kept."""
    # What changes meanwhile is too new to be kept.
    alive, name = is_alive(folder), str(folder)
    stamps = {f"/{one}": stamp for one in _GROW if (stamp := file_stamp(f"{name}/{one}")) is not None}
    stamps[""] = file_stamp(name) or []
    walked = list(_walked(name))
    stamps |= {place.removeprefix(name): file_stamp(place) or [] for place, _ in walked if place != name}
    lasts = not alive and all(stamp and max(stamp[2:]) < settled for stamp in stamps.values())
    return [sum(size for _, size in walked), stamps if lasts else {}]


def _walked(folder: str) -> Iterator[tuple[str, int]]:
    """Each folder within `folder`, itself first, and the bytes of its files."""
    # Not by pathlib, which takes longer for thousands of runs than the kernel.
    total, within = 0, []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                within.append(entry.path)
            else:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
    yield folder, total
    for one in within:
        yield from _walked(one)
