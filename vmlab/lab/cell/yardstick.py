"""How fast the host is just now: a fixed piece of work, measured before and after each cell."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.errors import VmlabError

_PROGRAM = Path(__file__).with_name("payload") / "yardstick.py"
_RESULT = 13835815841163728378
"""What the work gives on every machine."""
_KILL_SECONDS = 10.0


class YardstickError(VmlabError):
    """The work could not be done."""


class WrongResult(YardstickError):
    """The work gave another result than it gives everywhere: this machine does not calculate reliably."""


@dataclass(frozen=True, slots=True)
class Yardstick:
    """One reading. Both parts are seconds of the wall clock, `cpu_seconds` is the CPU time that they took together."""

    compute_seconds: float
    memory_seconds: float
    cpu_seconds: float

    @property
    def seconds(self) -> float:
        """Both parts together."""
        return self.compute_seconds + self.memory_seconds


Measure = Callable[[float], Awaitable[Yardstick]]
"""Measures once, within a number of seconds; see `measure_yardstick`."""


async def measure_yardstick(deadline: float) -> Yardstick:
    """Do the work once, in a process of its own at the priority of this one.

    Raises WrongResult, and YardstickError or OSError where it could not be done.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", str(_PROGRAM)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(deadline):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise YardstickError(f"it took longer than {deadline:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            async with asyncio.timeout(_KILL_SECONDS):
                await process.wait()
    if process.returncode != 0:
        words = err.decode("utf-8", "replace").strip().splitlines()
        raise YardstickError(f"it exited with {process.returncode}: {words[-1] if words else 'without a word'}")
    taken = json.loads(out)
    if taken.pop("result") != _RESULT:
        raise WrongResult("its result is wrong: this machine does not calculate reliably")
    return Yardstick(**taken)
