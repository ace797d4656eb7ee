"""Long loops: how they are stopped, and how they say how far they are.

Whatever reads, copies, packs, digests or compares a file that may be long keeps to these rules:

- It works in pieces, and calls `LongWork.step` between two of them, with the bytes that it has done since. An error
  that `step` raises, as when a signal came, ends the loop within a piece's time; so does an exception of a handler.
- Holes are not read: a sparse file takes as long as what is stored in it.
- What cannot be divided, such as a question to SQLite, runs in a thread meanwhile (`beside`).
- Who began a file removes it when the loop ends with an error.

A command that shows its work makes it the `current` one, which loops take where they are given no other.
"""

from __future__ import annotations

import errno
import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO, TypeVar

PIECE = 2**20
"""Bytes that are read, written or digested at a time: some milliseconds."""

_POLL_SECONDS = 0.05
_LETS_GO_SECONDS = 0.5
T = TypeVar("T")


def _nothing() -> None:
    """The check of work that nothing stops."""


class LongWork:
    """Work as far as it has come. By itself it is silent; a subclass shows what it is told.

    `words` names the stage for people. `done` of `total` steps are done, mostly bytes; `total` is 0 where it is not
    known. `check` is called before each step, and raises where the work is to end.
    """

    def __init__(self, check: Callable[[], object] = _nothing) -> None:
        self.check = check
        self.words = ""
        self.total = self.done = 0.0
        self.unit = "B"

    def begin(self, words: str, total: float = 0.0, unit: str = "B") -> None:
        """A stage begins, of `total` bytes, or steps of another `unit`."""
        self.check()
        self.words, self.total, self.done, self.unit = words, total, 0.0, unit
        self.begun()

    def step(self, count: float = 0.0) -> None:
        """So much more is done. Raises what `check` raises."""
        self.check()
        self.done += count
        self.moved()

    def begun(self) -> None:
        """Called when a stage has begun."""

    def moved(self) -> None:
        """Called after each step."""

    def over(self) -> None:
        """Called when all work has ended, however it did."""


_CURRENT: ContextVar[LongWork | None] = ContextVar("long work", default=None)


def current() -> LongWork:
    """The work that is shown now; a silent one where none is."""
    return _CURRENT.get() or LongWork()


@contextmanager
def as_current(work: LongWork) -> Iterator[LongWork]:
    """In this block, of this thread, `work` is the current one; it is over afterwards."""
    token = _CURRENT.set(work)
    try:
        yield work
    finally:
        _CURRENT.reset(token)
        work.over()


@contextmanager
def checked_by(check: Callable[[], object]) -> Iterator[LongWork]:
    """In this block, of this thread, the current work is ended by `check`, too."""
    work = _CURRENT.get() or LongWork()
    token, before = _CURRENT.set(work), work.check

    def both() -> None:
        before()
        check()

    work.check = both
    try:
        yield work
    finally:
        work.check = before
        _CURRENT.reset(token)


def until(stopped: Callable[[], bool]) -> LongWork:
    """Silent work that ends with InterruptedError once `stopped` is true."""

    def check() -> None:
        if stopped():
            raise InterruptedError("it was stopped")

    return LongWork(check)


def pieces(file: BinaryIO, work: LongWork | None = None, length: int = PIECE) -> Iterator[bytes]:
    """The content of an open file from its beginning, in parts of `length` bytes, the last one of the rest.

    One that is all hole is not read, and is `zeros` itself. Each part is a step when the next one is asked for.
    """
    work = work or current()
    at, size, data_from = 0, os.fstat(file.fileno()).st_size, 0
    while True:
        if data_from <= at:
            data_from = _next_data(file.fileno(), at, size)
        data = zeros(length) if at + length <= min(data_from, size) else _read(file, at, length, work)
        if not data:
            return
        yield data
        at += len(data)
        work.step(len(data))


@functools.lru_cache(8)
def zeros(length: int) -> bytes:
    """So many of them, as one object."""
    return bytes(length)


def _read(file: BinaryIO, at: int, length: int, work: LongWork) -> bytes:
    """Up to `length` bytes from byte `at` on, a piece at a time, as a disk may be slow."""
    file.seek(at)
    found = [file.read(min(PIECE, length))]
    while found[-1] and (left := length - sum(map(len, found))) > 0:
        work.step()
        found.append(file.read(min(PIECE, left)))
    return b"".join(found)


def copied(source: BinaryIO, target: Path, work: LongWork | None = None) -> None:
    """Copy an open file into a new one; parts that are all hole stay holes. Raises OSError, and removes nothing."""
    with target.open("xb") as copy:
        for data in pieces(source, work):
            if data is zeros(len(data)):
                copy.seek(len(data), os.SEEK_CUR)
            else:
                copy.write(data)
        copy.truncate()


def _next_data(file: int, at: int, size: int) -> int:
    """Where the next part of a file begins that is no hole; its end where none does."""
    try:
        return os.lseek(file, at, os.SEEK_DATA)
    except OSError as error:
        # A file system that knows no holes, or nothing but a hole up to the end.
        return size if error.errno == errno.ENXIO else at


def beside(call: Callable[[], T], give_up: Callable[[], object] = _nothing) -> T:
    """The result of `call`, which cannot be divided: it runs in a thread, and steps are made meanwhile.

    When the work is to end, `give_up` is called, and `call` is waited for no longer than half a second.
    """
    work, result = current(), Future[T]()
    thread = threading.Thread(target=fill, args=(result, call), name="long-work", daemon=True)
    try:
        # The handler of a signal may raise while it starts, too.
        thread.start()
        while True:
            try:
                return result.result(_POLL_SECONDS)
            except NotYet:
                # The call may have ended since, also with an error of this kind.
                if result.done():
                    return result.result()
            work.step()
    except BaseException:
        if not result.done():
            give_up()
            if thread.ident is not None:
                thread.join(_LETS_GO_SECONDS)
        raise


def fill(result: Future[T], call: Callable[[], T]) -> None:
    """Have what it returns or raises in `result`, unless that was cancelled before; for a thread of its own."""
    if not result.set_running_or_notify_cancel():
        return
    try:
        result.set_result(call())
    except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
        result.set_exception(error)
