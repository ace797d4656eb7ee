"""How long guests take until the first command runs in the last of them: restored, booted by the lab, the usual way.

``python -m bench.provision`` prints Markdown tables: 1, 4 and 12 guests, the three ways in turn within every round, so
that all see the same host, and medians over rounds. ``--engine`` adds whole cells of the tile at smoke size, where
seconds run to the moment at which all workloads are ready to start, and what a cell takes beyond its execute phase.
``--ksm`` adds what the kernel's same-page merging makes of restored and of booted guests; it switches KSM on for a
minute or two and puts its settings back.

Needs root. For the usual way see `usual_image`; ``--skip usual`` does without.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import bench.engine_cells as engine
from bench.memory_of_guests import GuestMemory, ksm_scanning, memory_of_guests
from bench.support.frozen_lab import BenchLab, Saved, bench_lab, guest, isolated
from bench.support.usual_image import usual_image
from bench.support.usual_way import UsualHypervisor, address, leases, make_seed
from vmlab.guests.ssh import SshShell
from vmlab.hypervisor.domain_spec import DomainSpec

COUNTS = (1, 4, 12)
UNITS = ("postgresql.service", "smbd.service")
"""Run in restored guests before they are saved. The other two ways are timed without any server; cold guests start
them after that, before their memory is looked at."""

WAYS = ("restored", "cold", "usual")
USUAL_AT_MOST = 4
"""Guests that are started the usual way; twelve of them take a quarter of an hour here."""

KSM_SECONDS = 45.0
MEMORY = 512 * 2**20


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds from nothing running: to all vCPUs running, and to the first command's end in the last guest."""

    running: float
    command: float


class Stopwatch:
    """Times one way of starting `specs` in a lab."""

    def __init__(self, lab: BenchLab, specs: list[DomainSpec], saved: Saved, seeds: list[Path]) -> None:
        self.lab = lab
        self.specs = specs
        self._saved = saved
        self._seeds = seeds

    async def time(self, way: str) -> tuple[Timing, list[GuestMemory]]:
        """Start, run a command in each, look at the memory, destroy."""
        starts: dict[str, Callable[[], Awaitable[None]]] = {
            "restored": self._restore,
            "cold": lambda: self.lab.hypervisor.create(self.lab.image, self.specs),
            "usual": self._usual,
        }
        began = time.monotonic()
        try:
            await starts[way]()
            running = time.monotonic() - began
            shells = await asyncio.gather(*(self._command(way, at, one) for at, one in enumerate(self.specs)))
            command = time.monotonic() - began
            if way == "cold":
                await asyncio.gather(*(start_units(shell) for shell in shells))
            memory = memory_of_guests(MEMORY)
            for shell in shells:
                await shell.close()
        finally:
            await self.lab.hypervisor.destroy([one.name for one in self.specs])
        return Timing(running, command), memory

    async def _restore(self) -> None:
        saved = {one.name: self._saved for one in self.specs}
        await self.lab.hypervisor.restore(self.lab.image, self.specs, saved)

    async def _usual(self) -> None:
        hypervisor = self.lab.hypervisor
        assert isinstance(hypervisor, UsualHypervisor)
        pairs = zip(self.specs, self._seeds, strict=True)
        await asyncio.gather(*(hypervisor.start_usual(usual_image(), one, seed) for one, seed in pairs))

    async def _command(self, way: str, at: int, one: DomainSpec) -> SshShell:
        keys = self.lab.keys
        if way == "usual":
            shell = await SshShell.connect(
                one.name, address(at), key=keys.client, host_key=keys.hosts[one.name], deadline=600
            )
        else:
            shell = await self.lab.reach(one, at)
        await shell.run(["true"])
        return shell


async def start_units(shell: SshShell) -> None:
    """The servers that restored guests have."""
    await shell.run(["systemctl", "start", *UNITS], deadline=240)


