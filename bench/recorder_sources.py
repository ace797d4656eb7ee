"""What each source of the recorder's figures costs: ``python -m bench.recorder_sources`` prints a table.

CPU is that of the source's thread while it works, on a quiet host and with other work that empties the caches between
the ticks. System calls and bytes are counted in a second recording, under strace. The guests are SYNTHETIC, as in
``bench.telemetry``; the network is the lab's bridge with a port for each guest. It needs root, iproute2 and strace.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench.busy import busy
from bench.support.source_meter import MARK, WHOLE
from bench.telemetry import GUESTS, WARM_UP, machine

REST = "waking, clocks, the sample itself"
_TRANSFERS = frozenset({"read", "pread64", "write", "pwrite64"})
_LINE = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)(.*)")
_RESULT = re.compile(r"= (\d+)$")


@dataclass
class Recorded:
    """One recording: its ticks, and CPU nanoseconds by source, the whole process among them."""

    ticks: int
    nanoseconds: dict[str, int]

    def microseconds(self, source: str) -> float:
        """CPU of one tick; what belongs to no source for `REST`."""
        used = self.nanoseconds.get(source, 0)
        if source == REST:
            used = 2 * self.nanoseconds[WHOLE] - sum(self.nanoseconds.values())
        return used / self.ticks / 1e3


@dataclass
class Calls:
    """System calls, and bytes that they read or wrote, by source."""

    calls: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)


def record(interval: float, seconds: float, folder: Path, trace: Path | None = None) -> Recorded:
    """Record for so long in a process of its own; under strace where a file for its trace is given."""
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(proc, True)
    command = [
        *([] if trace is None else ["strace", "-f", "-s", "64", "-o", str(trace)]),
        *("unshare", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"),
        *(sys.executable, "-m", "bench.support.source_meter", str(folder / "sources.db"), f"/proc/self/fd/{proc}"),
        *("--interval", f"{interval:g}", "--guests", str(GUESTS), "--warm-up", f"{WARM_UP:g}"),
        *("--seconds", f"{seconds:g}", *([] if trace is None else ["--marks"])),
    ]
    try:
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, pass_fds=[proc]).stdout
    finally:
        os.close(proc)
        for left in folder.glob("sources.db*"):
            left.unlink()
    found = json.loads(said)
    return Recorded(found["ticks"], found["nanoseconds"])


def calls_of(lines: Iterable[str]) -> Calls:
    """What each source called between the two marks of the whole, from a trace; in its own thread, marks left out."""
    found = Calls()
    now: dict[str, str] = {}
    threads: dict[str, Calls] = {}
    counted = False
    for line in lines:
        seen = _LINE.match(line.rstrip("\n"))
        if seen is None:
            continue
        thread, call, rest = seen.groups()
        if call == "access" and MARK in rest:
            name = rest.split(MARK, 1)[1].split('"', 1)[0]
            if name == WHOLE:
                counted = not counted
            else:
                now[thread] = name or REST
            continue
        if not counted:
            continue
        source = now.get(thread, REST)
        mine = threads.setdefault(thread, Calls())
        if " resumed>" not in rest:
            mine.calls[source] += 1
        if call in _TRANSFERS and (result := _RESULT.search(rest)):
            mine.bytes[source] += int(result[1])
    # Threads without a source are those of other processes, and the one that waits for the end.
    for thread, its in threads.items():
        if thread in now:
            found.calls.update(its.calls)
            found.bytes.update(its.bytes)
    return found


def table(quiet: Recorded, loaded: Recorded, traced: Recorded, calls: Calls) -> Iterable[str]:
    """The rows, the most expensive source first."""
    yield "| source | quiet | share | under load | share | system calls | bytes |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    sources = sorted({*quiet.nanoseconds, REST} - {WHOLE}, key=quiet.microseconds, reverse=True)
    for source in (*sources, WHOLE):
        cells = []
        for one in (quiet, loaded):
            cells += [f"{one.microseconds(source):.0f} µs", f"{one.microseconds(source) / one.microseconds(WHOLE):.0%}"]
        counts = [
            (sum(kind.values()) if source == WHOLE else kind[source]) / traced.ticks
            for kind in (calls.calls, calls.bytes)
        ]
        yield f"| {source} | {' | '.join(cells)} | {counts[0]:.1f} | {counts[1]:,.0f} |"


def main() -> None:
    """Record three times and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds from tick to tick")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each recording is")
    parser.add_argument("--load", type=int, default=10, help="processes that keep the host busy")
    asked = parser.parse_args()
    if shutil.which("strace") is None:
        sys.exit("strace is missing: apt-get install strace")
    print(f"{machine()}; CPU of a tick, {1 / asked.interval:g} Hz, {GUESTS} synthetic guests, load {asked.load}\n")
    with tempfile.TemporaryDirectory(prefix="vmlab-bench-") as place:
        folder = Path(place)
        quiet = record(asked.interval, asked.seconds, folder)
        with busy(asked.load, asked.seconds + 60):
            loaded = record(asked.interval, asked.seconds, folder)
        trace = folder / "trace"
        traced = record(asked.interval, min(asked.seconds, 20 * asked.interval), folder, trace)
        with trace.open(errors="replace") as lines:
            calls = calls_of(lines)
    print("\n".join(table(quiet, loaded, traced, calls)))


if __name__ == "__main__":
    main()
