"""Asks for the guests' figures at each tick, and waits for an answer only for a while: a guest may hang."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, TypeVar

from vmlab.telemetry.guest_readings import GuestAnswer, GuestAnswers, GuestCounters, GuestStats, Timed

_MOST_STUCK = 4
_PATIENCE_SECONDS = 1.0

Found = TypeVar("Found")
"""What the hypervisor answers."""
Cut = TypeVar("Cut")
"""What is kept of it."""
Deliver = Callable[[GuestAnswer[GuestStats] | Exception], None]
"""Takes the answer to one question, or its error, in any thread."""
Ask = Callable[[Deliver, bool], None]
"""Puts one question to the hypervisor and returns at once. The answer may come before it returns, later, or never. With
True it is to have the counters of all guests, if one of them is busy too.
"""


class Answer(NamedTuple, Generic[Cut]):
    """The answer to a question, with the times of question and answer, or its error."""

    question: int
    counters: Timed[Cut] | None
    error: Exception | None


class Poller(Generic[Found, Cut]):
    """Asks each time that `answer` is called. All but what `ask` is given to deliver with is for one thread.

    `cut` takes from an answer what is needed of it. A question without an answer after `patience` seconds is left
    behind, and the next tick asks again: libvirt's NOWAIT then
    skips the guest that holds up the first one. At most four are left behind; then there are no figures until one of
    them is answered.
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


class GuestPoller(Poller[GuestAnswer[GuestStats], GuestAnswer[GuestCounters]]):
    """Asks for the lab's guests."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask, GuestAnswers().cut)
