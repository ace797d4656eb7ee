"""Processes of this machine, found by what their command lines say."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import psutil


def processes(*words: str | os.PathLike[str]) -> list[int]:
    """Those whose command lines have all of `words`; one that ends meanwhile is left out."""
    wanted = [os.fspath(word) for word in words]
    return [one.pid for one in psutil.process_iter() if all(word in _line(one) for word in wanted)]


def only_child(parent: int, is_it: Callable[[list[str]], object]) -> psutil.Process:
    """The child of `parent` whose command line is wanted, when there is one alone: a new one is its parent's copy.

    Raises AssertionError where there is none, or are several, for two minutes.
    """
    end = time.monotonic() + 120
    while True:
        try:
            found = [child for child in psutil.Process(parent).children() if is_it(child.cmdline())]
        except psutil.Error:
            found = []
        if len(found) == 1:
            return found[0]
        assert time.monotonic() < end, f"{len(found)} children of {parent} are it"
        time.sleep(0.02)


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
