"""A run's events and raw output on their way to its store; a thread writes them in order, so no run waits for a disk.

While the store cannot be written, as on a full disk, they wait in memory and are tried again; there are a few events a
second. A process that is killed loses the events of its last milliseconds; where that matters, `settled` waits for
them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from functools import partial
from queue import SimpleQueue
from typing import Any, NoReturn

from vmlab.model.errors import StoreError
from vmlab.model.event import Event
from vmlab.model.results import RawOutput
from vmlab.store.writer import RunWriter, UnreadableEventError
from vmlab.system.held_folder import FolderLostError, why_lost

PATIENCE_SECONDS = 10.0
HANG_SECONDS = 60.0
_AGAIN_SECONDS = 0.25
_LOOK_SECONDS = 1.0

_Step = Callable[[], object]


class Outbox:
    """Takes events and raw output for `writer` from any thread, and never blocks the caller.

    When something could not be written for `patience` seconds, `overdue` raises; writing is still tried again. It also
    raises when one attempt does not return for `hang` seconds, which is longer because a disk under measurement may be
    slow, and when a folder that this process works in is lost (`held_folder`).
    """

    def __init__(self, writer: RunWriter, *, patience: float = PATIENCE_SECONDS, hang: float = HANG_SECONDS) -> None:
        self.writer = writer
        self._patience = patience
        self._hang = hang
        self._begun: float | None = None
        self._waiting: SimpleQueue[_Step | None] = SimpleQueue()
        self._overdue: Future[NoReturn] = Future()
        self._unwritten = 0
        self._gave_up = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="outbox", daemon=True)
        self._thread.start()

    def append(self, event: Event) -> None:
        """Keep one event."""
        self._waiting.put(partial(self.writer.append, event))

    def raw(self, cell: int, output: RawOutput) -> None:
        """Keep what a tool printed."""
        self._waiting.put(partial(self.writer.raw, cell, output))

    async def settled(self) -> None:
        """Return when everything so far is in the store's file, with fsync. Do not call it while work is measured."""
        done: Future[None] = Future()
        self._waiting.put(partial(self._settle, done))
        await _end_seen(done).wait()

    def _settle(self, done: Future[None]) -> None:
        # Where that fails nothing is lost: readers read the log too, and it is folded in later.
        with contextlib.suppress(StoreError):
            self.writer.checkpoint()
        done.set_result(None)

    async def overdue(self) -> NoReturn:
        """Wait, and raise StoreError once something could not be written for too long, or can never be written."""
        rung = _end_seen(self._overdue)
        while not rung.is_set():
            # A thread that hangs cannot report it, so the age of its attempt is checked here.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(_LOOK_SECONDS, self._hang)):
                    await rung.wait()
            if why := why_lost():
                self._alarm(FolderLostError(why))
            begun = self._begun
            if begun is not None and time.monotonic() - begun >= self._hang:
                self._alarm(StoreError(f"cannot write {self.writer.path}: an attempt has hung for {self._hang:g} s"))
        self._overdue.result()
        raise AssertionError("an alarm has no result")

    def trouble(self) -> StoreError | None:
        """The error that `overdue` raises or has raised; None while there is none."""
        error = self._overdue.exception() if self._overdue.done() else None
        return error if isinstance(error, StoreError) else None

    def close(self, deadline: float = PATIENCE_SECONDS) -> None:
        """Write what is left, for `deadline` seconds at most, and end; a second call does nothing.

        Raises StoreError, with how many events were lost, where it could not be written. The writer stays open.
        """
        self._waiting.put(None)
        self._thread.join(deadline)
        self._gave_up.set()
        # One last attempt, without waiting.
        self._thread.join(_AGAIN_SECONDS + deadline)
        if self._unwritten or self._thread.is_alive():
            lost = "1 event is lost" if self._unwritten == 1 else f"{self._unwritten or 'some'} events are lost"
            raise StoreError(f"{self.writer.path} could not be written to its end: {lost}")

    def _write_all(self) -> None:
        while (step := self._waiting.get()) is not None:
            self._write(step)

    def _write(self, step: _Step) -> None:
        since = time.monotonic()
        while True:
            self._begun = time.monotonic()
            try:
                step()
                return
            except UnreadableEventError as error:
                self._alarm(error)
                self._unwritten += 1
                return
            except StoreError as error:
                if time.monotonic() - since >= self._patience:
                    self._alarm(error)
                if self._gave_up.is_set():
                    self._unwritten += 1
                    return
            except Exception as error:  # noqa: BLE001 - what can never be written is reported, and the rest goes on
                self._alarm(StoreError(f"cannot write {self.writer.path}: {error}"))
                self._unwritten += 1
                return
            finally:
                self._begun = None
            self._gave_up.wait(_AGAIN_SECONDS)

    def _alarm(self, error: StoreError) -> None:
        # Both threads may set the result.
        with contextlib.suppress(InvalidStateError):
            self._overdue.set_exception(error)


def _end_seen(future: Future[Any]) -> asyncio.Event:
    """Set when another thread has finished it, with or without an error."""
    loop = asyncio.get_running_loop()
    heard = asyncio.Event()

    def set_result(_future: Future[Any]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(heard.set)

    future.add_done_callback(set_result)
    return heard
