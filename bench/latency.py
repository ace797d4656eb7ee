"""What QEMU's counting of the latency of guests' disks costs: ``python -m bench.latency`` prints two tables.

One real guest with a data disk. First the CPU time of what the runner asks QEMU, with and without histograms; then
random reads that the host's page cache serves, as the guest reports them, in turns without and with histograms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import libvirt

from bench.support.frozen_lab import BenchLab, bench_lab, guest, isolated
from vmlab.guests.agent import AgentCall, AgentShell, wait_for_agent
from vmlab.hypervisor.disks.running_disks import begin_latency, read_latency
from vmlab.hypervisor.levers.guest_lever import Monitor
from vmlab.hypervisor.libvirt.calls import qmp

NAME = "latency"
GUEST = "reader"
CALLS = 200
"""Of each kind, one after the other."""
ROUNDS = 3
READ_SECONDS = 5
READS = (
    *("fio", "--name=reads", "--filename=/dev/vdb", "--size=64m", "--rw=randread", "--bs=4k", "--time_based"),
    *(f"--runtime={READ_SECONDS}", "--ioengine=libaio", "--iodepth=4", "--direct=1", "--output-format=json"),
)
STATISTICS = libvirt.VIR_DOMAIN_STATS_BLOCK | libvirt.VIR_DOMAIN_STATS_BALLOON


def count_nothing(monitor: Monitor) -> None:
    """Take the histograms of all disks away."""
    for one in monitor("query-blockstats"):
        monitor("block-latency-histogram-set", {"id": one["qdev"]})


def cost(call: Callable[[], Any], pid: int) -> tuple[float, float]:
    """Microseconds of CPU that a call takes in this process, and in QEMU's main thread."""

    def of_qemu() -> float:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e3

    own, theirs = time.process_time(), of_qemu()
    for _ in range(CALLS):
        call()
    return (time.process_time() - own) / CALLS * 1e6, (of_qemu() - theirs) / CALLS


async def ready(lab: BenchLab) -> tuple[Any, AgentShell]:
    """libvirt's domain of the guest, whose data disk is there, and its shell."""
    spec = guest(GUEST, 1)
    spec = replace(spec, resources=spec.resources.with_cache("writeback").model_copy(update={"data_bytes": 2**28}))
    await lab.hypervisor.create(lab.image, [spec])
    call: AgentCall = partial(lab.hypervisor.agent, spec.name)
    await wait_for_agent(call, spec.name, 240)
    shell = AgentShell(spec.name, call)
    await lab.hypervisor.plug_data_disks([spec])
    await shell.run(["sh", "-c", "until [ -b /dev/vdb ]; do sleep 0.1; done; udevadm settle"], deadline=60)
    return lab.hypervisor._lookup(spec.name), shell


def tell_calls(domain: Any, monitor: Monitor, pid: int) -> None:
    """Print the first table: medians over some rounds."""
    ask = {
        "libvirt's statistics, without": (count_nothing, lambda: domain.connect().getAllDomainStats(STATISTICS, 0)),
        "libvirt's statistics, with": (
            begin_latency,
            lambda: domain.connect().getAllDomainStats(STATISTICS, 0),
        ),
        "a reading": (begin_latency, lambda: read_latency(monitor)),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ask}
    for _ in range(ROUNDS):
        for name, (prepare, call) in ask.items():
            prepare(monitor)
            found[name].append(cost(call, pid))
    print(f"{'CPU of a call (µs)':<32}{'runner':>8}{'QEMU':>8}")
    for name, costs in found.items():
        own, theirs = (statistics.median(one) for one in zip(*costs, strict=True))
        print(f"{name:<32}{own:8.0f}{theirs:8.0f}")


async def tell_reads(shell: AgentShell, monitor: Monitor, turns: int) -> None:
    """Print the second table, of as many turns without and with."""
    found: dict[str, list[float]] = {"without": [], "with": []}
    await shell.run(list(READS), deadline=120)
    for name in ["without", "with", "with", "without"] * (turns // 2):
        (count_nothing if name == "without" else begin_latency)(monitor)
        said = json.loads((await shell.run(list(READS), deadline=120)).stdout)
        found[name].append(said["jobs"][0]["read"]["iops"])
    print(f"{'reads/s in the guest':<32}{'median':>8}{'mean':>8}{'± (95 %)':>10}")
    for name, reads in found.items():
        half = 1.96 * statistics.stdev(reads) / len(reads) ** 0.5
        print(f"{name:<32}{statistics.median(reads):8.0f}{statistics.mean(reads):8.0f}{half:10.0f}")


async def main(turns: int) -> None:
    """Print both tables."""
    async with bench_lab(NAME, [GUEST]) as lab:
        domain, shell = await ready(lab)
        monitor = partial(qmp, domain)
        tell_calls(domain, monitor, lab.hypervisor.watch.pids([GUEST])[GUEST])
        await tell_reads(shell, monitor, turns)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10, help="without and with, each; an even number")
    arguments = parser.parse_args()
    isolated("bench.latency")
    asyncio.run(main(arguments.turns))
