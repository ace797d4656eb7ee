"""What runs take on the disk, with what was found of those that were looked at before.

It counts only while the run's folders, and the files in them that grow, are still those that were looked at, by inode,
size and times: each other file is written once, under another name until it is complete, which changes its folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from vmlab.model.places import runs_folder, state_folder
from vmlab.store.kept_file import SETTLED_NANOSECONDS, KeptFile, file_stamp
from vmlab.store.life import LOG, is_alive
from vmlab.store.runs import STORE

_SCHEMA = "vmlab.run-sizes/1"
_GROW = (STORE, f"{STORE}-wal", LOG)
_BLOCK = 512


def sizes_file() -> Path:
    """Where it is kept what was found."""
    return state_folder() / "run-sizes.json"


def bytes_of(run: str) -> int:
    """What a run's folder takes on the disk, in bytes; what cannot be read counts nothing."""
    return sum(size for _, size in _walked(f"{runs_folder()}/{run}"))


def bytes_on_disk(runs: Iterable[str]) -> dict[str, int]:
    """The same of many runs, by their ids; `runs` are all that are to be kept."""
    file = KeptFile(sizes_file(), _SCHEMA)
    before, after = file.read(), dict[str, Any]()
    settled = time.time_ns() - SETTLED_NANOSECONDS
    place, found = runs_folder(), dict[str, int]()
    for run in runs:
        kept = before.get(run)
        if kept is None or any(file_stamp(f"{place}/{run}{name}") != stamp for name, stamp in kept[1].items()):
            kept = _looked_at(place / run, settled)
        found[run] = kept[0]
        if kept[1]:
            after[run] = kept
    if after != before:
        file.write(after)
    return found


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
