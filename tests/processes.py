"""Processes of this machine, found by what their command lines say."""

from __future__ import annotations

import os

import psutil


def processes(*words: str | os.PathLike[str]) -> list[int]:
    """Those whose command lines have all of `words`; one that ends meanwhile is left out."""
    wanted = [os.fspath(word) for word in words]
    return [one.pid for one in psutil.process_iter() if all(word in _line(one) for word in wanted)]


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
