"""Runs several steps at once; when one fails, none of the others stays running.

Workloads import this, and commands that only read runs import workloads: so asyncio is imported where it runs, and
those are spared its 15 ms.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from vmlab.model.errors import DeadlineExceeded

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


@asynccontextmanager
async def within(seconds: float, late: str) -> AsyncIterator[None]:
    """A block that may take so many seconds. Raises DeadlineExceeded with the sentence `late` where it takes longer."""
    import asyncio

    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise DeadlineExceeded(late) from error


async def run_all(steps: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of `steps`, in their order. The first failure cancels the other steps and is raised unchanged.

    No step is running any more when this returns or raises. Each is cancelled once at most: a second cancellation would
    interrupt the clean-up that the first one began. A cancellation from outside is raised before failures.
    """
    import asyncio

    tasks = [asyncio.ensure_future(step) for step in steps]
    if not tasks:
        return []
    try:
        first, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await _end(tasks)
    # The step that failed first is the cause; steps that failed because they were cancelled come after it.
    in_order = sorted(tasks, key=lambda task: task not in first)
    failures = [error for task in in_order if not task.cancelled() and (error := task.exception()) is not None]
    if failures:
        raise failures[0]
    return [task.result() for task in tasks]


async def run_with_alarm(
    alarm: Coroutine[Any, Any, NoReturn], work: Coroutine[Any, Any, T], *, grace: float = 0.0
) -> T:
    """The result of `work`, or the error that `alarm` raises before `work` ends. Neither is running afterwards.

    When `work` fails, the alarm has `grace` seconds more: if it raises in that time, its error names the real cause and
    is raised instead.
    """
    import asyncio

    watching, working = asyncio.ensure_future(alarm), asyncio.ensure_future(work)
    try:
        await asyncio.wait([watching, working], return_when=asyncio.FIRST_COMPLETED)
        if not watching.done() and not working.cancelled() and working.exception() is not None:
            await asyncio.wait([watching], timeout=grace)
    finally:
        rung = watching.done()
        await _end([watching, working])
        # Only one error is raised below. Reading the other here keeps asyncio from warning about it.
        for task in (watching, working):
            with suppress(asyncio.CancelledError):
                task.exception()
    if rung and (working.cancelled() or working.exception() is not None):
        watching.result()
    return working.result()


async def _end(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel what still runs and wait for it, even when cancelled itself; CancelledError is raised at the end."""
    import asyncio

    left = {task for task in tasks if not task.done()}
    for task in left:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while left:
        try:
            _, left = await asyncio.wait(left)
        except asyncio.CancelledError as error:
            cancelled = error
            left = {task for task in left if not task.done()}
    if cancelled is not None:
        raise cancelled


async def shielded(step: Coroutine[Any, Any, T], cancelled_too: Callable[[], object] = lambda: None) -> T:
    """The result of `step`, which runs to its end even when this is cancelled; CancelledError is raised after that.

    `cancelled_too` is called when this is cancelled, and may ask `step` to end early. Only for steps with a deadline of
    their own, because they cannot be cancelled before that.
    """
    import asyncio

    task = asyncio.ensure_future(step)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
            cancelled_too()
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
