"""The guests' figures as a group of the recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from vmlab.telemetry.guest_readings import GuestCounters, GuestRates, GuestStats
from vmlab.telemetry.poller import Answer, Ask, Deliver, GuestPoller

_LONGEST_WAIT = 0.25
_MOST_DOUBT = 1 / 3
"""How much of the time between two answers may be in doubt; a rate over such a time is no further off."""


def asked_of_loop(
    statistics: Callable[[], Coroutine[Any, Any, GuestStats]], loop: asyncio.AbstractEventLoop, deadline: float = 30.0
) -> Ask:
    """Puts the recorder's questions to a coroutine function of `loop`'s thread, such as ``hypervisor.domain_stats``.

    After `deadline` seconds the coroutine is cancelled, and the answer is TimeoutError. Raises RuntimeError where the
    loop has ended.
    """
    under_way: set[asyncio.Task[GuestStats]] = set()

    async def within() -> GuestStats:
        async with asyncio.timeout(deadline):
            return await statistics()

    def begin(deliver: Deliver) -> None:
        question = loop.create_task(within())
        under_way.add(question)
        question.add_done_callback(lambda done: end(done, deliver))

    def end(question: asyncio.Task[GuestStats], deliver: Deliver) -> None:
        under_way.discard(question)
        if question.cancelled():
            deliver(RuntimeError("the question was given up"))
        elif isinstance(error := question.exception(), Exception):
            deliver(error)
        else:
            deliver(question.result())

    def ask(deliver: Deliver) -> None:
        loop.call_soon_threadsafe(begin, deliver)

    return ask


class Guests:
    """Figures of each guest, and how many calls to the hypervisor hang (``guest_questions_stuck``).

    It comes last of all groups: the host has been read before anything waits for the hypervisor.
    """

    title = "guests"

    def __init__(self, ask: Ask, interval: float) -> None:
        self._poller = GuestPoller(ask)
        self._rates = GuestRates()
        self._last: Answer[GuestCounters] | None = None
        self._patience = min(_LONGEST_WAIT, interval / 3)
        self._guests: tuple[str, ...] | None = None
        self.names: tuple[str, ...] = ()

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`; asks, and waits a little for the answer. Raises ValueError where the source failed."""
        answer = self._poller.answer(self._patience)
        if answer is not None and answer.error is not None:
            raise ValueError(f"the hypervisor gives no figures: {answer.error}") from answer.error
        if answer is None or answer.counters is None or not self._well_timed(answer):
            values = self._rates.unknown()
        else:
            values = self._rates.rates(answer.counters, answer.read_at)
            self._last = answer
        if self._rates.names is not self._guests:
            self._guests = self._rates.names
            self.names = ("guest_questions_stuck", *self._guests)
        return [float(self._poller.stuck), *values]

    def _well_timed(self, answer: Answer[GuestCounters]) -> bool:
        """Whether the time between the last answer that was used and this one is known well enough for a rate.

        Where it is not, the next answer's rates are over the time since the last one that was.
        """
        if self._last is None:
            return True
        return self._last.doubt + answer.doubt <= _MOST_DOUBT * (answer.read_at - self._last.read_at)
