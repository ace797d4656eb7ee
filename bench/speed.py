"""The speed trace: CPU time of its probe, and what a busy CPU does with it beside what it does while it is stopped.

    python -m bench.speed [--seconds 200]

A process on each CPU counts rounds of a loop in shared memory, as a busy vCPU would work. The probe is stopped and
continued in turns, in the order A B B A, each for a fifth of a second. In each four turns, two ratios with the probe to
without are taken: of rounds, in which every change of the CPUs' speed is, and of the time for which these processes
ran, in which only what was taken from them is.
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
from collections.abc import Callable
from pathlib import Path

from vmlab.telemetry.speed_trace import CpuSpeed

_TURN = 0.2
_RESAMPLES = 2000


def _count(place: int, cpu: int, counts: mmap.mmap) -> None:
    """Count for ever, on one CPU."""
    os.sched_setaffinity(0, {cpu})
    os.nice(-20)
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
        blocks = _blocks(
            probe,
            lambda: _rounds(counts, len(cpus)),
            lambda: sum(sum(_cpu_ns(child)) for child in children),
            asked.seconds,
        )
    finally:
        os.kill(probe, signal.SIGCONT)
        group.close()
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    for name, ratios in zip(("rounds", "time that it ran"), zip(*blocks, strict=True), strict=True):
        middle = statistics.median(ratios)
        chance = random.Random(1)
        again = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
        low, high = (100 * (again[int(part * _RESAMPLES)] - 1) for part in (0.025, 0.975))
        change = f"{100 * (middle - 1):+.2f} % (95 %: {low:+.2f} to {high:+.2f} %)"
        print(f"a busy process with the probe, against without: {name} {change}, {len(ratios)} blocks of four turns")


def _blocks(probe: int, rounds: Callable[[], int], ran: Callable[[], int], seconds: float) -> list[tuple[float, float]]:
    """Both ratios of each block."""
    blocks: list[tuple[float, float]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done = {signal.SIGCONT: [0.0, 0.0], signal.SIGSTOP: [0.0, 0.0]}
        order = [signal.SIGCONT, signal.SIGSTOP, signal.SIGSTOP, signal.SIGCONT]
        if len(blocks) % 2:
            order = [order[1], order[0], order[0], order[1]]
        for which in order:
            os.kill(probe, which)
            began, before = time.monotonic(), (rounds(), ran())
            time.sleep(_TURN)
            now = (rounds(), ran())
            length = time.monotonic() - began
            for place in range(2):
                done[which][place] += (now[place] - before[place]) / length
        with_it, without = done[signal.SIGCONT], done[signal.SIGSTOP]
        blocks.append((with_it[0] / without[0], with_it[1] / without[1]))
    return blocks


def _rounds(counts: mmap.mmap, cpus: int) -> int:
    return sum(struct.unpack_from(f"{cpus}Q", counts))


if __name__ == "__main__":
    main()
