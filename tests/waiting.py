"""Waiting for the thing itself, with a deadline that only a test that fails reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any


async def until(
    holds: Callable[[], object], what: str, deadline: float = 120.0, run: asyncio.Task[Any] | None = None
) -> None:
    """Wait until `holds` does; it may assert, too.

    Raises AssertionError, with `what`, after `deadline` seconds, and as soon as `run` has ended without it.
    """
    end, pause = time.monotonic() + deadline, 0.01
    while time.monotonic() < end:
        ended = run is not None and run.done()
        with suppress(AssertionError):
            if holds():
                return
        if run is not None and ended:
            raise AssertionError(f"never happened: {what}; the run ended before: {run.exception() or run.result()}")
        await asyncio.sleep(pause)
        # To ask takes CPU time, of a screen milliseconds, which on a busy machine is just what is waited for.
        pause = min(1.5 * pause, 0.05)
    raise AssertionError(f"never happened: {what}")
