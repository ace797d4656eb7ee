"""Several steps side by side, without one failure leaving others running."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(steps: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results of `steps`, in their order. The first failure cancels the others and is raised, as itself.

    Whatever ends it, no step runs on afterwards, and each is cancelled once at most: a second cancellation would tear
    it out of the clearing up that the first one made it begin. A cancellation from outside goes before failures.
    """
    tasks = [asyncio.ensure_future(step) for step in steps]
    if not tasks:
        return []
    try:
        first, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await _end(tasks)
    # Steps that failed because they were cancelled come behind the one that was the cause.
    in_order = sorted(tasks, key=lambda task: task not in first)
    failures = [error for task in in_order if not task.cancelled() and (error := task.exception()) is not None]
    if failures:
        raise failures[0]
    return [task.result() for task in tasks]


async def _end(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel what still runs, and wait for it even where this is cancelled, too; that is raised at the end."""
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
