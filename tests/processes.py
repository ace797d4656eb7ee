"""Processes of this machine, found by what their names or command lines say.

A process that is listed may end before it is asked: `process_iter` with attributes leaves such a one out, while a
method called on it raises.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import psutil


def processes(*words: str | os.PathLike[str]) -> list[int]:
    """Those whose command lines have all of `words`."""
    return [one.pid for one in psutil.process_iter(["cmdline"]) if _has(one.info["cmdline"], words)]


def named(name: str) -> list[psutil.Process]:
    """Those whose program's name begins with `name`, ended ones left out."""
    found = psutil.process_iter(["name", "status"])
    return [one for one in found if (one.info["name"] or "").startswith(name) and _runs(one.info["status"])]


def children(*words: str | os.PathLike[str], recursive: bool = False) -> list[psutil.Process]:
    """Those of this process, or with all that they started, whose command lines have all of `words`."""
    return [one for one in psutil.Process().children(recursive) if _has(_words(one), words)]


def only_child(parent: int, is_it: Callable[[list[str]], object]) -> psutil.Process:
    """The child of `parent` whose command line is wanted, when there is one alone: a new one is its parent's copy.

    Raises AssertionError where there is none, or are several, for two minutes.
    """
    end = time.monotonic() + 120
    while True:
        try:
            found = [child for child in psutil.Process(parent).children() if (line := _words(child)) and is_it(line)]
        except psutil.Error:
            found = []
        if len(found) == 1:
            return found[0]
        assert time.monotonic() < end, f"{len(found)} children of {parent} are it"
        time.sleep(0.02)


def _has(line: list[str] | None, words: Sequence[str | os.PathLike[str]]) -> bool:
    """Whether a command line, None or empty where the process has ended, has all of `words`."""
    return bool(line) and all(os.fspath(word) in " ".join(line or []) for word in words)


def _runs(status: str) -> bool:
    return status not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
