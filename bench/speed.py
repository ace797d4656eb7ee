"""The speed trace: CPU time of its probe, and what a busy CPU does with it beside what it does while it is stopped.

    python -m bench.speed [--seconds 200]

A process on each CPU counts rounds of a loop in shared memory. The probe is stopped and continued in turns, in the
order A B B A, each for a fifth of a second; the ratio is that of rounds with the probe to rounds without, in each
four turns.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import signal
import statistics
import struct
import time
from pathlib import Path

from vmlab.telemetry.speed import CpuSpeed

_TURN = 0.2
_RESAMPLES = 2000


def _count(place: int, cpu: int, counts: mmap.mmap) -> None:
    """Count for ever, on one CPU."""
    os.sched_setaffinity(0, {cpu})
    rounds = 0
    while True:
        total = 0
        for number in range(1000):
            total += number
        rounds += 1
        struct.pack_into("Q", counts, 8 * place, rounds)


def _cpu_ns(process: int) -> list[int]:
    """CPU time of each thread of a process, ns."""
    tasks = Path(f"/proc/{process}/task")
    return [int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()]


def main() -> None:
    """Print both figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=200.0)
    asked = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    group = CpuSpeed(print)
    group.start()
    assert group._process is not None
    probe = group._process.pid
    counts = mmap.mmap(-1, 8 * len(cpus))
    children = []
    for place, cpu in enumerate(cpus):
        child = os.fork()
        if not child:
            _count(place, cpu, counts)
        children.append(child)
    try:
        time.sleep(1)
        before, began = _cpu_ns(probe), time.monotonic()
        time.sleep(10)
        used = [100e-9 * (now - then) for now, then in zip(_cpu_ns(probe), before, strict=True)]
        length = time.monotonic() - began
        print("threads of the probe, % of a CPU each:", ", ".join(f"{one / length:.3f}" for one in sorted(used)))
        ratios = _ratios(probe, counts, len(cpus), asked.seconds)
    finally:
        os.kill(probe, signal.SIGCONT)
        group.close()
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    middle = statistics.median(ratios)
    chance = random.Random(1)
    again = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    low, high = (100 * (again[int(part * _RESAMPLES)] - 1) for part in (0.025, 0.975))
    print(
        f"throughput with the probe, against without: {100 * (middle - 1):+.2f} % (95 %: {low:+.2f} to {high:+.2f} %),"
        f" median of {len(ratios)} blocks of four turns"
    )


def _ratios(probe: int, counts: mmap.mmap, cpus: int, seconds: float) -> list[float]:
    ratios = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done = {signal.SIGCONT: 0.0, signal.SIGSTOP: 0.0}
        order = [signal.SIGCONT, signal.SIGSTOP, signal.SIGSTOP, signal.SIGCONT]
        if len(ratios) % 2:
            order = [order[1], order[0], order[0], order[1]]
        for which in order:
            os.kill(probe, which)
            start, rounds = time.monotonic(), _rounds(counts, cpus)
            time.sleep(_TURN)
            done[which] += (_rounds(counts, cpus) - rounds) / (time.monotonic() - start)
        ratios.append(done[signal.SIGCONT] / done[signal.SIGSTOP])
    return ratios


def _rounds(counts: mmap.mmap, cpus: int) -> int:
    return sum(struct.unpack_from(f"{cpus}Q", counts))


if __name__ == "__main__":
    main()
