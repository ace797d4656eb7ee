"""Asks for the guests' figures in a separate thread, so that a guest that hangs delays nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NamedTuple

from vmlab.telemetry.clock import HostClocks
from vmlab.telemetry.guest import GuestCounters
from vmlab.telemetry.priority import take_precedence

_MOST_STUCK = 4
_PATIENCE_SECONDS = 1.0


class Answer(NamedTuple):
    """The answer of the guests' source at `mono`, or its error."""

    worker: int
    mono: float
    counters: GuestCounters | None
    error: Exception | None


class GuestPoller:
    """Asks once when it starts and then at ``first + n * interval``; `answer` returns what has arrived.

    A call that has not returned after a second is abandoned in its thread, and a new thread asks again: libvirt's
    NOWAIT then skips the guest that blocks the first call. At most four calls are abandoned; then there are no figures
    until one of them returns.
    """

    def __init__(self, source: Callable[[], GuestCounters], interval: float) -> None:
        self._source = source
        self._interval = interval
        self._first = 0.0
        self._answers: SimpleQueue[Answer] = SimpleQueue()
        self._clocks = HostClocks()
        self._worker = 0
        self._asked_at: float | None = None
        self._stuck: set[int] = set()

    def start(self, first: float) -> None:
        """Start; `first` is when to ask for the first tick, on the monotonic clock."""
        self._first = first
        self._start_worker()

    def stop(self) -> None:
        """End the thread as soon as its call returns."""
        self._clocks.stop()

    @property
    def stuck(self) -> int:
        """How many calls were abandoned and have not returned."""
        return len(self._stuck)

    def answer(self, seconds: float) -> Answer | None:
        """The newest answer that was not returned before; waits up to `seconds` for one, None where none came."""
        newest = None
        # This thread alone takes answers, so one that is there stays; an empty queue would cost an exception.
        while not self._answers.empty():
            answer = self._answers.get()
            newest = answer if self._is_wanted(answer) else newest
        if newest is not None:
            return newest
        asked_at = self._asked_at
        if asked_at is None or time.monotonic() - asked_at < _PATIENCE_SECONDS:
            return self._take(seconds)
        if len(self._stuck) < _MOST_STUCK:
            self._stuck.add(self._worker)
            self._start_worker()
        return None

    def _take(self, seconds: float) -> Answer | None:
        until = time.monotonic() + seconds
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                return None
            if self._is_wanted(answer):
                return answer

    def _is_wanted(self, answer: Answer) -> bool:
        """Whether nobody has given up waiting for it."""
        self._stuck.discard(answer.worker)
        return answer.worker == self._worker

    def _start_worker(self) -> None:
        self._worker += 1
        self._asked_at = time.monotonic()
        threading.Thread(
            target=self._work, args=(self._worker,), name=f"guest-figures-{self._worker}", daemon=True
        ).start()

    def _work(self, worker: int) -> None:
        take_precedence()
        while True:
            answer = self._ask(worker)
            if worker == self._worker:
                self._asked_at = None
            self._answers.put(answer)
            if worker != self._worker or self._clocks.sleep(self._until_next()):
                return
            self._asked_at = time.monotonic()

    def _ask(self, worker: int) -> Answer:
        try:
            counters = self._source()
        except Exception as error:  # noqa: BLE001 - whatever the source raises is told by the recorder
            return Answer(worker, time.monotonic(), None, error)
        return Answer(worker, time.monotonic(), counters, None)

    def _until_next(self) -> float:
        ahead = self._first - time.monotonic()
        return ahead if ahead > 0 else ahead % self._interval
