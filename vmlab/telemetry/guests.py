"""The guests' figures as a group of the recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from vmlab.model.sample import GUESTS_DISKS_READ, GUESTS_READ
from vmlab.telemetry.guest_readings import (
    DISKS,
    QUICK,
    GuestAnswer,
    GuestCounters,
    GuestRates,
    GuestStats,
    Part,
    Timed,
)
from vmlab.telemetry.host.counter import NAN
from vmlab.telemetry.poller import Ask, Deliver, GuestPoller

_STUCK = "guest_questions_stuck"
_LONGEST_WAIT = 0.25
_MOST_DOUBT = 1 / 3
"""How much of the time between two answers may be in doubt; a rate over such a time is no further off."""


Statistics = Callable[[bool], Coroutine[Any, Any, GuestAnswer[GuestStats]]]


def asked_of_loop(statistics: Statistics, loop: asyncio.AbstractEventLoop, deadline: float = 30.0) -> Ask:
    """Puts the recorder's questions to a coroutine function of `loop`'s thread, such as ``hypervisor.domain_stats``.

    After `deadline` seconds the coroutine is cancelled, and the answer is TimeoutError. Raises RuntimeError where the
    loop has ended.
    """
    under_way: set[asyncio.Task[GuestAnswer[GuestStats]]] = set()

    async def within(whole: bool) -> GuestAnswer[GuestStats]:
        async with asyncio.timeout(deadline):
            return await statistics(whole)

    def begin(deliver: Deliver, whole: bool) -> None:
        question = loop.create_task(within(whole))
        under_way.add(question)
        question.add_done_callback(lambda done: end(done, deliver))

    def end(question: asyncio.Task[GuestAnswer[GuestStats]], deliver: Deliver) -> None:
        under_way.discard(question)
        if question.cancelled():
            deliver(RuntimeError("the question was given up"))
        elif isinstance(error := question.exception(), Exception):
            deliver(error)
        else:
            deliver(question.result())

    def ask(deliver: Deliver, whole: bool) -> None:
        loop.call_soon_threadsafe(begin, deliver, whole)

    return ask


class Guests:
    """Figures of each guest, and how many calls to the hypervisor hang (``guest_questions_stuck``).

    Each figure describes the time between two moments at which libvirt read its counters, whichever tick the answer
    came in: `Sample.span_of` gives it. It comes last of all groups: the host has been read before anything waits for
    the hypervisor.
    """

    title = "guests"

    def __init__(self, ask: Ask, interval: float) -> None:
        self._poller = GuestPoller(ask)
        self._quick = _TimedRates(QUICK)
        self._disks = _TimedRates(DISKS)
        self._patience = min(_LONGEST_WAIT, interval / 3)
        self._parts: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._anew = False
        self.names: tuple[str, ...] = (_STUCK, *GUESTS_READ, *GUESTS_DISKS_READ)

    def ask_anew(self) -> None:
        """The next reading is to be of its own moment: it asks for all guests, whatever is asked already."""
        self._anew = True

    def read_since(self, mono: float) -> tuple[float, float] | None:
        """When the newest counters of guests and of their disks were read; None while one of them is from before."""
        quick, disks = self._quick.last, self._disks.last
        if quick is None or disks is None or min(quick.asked, disks.asked) < mono:
            return None
        return quick.read_at, disks.read_at

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`; asks, and waits a little for the answer. Raises ValueError where the source failed."""
        anew, self._anew = self._anew, False
        answer = self._poller.answer(self._patience, anew=anew)
        if answer is not None and answer.error is not None:
            raise ValueError(f"the hypervisor gives no figures: {answer.error}") from answer.error
        quick, disks = (None, None) if answer is None or answer.counters is None else answer.counters.found
        # What was asked for at this moment counts, however close it is to the reading before.
        of_quick = self._quick.values(quick, mono, exact=anew)
        of_disks = self._disks.values(disks, mono, exact=anew)
        names = self._quick.names, self._disks.names
        if self._parts is None or names[0] is not self._parts[0] or names[1] is not self._parts[1]:
            self._parts = names
            self.names = (_STUCK, *GUESTS_READ, *GUESTS_DISKS_READ, *names[0], *names[1])
        return [float(self._poller.stuck), *of_quick[:2], *of_disks[:2], *of_quick[2:], *of_disks[2:]]


class _TimedRates:
    """The rates of one part of the answers, with the times between which they are."""

    def __init__(self, part: Part) -> None:
        self._rates = GuestRates(part)
        self.last: Timed[GuestCounters] | None = None
        """The newest reading that counted."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the rates."""
        return self._rates.names

    def values(self, reading: Timed[GuestCounters] | None, mono: float, *, exact: bool) -> list[float]:
        """Seconds from `mono` to the reading and from the one before to it, then the rates; NaN where none counts."""
        last = self.last
        if reading is None or not (exact or self._well_timed(reading)) or (last and reading.read_at <= last.read_at):
            return [NAN, NAN, *self._rates.unknown()]
        self.last = reading
        length = NAN if last is None else reading.read_at - last.read_at
        return [reading.read_at - mono, length, *self._rates.rates(reading.found, reading.read_at)]

    def _well_timed(self, reading: Timed[GuestCounters]) -> bool:
        """Whether the time between the last reading that counted and this one is known well enough for a rate.

        Where it is not, the next rates are over the time since the last one that counted.
        """
        if self.last is None:
            return True
        return self.last.doubt + reading.doubt <= _MOST_DOUBT * (reading.read_at - self.last.read_at)
