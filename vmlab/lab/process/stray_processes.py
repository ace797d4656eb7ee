"""Processes of runs and recordings that work on although their folder has gone, which no list of folders shows.

They end by themselves (`held_folder`), but for one that was stopped, hangs, or is of an older version. One is known by
what it holds now, never by its name: its command line gives a run and that run's folder, and it has a file called
``lock`` open and locked, which is not the one in that folder, as its mount namespace and this one have it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vmlab.lab.process.run_folder import RuntimeFolder
from vmlab.model.places import runs_folder
from vmlab.store.life import LOCK
from vmlab.system.processes import command_line, parent_of, signal_process

_PROC = Path("/proc")
_HELD_LOCK = re.compile(r"^lock:.*\bFLOCK\b.*\bWRITE\b", re.MULTILINE)
_OPTION, _RUN, _FOLDER = 1, 3, 4
"""Places of words in ``python -m MODULE RUN FOLDER …``."""
_END_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class StrayProcess:
    """The first process of a run, whose others end with it, and the folder that it was given."""

    run: str
    pid: int
    folder: Path

    def __str__(self) -> str:
        return f"run {self.run} goes on as process {self.pid}, and its folder {self.folder} has gone or is another"


def stray_processes() -> list[StrayProcess]:
    """Those of this user and of this state folder or runtime folder, in the order of their runs."""
    found = {pid: stray for pid in _own_processes() if (stray := _stray(pid, command_line(pid))) is not None}
    # Init and runner are children of the launcher, and of the same run.
    return sorted((one for pid, one in found.items() if _is_first(pid, found)), key=lambda one: one.run)


def end_stray(stray: StrayProcess) -> bool:
    """End it in its regular way, or by a kill where that takes too long; False where it stays."""
    is_it = partial(_is, stray)
    signal_process(stray.pid, signal.SIGTERM, is_it)
    for number in (signal.SIGCONT, signal.SIGKILL):
        signal_process(stray.pid, number, is_it)
        end = time.monotonic() + _END_SECONDS
        while _goes_on(stray):
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        else:
            return True
    return False


def _is(stray: StrayProcess, words: bytes) -> bool:
    return _stray(stray.pid, words) == stray


def _goes_on(stray: StrayProcess) -> bool:
    """Whether it, or another process of its run, is still there."""
    return _is(stray, command_line(stray.pid)) or RuntimeFolder.of(stray.run).alive()


def _own_processes() -> Iterator[int]:
    for entry in _PROC.iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == os.geteuid():
                yield int(entry.name)


def _stray(pid: int, line: bytes) -> StrayProcess | None:
    words = [os.fsdecode(word) for word in line.split(b"\0")]
    if len(words) <= _FOLDER or words[_OPTION] != "-m":
        return None
    folder = Path(words[_FOLDER])
    if folder.name != words[_RUN] or not _concerns(words[_RUN], folder):
        return None
    try:
        if not (_PROC / "self/ns/mnt").samefile(_PROC / f"{pid}/ns/mnt"):
            return None
        lock = _held_lock(pid)
    except OSError:
        # It has just ended, or nobody may look at it.
        return None
    return None if lock is None or _is_there(folder, lock) else StrayProcess(words[_RUN], pid, folder)


def _concerns(run: str, folder: Path) -> bool:
    """Whether the run was begun with this state folder, or with this runtime folder."""
    return folder.parent == runs_folder() or RuntimeFolder.of(run).record() == folder


def _held_lock(pid: int) -> os.stat_result | None:
    """The file ``lock`` that a process has open and locked. Raises OSError."""
    for entry in (_PROC / f"{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            name = entry.readlink().name.removesuffix(" (deleted)")
            if name == LOCK and _HELD_LOCK.search((_PROC / f"{pid}/fdinfo/{entry.name}").read_text()):
                return entry.stat()
    return None


def _is_there(folder: Path, lock: os.stat_result) -> bool:
    """Whether a run's lock is in this folder, which is no link; also where nobody can know."""
    try:
        return not folder.is_symlink() and os.path.samestat((folder / LOCK).lstat(), lock)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _is_first(pid: int, others: Collection[int]) -> bool:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return parent_of(pid) not in others
    return False
