"""The guests' figures as a group of the recorder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar

from vmlab.model.sample import GUESTS_DISKS_READ, GUESTS_READ
from vmlab.telemetry.guest_readings import (
    DISKS,
    QUICK,
    GuestAnswer,
    GuestAnswers,
    GuestCounters,
    GuestRates,
    GuestStats,
    Part,
    Timed,
)
from vmlab.telemetry.source import NAN

_MOST_STUCK = 4
_PATIENCE_SECONDS = 1.0

Found = TypeVar("Found")
"""What the hypervisor answers."""
Cut = TypeVar("Cut")
"""What is kept of it."""


class Answer(NamedTuple, Generic[Cut]):
    """The answer to a question, with the times of question and answer, or its error."""

    question: int
    counters: Timed[Cut] | None
    error: Exception | None


class Poller(Generic[Found, Cut]):
    """Asks each time that `answer` is called. All but what `ask` is given to deliver with is for one thread.

    `ask` puts one question and returns at once; the answer may come before it returns, later, or never, in any thread.
    With True it is to be of all guests, if one of them is busy too. `cut` takes from an answer what is needed of it. A
    question without an answer after `patience` seconds is left behind, and the next tick asks again: libvirt's NOWAIT
    then skips the guest that holds up the first one. At most four are left behind; then there are no figures until one
    of them is answered.
    """

    def __init__(
        self,
        ask: Callable[[Callable[[Found | Exception], None], bool], None],
        cut: Callable[[Found], Cut],
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self._ask = ask
        self._cut = cut
        self._patience = patience
        self._answers: SimpleQueue[Answer[Cut]] = SimpleQueue()
        self._question = 0
        self._asked_at: float | None = None
        self._stuck: set[int] = set()

    @property
    def stuck(self) -> int:
        """How many questions were left behind and have no answer yet."""
        return len(self._stuck)

    def answer(self, seconds: float, *, anew: bool = False) -> Answer[Cut] | None:
        """The newest answer that was not returned before; waits up to `seconds` for one, None where none came.

        With `anew` a question is put now, also where the one before is under way, whose answer is not waited for then.
        """
        late = None
        # This thread alone takes answers, so one that is there stays; an empty queue would cost an exception.
        while not self._answers.empty():
            late = self._wanted(self._answers.get()) or late
        if self._asked_at is not None:
            if not anew and time.monotonic() - self._asked_at < self._patience:
                return self._wait(seconds)
            self._stuck.add(self._question)
            self._asked_at = None
        if len(self._stuck) >= _MOST_STUCK:
            return late
        self._question += 1
        self._asked_at = time.monotonic()
        try:
            self._ask(partial(self._deliver, self._question, self._asked_at), anew)
        except Exception as error:  # noqa: BLE001 - the recorder reports whatever the source raises
            self._deliver(self._question, self._asked_at, error)
        return self._wait(seconds) or late

    def _wait(self, seconds: float) -> Answer[Cut] | None:
        until = time.monotonic() + seconds
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                return None
            if self._wanted(answer):
                return answer

    def _wanted(self, answer: Answer[Cut]) -> Answer[Cut] | None:
        """The answer, where nobody has given up waiting for it."""
        self._stuck.discard(answer.question)
        if answer.question != self._question:
            return None
        self._asked_at = None
        return answer

    def _deliver(self, question: int, asked: float, found: Found | Exception) -> None:
        """Keep what came of a `question`, cut down in the thread that has its hundreds of objects in its cache."""
        given = time.monotonic()
        if isinstance(found, Exception):
            self._answers.put(Answer(question, None, found))
            return
        try:
            answer = Answer(question, Timed(asked, given, self._cut(found)), None)
        except Exception as error:  # noqa: BLE001 - the recorder reports an unexpected form too
            answer = Answer(question, None, error)
        self._answers.put(answer)


_STUCK = "guest_questions_stuck"
_LONGEST_WAIT = 0.25
_MOST_DOUBT = 1 / 3
"""How much of the time between two answers may be in doubt; a rate over such a time is no further off."""

Deliver = Callable[[GuestAnswer[GuestStats] | Exception], None]
"""Takes the answer to one question, or its error, in any thread."""
Ask = Callable[[Deliver, bool], None]
"""See `Poller`."""
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
        self._poller = Poller(ask, GuestAnswers().cut)
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
            raise ValueError(f"the hypervisor gives no metrics: {answer.error}") from answer.error
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
