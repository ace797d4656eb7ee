"""Waiting for the thing itself, with a deadline that only a test that fails reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress


async def until(holds: Callable[[], object], what: str, deadline: float = 120.0) -> None:
    """Wait until `holds` does; it may assert, too. Raises AssertionError, with `what`, after `deadline` seconds."""
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        with suppress(AssertionError):
            if holds():
                return
        await asyncio.sleep(0.02)
    raise AssertionError(f"never happened: {what}")
