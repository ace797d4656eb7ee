"""The guests' figures as a group of the recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from vmlab.telemetry.guest import GuestAnswers, GuestRates, GuestStats
from vmlab.telemetry.poller import GuestPoller

_MOST_AHEAD = 0.02
_LONGEST_WAIT = 0.25


def asked_of_loop(
    statistics: Callable[[], Coroutine[Any, Any, GuestStats]], loop: asyncio.AbstractEventLoop, deadline: float = 30.0
) -> Callable[[], GuestStats]:
    """A source for the recorder from a coroutine function of `loop`'s thread, such as ``hypervisor.domain_stats``.

    The source blocks its caller, but not the loop; it raises TimeoutError after `deadline` seconds.
    """

    def source() -> GuestStats:
        question = statistics()
        try:
            asked = asyncio.run_coroutine_threadsafe(question, loop)
        except RuntimeError:
            # The loop has ended in the meantime.
            question.close()
            raise
        return asked.result(deadline)

    return source


class Guests:
    """Figures of each guest, and how many calls to the hypervisor hang (``guest_questions_stuck``).

    The hypervisor is asked a little before each tick, so that its answer is there after the host was read, and the
    recorder's thread wakes only once.
    """

    title = "guests"

    def __init__(self, source: Callable[[], GuestStats], interval: float) -> None:
        answers = GuestAnswers()
        # An answer has hundreds of objects, which are used and freed by the thread that has them in its cache.
        self._poller = GuestPoller(lambda: answers.counters(source()), interval)
        self._rates = GuestRates()
        self._ahead = min(_MOST_AHEAD, interval / 5)
        self._patience = min(_LONGEST_WAIT, interval / 3)
        self._guests: tuple[str, ...] | None = None
        self.names: tuple[str, ...] = ()

    def start(self, first_tick: float) -> None:
        """Start asking; the first tick is at `first_tick` on the monotonic clock."""
        self._poller.start(first_tick - self._ahead)

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`; waits a little for an answer that is late. Raises ValueError where the source failed."""
        answer = self._poller.answer(self._patience)
        if answer is not None and answer.error is not None:
            raise ValueError(f"the hypervisor gives no figures: {answer.error}") from answer.error
        if answer is None or answer.counters is None:
            values = self._rates.unknown()
        else:
            values = self._rates.rates(answer.counters, answer.mono)
        if self._rates.names is not self._guests:
            self._guests = self._rates.names
            self.names = ("guest_questions_stuck", *self._guests)
        return [float(self._poller.stuck), *values]

    def stop(self) -> None:
        """End the thread that asks."""
        self._poller.stop()
