"""Which of the tests' processes get the CPUs first."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LAST_NICE = 8
"""Of what leaves the CPUs to real guests."""


def be_nice(nice: int) -> None:
    """Give this process and its session a nice value.

    Where the kernel shares the CPUs between sessions (sched_autogroup), that of a process counts within its own alone.
    """
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(nice))


def stay_nice() -> None:
    """Have the session in which this process has been put be as nice as what started it."""
    be_nice(os.getpriority(os.PRIO_PROCESS, 0))
