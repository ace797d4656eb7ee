"""How long a command takes from the start of its process to its end, beside others in the same run."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Timed:
    """Milliseconds of the wall clock and of CPU, its children's included, one for each time."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, others: Timed) -> None:
        """Take those of `others`, too."""
        self.wall += others.wall
        self.cpu += others.cpu

    def __str__(self) -> str:
        wall, cpu = statistics.median(self.wall), statistics.median(self.cpu)
        return f"{wall:.0f} ms | {min(self.wall):.0f} ms | {cpu:.0f} ms"


def heading() -> str:
    """The first lines of a table of `Timed`."""
    what = f"what, {os.cpu_count()} CPUs, load before {os.getloadavg()[0]:.1f}"
    return f"| {what} | median | least | CPU |\n| --- | ---: | ---: | ---: |"


def in_turn(commands: Mapping[str, Sequence[str]], times: int) -> dict[str, Timed]:
    """Each of `commands` so many times, in turn, so that what else the machine does falls on all of them.

    Raises CalledProcessError for one that fails.
    """
    found = {name: Timed() for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            before, began = _cpu(), time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            passed = time.perf_counter() - began
            found[name].add(Timed([passed * 1e3], [(_cpu() - before) * 1e3]))
    return found


def _cpu() -> float:
    """Seconds of CPU that children took which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
