"""Runs that wait for their turn on this host are served in the order in which they came.

Each has a file of its own in the queue of `measuring_runs`, whose lock it holds for as long as its process lives. The
file's name is a number, one more than the highest that is there, taken by one process at a time: no clock has a part in
the order. One goes when nothing measures and nobody waits before it, which `measuring_runs.claim` asks once more while
no other process can enter. A waiter that does not run holds nobody up:

- one that was killed or has ended has no place, as the kernel has freed its lock;
- one that is stopped (SIGSTOP, Ctrl-Z, a debugger) is passed over at once, and has its place again when it goes on;
- one that does not begin within a minute while nothing measures, as it hangs or is frozen, is passed over likewise.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from vmlab.lab.process.measuring_runs import (
    QUEUE,
    GateHeld,
    HostBusy,
    HostQueue,
    Turn,
    WaitingRun,
    clear_dead,
    gate,
    look,
    look_here,
    make_entry,
    user,
    write_entry,
)
from vmlab.model.errors import RefusedError, UsageError, in_one_line
from vmlab.system.processes import start_of
from vmlab.system.removal import remove_empty_folder

LOOK_SECONDS = 0.5
IDLE_SECONDS = 60.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands: its `place` in the `queue`, from 1."""

    queue: HostQueue
    place: int


Tell = Callable[[Standing], object]
"""Called twice a second with where the run stands."""


class Waiter:
    """A run in the queue."""

    def __init__(self, run: WaitingRun, entry: int) -> None:
        self._run, self._entry = run, entry
        self._turn = Turn(run.number)

    def note(self, **said: Any) -> None:
        """Write down fields of this `WaitingRun` for the others."""
        self._run = replace(self._run, **said)
        write_entry(self._entry, self._run)

    def turn(self, tell: Tell) -> Turn:
        """The run's turn, as soon as it has come."""
        since, last = time.monotonic(), None
        while (found := look_here(self._turn)).measuring or found.before(self._turn):
            before = found.before(self._turn)
            tell(Standing(found, len(before) + 1))
            idle = frozenset[int]()
            if found.measuring or before != last:
                since, last = time.monotonic(), before
            # Of two behind one that hangs, the first passes over it before the second passes over both.
            elif time.monotonic() - since > IDLE_SECONDS * len(before):
                idle = frozenset(one.number for one in before)
            self._turn = replace(self._turn, idle=idle)
            time.sleep(0 if idle else LOOK_SECONDS)
        return self._turn

    def leave(self) -> None:
        """Give the place up."""
        os.close(self._entry)
        clear_dead()


@contextlib.contextmanager
def in_queue(name: str) -> Iterator[Waiter]:
    """A place behind all that wait on this host now, given up at the end. Raises RefusedError where none can be had."""
    try:
        with gate() as place:
            waiter = _joined(place, name)
    except OSError as error:
        raise RefusedError(f"cannot wait for a turn on this host: {in_one_line(error)}") from error
    try:
        yield waiter
    finally:
        waiter.leave()


def _joined(place: Path, name: str) -> Waiter:
    look(place, clear=True)
    queue = place / QUEUE
    queue.mkdir(mode=0o700, exist_ok=True)
    try:
        number = max((int(path.name) for path in queue.iterdir() if path.name.isdecimal()), default=0) + 1
        run = WaitingRun(number, name, user(), os.getpid(), start_of(os.getpid()))
        return Waiter(run, make_entry(queue / str(number), run))
    except BaseException:
        remove_empty_folder(queue)
        raise


def demand_one_way(*, wait: bool, concurrent: bool) -> None:
    """Raise UsageError where a run is to wait for others and to measure beside them."""
    if wait and concurrent:
        raise UsageError("--wait and --concurrent exclude each other: a run waits for others or measures beside them")


def in_turn(
    name: str,
    attempt: Callable[[Turn], _T],
    *,
    planned: Callable[[], float],
    tell: Tell,
    heeding: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> _T:
    """What `attempt` returns, which starts the run `name` at its turn; where it raises HostBusy, the run waits on.

    `planned` gives the seconds that the run is planned for, and is asked while it has its place. All waiting is done in
    `heeding`.
    """
    with in_queue(name) as waiter:
        with heeding():
            waiter.note(planned=planned())
        while True:
            with heeding():
                turn = waiter.turn(tell)
            with contextlib.suppress(HostBusy, GateHeld):
                return attempt(turn)
