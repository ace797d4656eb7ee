"""The recorder with a meter around each source of its figures; ``bench.recorder_sources`` runs it.

It runs in namespaces of its own, as a lab does, and makes the lab's bridge with a port for each guest there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.support import recorder_process
from vmlab.model.names import BRIDGE
from vmlab.telemetry import recorder
from vmlab.telemetry.guest_readings import GuestAnswers
from vmlab.telemetry.guests import Guests
from vmlab.telemetry.host.host_figures import Group, Watched, host_groups
from vmlab.telemetry.recorder import Recorder
from vmlab.telemetry.source import Roots

MARK = "/source/"
"""Begins the path that is asked for, and exists nowhere, where the meter only marks: for a trace of system calls."""
ASKING, COUNTERS, STORING = "the guests' source (synthetic)", "guests' counters", "storing"
WHOLE = "whole"


class _Now(threading.local):
    """Of one thread: nanoseconds of the sources that the current one has called, and the current one's name."""

    inside = 0
    source = ""


class Meter:
    """Adds up the CPU time of each source's thread while it works, or only marks where that begins and ends.

    What a source calls that is a source itself is counted there alone.
    """

    def __init__(self, *, marks: bool) -> None:
        self.marks = marks
        self.nanoseconds: Counter[str] = Counter()
        self._now = _Now()
        self.ticks = 0
        self._began = 0

    def begin(self) -> None:
        """Start counting from here."""
        self.nanoseconds.clear()
        self.ticks = 0
        self._began = time.process_time_ns()
        self._mark(WHOLE)

    def end(self) -> dict[str, int]:
        """Nanoseconds of each source and of the ``whole`` process since `begin`."""
        self._mark(WHOLE)
        return {**self.nanoseconds, WHOLE: time.process_time_ns() - self._began}

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, counted under `name`."""

        def timed(*arguments: Any) -> Any:
            outside, self._now.inside = self._now.inside, 0
            began = time.thread_time_ns()
            try:
                return call(*arguments)
            finally:
                took = time.thread_time_ns() - began
                self.nanoseconds[name] += took - self._now.inside
                self._now.inside = outside + took

        def marked(*arguments: Any) -> Any:
            outside, self._now.source = self._now.source, name
            self._mark(name)
            try:
                return call(*arguments)
            finally:
                self._now.source = outside
                self._mark(outside)

        return marked if self.marks else timed

    def _mark(self, name: str) -> None:
        if self.marks:
            os.access(MARK + name, os.F_OK)


class Metered:
    """A group of figures with the meter around its readings."""

    def __init__(self, group: Group, meter: Meter) -> None:
        self._group = group
        self.title = group.title
        self.read = meter.around(group.title, group.read)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the group."""
        return self._group.names


def metered_recorder(meter: Meter, host_proc: Path) -> Callable[..., Recorder]:
    """Makes a recorder like any other, with `meter` around all that it calls, and with the lab's network."""
    groups_of = host_groups

    def groups(*arguments: Any) -> list[Metered]:
        return [Metered(group, meter) for group in groups_of(*arguments)]

    class MeteredGuests(Guests):
        def read(self, mono: float, length: float) -> list[float]:
            meter.ticks += 1
            figures: list[float] = meter.around(self.title, super().read)(mono, length)
            return figures

    def make(interval: float, sink: Any, watched: Watched, guests: Any) -> Recorder:
        patch.object(GuestAnswers, "counters", meter.around(COUNTERS, GuestAnswers.counters)).start()
        with patch.multiple(recorder, host_groups=groups, Guests=MeteredGuests):
            host = watched._replace(network=BRIDGE, roots=Roots(host_proc=host_proc))
            return Recorder(interval, meter.around(STORING, sink), host, meter.around(ASKING, guests))

    return make


def make_network(ports: int) -> None:
    """The bridge of a lab with so many ports, in the network namespace of this process."""
    commands = [f"link add {BRIDGE} type bridge"]
    for number in range(ports):
        commands += [f"tuntap add tap{number} mode tap", f"link set tap{number} master {BRIDGE}"]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)


def main() -> None:
    """Record for a while; one line of JSON on standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("host_proc", type=Path)
    parser.add_argument("--interval", type=float, required=True)
    parser.add_argument("--guests", type=int, required=True)
    parser.add_argument("--warm-up", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--marks", action="store_true")
    asked = parser.parse_args()
    meter = Meter(marks=asked.marks)
    found: dict[str, int] = {}

    def wait() -> None:
        time.sleep(asked.warm_up)
        meter.begin()
        time.sleep(asked.seconds)
        found.update(meter.end())

    make_network(asked.guests)
    make = metered_recorder(meter, asked.host_proc)
    recorder_process.main(asked.interval, asked.store, asked.guests, make=make, wait=wait)
    print(json.dumps({"ticks": meter.ticks, "nanoseconds": found}))


if __name__ == "__main__":
    main()
