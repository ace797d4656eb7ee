"""Restores a small guest again and again, and looks for what leaks: descriptors, threads, processes, memory, disk.

``python -m bench.restore_loop --count 1000`` prints a line every so often and a table at the end; its exit status is 1
when something grew. Each turn restores the guest, waits for its agent to answer, and destroys it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from bench.support.frozen_lab import BenchLab, bench_lab, guest, isolated
from vmlab.guests.agent import wait_for_agent
from vmlab.hypervisor.isolation import cgroups

NAME = "loop"
GUEST = "small"
MEMORY = 256 * 2**20
WARM_UP = 20
"""Turns before the first look: caches fill and threads come to their number."""

RUNNER_GROWTH = 16 * 2**20
"""Bytes by which the runner's own memory may differ between two looks without being a leak."""

DISK_GROWTH = 64 * 2**10
"""Bytes on disk, likewise: a guest's console log is written anew each time, and now and then a block longer."""

JOURNAL_LINE = 200
"""The run's journal is written twice each turn, on purpose: at most this many bytes a line."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the lab holds between two guests."""

    descriptors: int
    threads: int
    processes: int
    cgroups: int
    files: int
    disk_bytes: int
    runtime_bytes: int
    runner_bytes: int

    @classmethod
    def now(cls, lab: BenchLab) -> Holdings:
        """As it is at this moment; the journal counts as no file."""
        runner = psutil.Process()
        runtime = Path(f"/run/vmlab-{NAME}")
        prefix = cgroups.prefix_of(runtime / "v")
        groups = [path for place in cgroups.partitions(cgroups.hierarchies()) for path in place.glob(f"{prefix}*")]
        files = [path for path in lab.folder.rglob("*") if path.is_file() and path.name != "journal.jsonl"]
        return cls(
            descriptors=runner.num_fds(),
            threads=runner.num_threads(),
            processes=len(psutil.pids()),
            cgroups=len(groups),
            files=len(files),
            disk_bytes=sum(path.stat().st_blocks * 512 for path in files),
            runtime_bytes=sum(path.stat().st_size for path in runtime.rglob("*") if path.is_file()),
            runner_bytes=runner.memory_info().rss,
        )

    def grown_since(self, before: Holdings) -> list[str]:
        """The names of what is more than it was; memory by its own measure."""
        plain = ("descriptors", "threads", "processes", "cgroups", "files", "runtime_bytes")
        grown = [name for name in plain if getattr(self, name) > getattr(before, name)]
        slack = {"disk_bytes": DISK_GROWTH, "runner_bytes": RUNNER_GROWTH}
        return grown + [name for name, much in slack.items() if getattr(self, name) > getattr(before, name) + much]


async def main(count: int) -> int:
    """Freeze once, restore `count` times; 1 when something grew."""
    async with bench_lab(NAME, [GUEST]) as lab:
        spec = guest(GUEST, 1, MEMORY)
        saved = await lab.freeze(spec, [])
        call = partial(lab.hypervisor.agent, GUEST)
        first: Holdings | None = None
        took: list[float] = []
        for turn in range(1, count + 1):
            began = time.monotonic()
            await lab.hypervisor.restore(lab.image, [spec], {GUEST: saved})
            await wait_for_agent(call, GUEST, 120)
            took.append(time.monotonic() - began)
            await lab.hypervisor.destroy([GUEST])
            if turn == min(WARM_UP, count):
                first = Holdings.now(lab)
            if turn % 50 == 0:
                print(f"{turn:5d}  {took[-1]:.2f} s  {Holdings.now(lab)}", file=sys.stderr, flush=True)
        # libvirt's threads for a domain that ended go a moment later.
        await asyncio.sleep(3)
        last = Holdings.now(lab)
        journal = (lab.folder / "journal.jsonl").stat().st_size
    assert first is not None
    took.sort()
    print(
        f"{count} restores; from start to the agent's answer: median {took[count // 2]:.2f} s, longest {took[-1]:.2f} s"
    )
    print(f"after {min(WARM_UP, count)}: {first}\nafter {count}: {last}\njournal: {journal} bytes")
    grown = last.grown_since(first) + (["journal"] if journal > JOURNAL_LINE * 2 * (count + 20) else [])
    print(f"grown: {', '.join(grown) or 'nothing'}")
    return 1 if grown else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    arguments = parser.parse_args()
    isolated("bench.restore_loop")
    raise SystemExit(asyncio.run(main(arguments.count)))