async def timings(counts: list[int], ways: list[str], rounds: int, ksm: bool) -> None:
    """Every count in every way, `rounds` times; prints the tables."""
    names = [f"guest-{at}" for at in range(max(counts))]
    specs = [guest(name, at + 1, MEMORY) for at, name in enumerate(names)]
    async with bench_lab("bench", names, UsualHypervisor) as lab:
        saved = await lab.freeze(specs[0], UNITS)
        seeds = [make_seed(lab.folder, name, lab.keys) for name in names] if "usual" in ways else []
        with leases(specs, lab.folder):
            found: dict[tuple[int, str], list[Timing]] = {}
            memory: dict[tuple[int, str], list[GuestMemory]] = {}
            for number in range(rounds):
                for count in counts:
                    for way in _ways_for(count, ways):
                        watch = Stopwatch(lab, specs[:count], saved, seeds[:count])
                        timing, memory[count, way] = await watch.time(way)
                        found.setdefault((count, way), []).append(timing)
                        print(f"round {number + 1}: {count} {way}: {timing}", file=sys.stderr, flush=True)
            _tell_timings(counts, ways, found)
            _tell_memory(memory)
            if ksm:
                await _tell_ksm(lab, specs[:4], saved)


def _ways_for(count: int, ways: list[str]) -> list[str]:
    return [way for way in ways if way != "usual" or count <= USUAL_AT_MOST]


def _tell_timings(counts: list[int], ways: list[str], found: dict[tuple[int, str], list[Timing]]) -> None:
    print("\n| guests | how | vCPUs running | first command in the last | times restored |")
    print("| --- | --- | ---: | ---: | ---: |")
    for count in counts:
        least = statistics.median(one.command for one in found[count, ways[0]])
        for way in _ways_for(count, ways):
            running = statistics.median(one.running for one in found[count, way])
            command = statistics.median(one.command for one in found[count, way])
            print(f"| {count} | {way} | {running:.1f} s | {command:.1f} s | {command / least:.1f} |")


def _tell_memory(memory: dict[tuple[int, str], list[GuestMemory]]) -> None:
    print("\n| guests | how | guest's RAM resident | QEMU in all | private |\n| --- | --- | ---: | ---: | ---: |")
    for (count, way), each in sorted(memory.items()):
        ram, whole, private = (
            statistics.mean(getattr(one, name) for one in each) / 2**20 for name in ("ram", "resident", "private")
        )
        print(f"| {count} | {way} | {ram:.0f} MiB | {whole:.0f} MiB | {private:.0f} MiB |")


async def _tell_ksm(lab: BenchLab, specs: list[DomainSpec], saved: Saved) -> None:
    print(f"\n| 4 guests | merged by KSM, each, after {KSM_SECONDS:.0f} s |\n| --- | ---: |")
    for way in ("restored", "cold"):
        saved_for = {one.name: saved for one in specs}
        start = lab.hypervisor.restore(lab.image, specs, saved_for) if way == "restored" else None
        await (start or lab.hypervisor.create(lab.image, specs))
        shells = await asyncio.gather(*(lab.reach(one, at) for at, one in enumerate(specs)))
        await asyncio.gather(*(start_units(shell) for shell in shells))
        with ksm_scanning():
            await asyncio.sleep(KSM_SECONDS)
            merged = statistics.mean(one.merged for one in memory_of_guests(MEMORY)) / 2**20
        await lab.hypervisor.destroy([one.name for one in specs])
        print(f"| {way} | {merged:.0f} MiB |")


def main() -> None:
    """Parse, go inside, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=lambda text: [int(one) for one in text.split(",")], default=list(COUNTS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--skip", choices=WAYS[1:], action="append", default=[])
    parser.add_argument("--engine", action="store_true")
    parser.add_argument("--ksm", action="store_true")
    arguments = parser.parse_args()
    if arguments.engine and os.environ.get(engine.DONE) is None:
        engine.tell()
        os.environ[engine.DONE] = "1"
    if "usual" not in arguments.skip:
        usual_image()
    isolated("bench.provision")
    load = " ".join(Path("/proc/loadavg").read_text().split()[:3])
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs, Linux {platform.release()}, load before: {load}")
    ways = [way for way in WAYS if way not in arguments.skip]
    asyncio.run(timings(arguments.counts, ways, arguments.rounds, arguments.ksm))


if __name__ == "__main__":
    main()
