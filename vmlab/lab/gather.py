"""Many things at once, without one failure leaving others running."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def run_all(work: Iterable[Coroutine[Any, Any, Any]]) -> None:
    """Run all to their end; the first failure cancels the rest and is raised as itself, not as a group."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
