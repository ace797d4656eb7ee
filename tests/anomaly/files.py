"""Spoils file operations below one folder, at the lowest level that Python has: its audit events.

Every function of Python that opens, makes, moves or removes a file announces it with its path before it calls the
kernel, and what the hook raises is raised in its place. So nothing in the program is patched, and no way around a
patched function is missed. A hook cannot be taken away again; without an injector it does nothing.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.anomaly.injector import Injector

_NO_SPACE = {"os.mkdir", "os.rename", "write", "socket.bind"}
_NAMES = {
    "os.mkdir": "file.mkdir",
    "os.rename": "file.rename",
    "os.remove": "file.remove",
    "os.rmdir": "file.rmdir",
    "os.chmod": "file.chmod",
    "os.utime": "file.utime",
    "os.listdir": "file.list",
    "os.scandir": "file.list",
    "os.truncate": "file.truncate",
    "socket.bind": "file.socket",
    "read": "file.read",
    "write": "file.write",
}
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_now: tuple[Injector, str] | None = None
_hooked = False


@contextmanager
def spoilt_below(folder: Path, injector: Injector) -> Iterator[None]:
    """While the block runs, operations on what lies below `folder` are the injector's points."""
    global _now, _hooked
    if not _hooked:
        if sys.gettrace() is not None:
            raise RuntimeError(
                "these tests listen by an audit hook, beside which no tracer can live: run them without --cov"
            )
        sys.addaudithook(_hook)
        _hooked = True
    _now = (injector, f"{folder}/")
    try:
        yield
    finally:
        _now = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _now is None:
        return
    injector, below = _now
    if event == "open":
        path, _, flags = arguments
        what = "write" if flags & _CHANGES else "read"
    elif event == "sqlite3.connect":
        path, what = arguments[0], event
    elif event == "socket.bind":
        path, what = arguments[1], event
    elif event in _NAMES:
        path, what = arguments[0], event
        if isinstance(arguments[-1], int) and event in ("os.mkdir", "os.remove", "os.rmdir"):
            path = _absolute(path, arguments[-1])
    else:
        return
    if isinstance(path, int) and event != "open":
        path = _of_descriptor(path)
    if not isinstance(path, str | bytes | Path):
        return
    text = os.fsdecode(path)
    if not text.startswith(below):
        return
    if event == "sqlite3.connect":
        injector.blocking("store.open", lambda: sqlite3.OperationalError("unable to open database file"), text)
        return
    number = errno.ENOSPC if what in _NO_SPACE else errno.EIO
    injector.blocking(_NAMES[what], lambda: OSError(number, os.strerror(number), text), text.removeprefix(below))


def _absolute(path: Any, folder: int) -> Any:
    """A path that is told from a folder's descriptor."""
    if folder < 0 or not isinstance(path, str | bytes | Path):
        return path
    return f"{_of_descriptor(folder)}/{os.fsdecode(path)}"


def _of_descriptor(number: int) -> str:
    try:
        return str(Path(f"/proc/self/fd/{number}").readlink())
    except OSError:
        return ""
