"""A workload's figures beside those of its tool run by hand in the same guests, in turn, in one run.

``python -m bench.by_hand`` boots two guests and prints a line for each workload: the median of the rates that the lab
measured, the median of those that the tool printed by itself, and the ratio of each pair's rates. By hand there is no
barrier, no held client and no verification: a shell runs the command that a person would type.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median

from bench.frozen_lab import BenchLab, bench_lab, guest, isolated
from vmlab.guests.held_client import install_start_line
from vmlab.guests.ssh import SshShell
from vmlab.lab.start import start_together
from vmlab.lab.timing import USUAL
from vmlab.lab.workload_instance import WorkloadInstance
from vmlab.model.event import Event
from vmlab.plan.terms import WorkloadPlan
from vmlab.workloads.contract import WorkloadContext
from vmlab.workloads.registry import kinds

NAME = "hand"
GUESTS = ("near", "far")
_MEMORY = 2**30
_MIB = 2**20

ByHand = Callable[[SshShell, SshShell], Awaitable[float]]


@dataclass(frozen=True)
class Case:
    """A workload of the lab, its figure in a unit per second, and how to get the same figure by hand."""

    kind: str
    params: dict[str, object]
    metric: str
    by_hand: ByHand


async def _sysbench(near: SshShell, far: SshShell) -> float:
    done = await near.run(
        [
            *("sysbench", "memory", "--memory-block-size=1K", "--memory-total-size=1G"),
            *("--memory-oper=write", "--threads=1", "--time=0", "run"),
        ]
    )
    found = re.search(r"transferred \(([\d.]+) MiB/sec\)", done.stdout)
    assert found, done.stdout
    return float(found[1]) * _MIB


async def _mbw(near: SshShell, far: SshShell) -> float:
    done = await near.run(["mbw", "-n", "10", "-t0", "128"])
    found = re.search(r"^AVG\s+Method: MEMCPY.*Copy: ([\d.]+) MiB/s", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return float(found[1]) * _MIB


async def _iperf3(near: SshShell, far: SshShell) -> float:
    await far.run(["iperf3", "--server", "--one-off", "--daemon", "--pidfile", "/run/by-hand.pid"])
    await asyncio.sleep(2)
    done = await near.run(["iperf3", "--client", far.address, "--time", "6", "--json"])
    return float(json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]) / 8


CASES = (
    Case("memory", {"total": 2**30, "oper": "write"}, "bandwidth", _sysbench),
    Case("memcpy", {"array": 128 * _MIB, "methods": ("memcpy",)}, "memcpy_bandwidth", _mbw),
    Case("iperf3", {"time": "6 s"}, "throughput", _iperf3),
)


def _ignore(event: Event) -> None:
    """The bench needs no events."""


async def _by_lab(case: Case, near: SshShell, far: SshShell) -> float:
    workload = kinds()[case.kind]
    params = workload.Params.model_validate(case.params)
    target = far if workload.sides == 2 else None
    plan = WorkloadPlan("load", 1, case.kind, params, near.name, target.name if target else None)
    context = WorkloadContext(workload="load", tile=1, cell=1, seed=1, source=near, target=target)
    instance = WorkloadInstance(1, plan, workload(params), context, _ignore)
    try:
        await instance.make_ready()
        start = await start_together([instance], USUAL)
        await instance.execute(start.lead)
        await instance.collect()
    finally:
        await instance.close()
    if instance.error is not None:
        raise instance.error
    assert instance.collected is not None
    return float(instance.collected.values[case.metric])


async def _measure(case: Case, rounds: int, near: SshShell, far: SshShell) -> None:
    lab: list[float] = []
    hand: list[float] = []
    for turn in range(rounds):
        # Which of the two comes first changes, so that neither always has the warmer guest.
        for own in (True, False) if turn % 2 else (False, True):
            (lab if own else hand).append(await (_by_lab(case, near, far) if own else case.by_hand(near, far)))
    ratios = sorted(one / other for one, other in zip(lab, hand, strict=True))
    print(
        f"{case.kind:8}  lab {median(lab) / 1e6:8.1f} MB/s  by hand {median(hand) / 1e6:8.1f} MB/s  "
        f"ratio {median(lab) / median(hand):.3f}, of pairs {ratios[0]:.3f} to {ratios[-1]:.3f}, {rounds} each",
        flush=True,
    )


async def _reached(lab: BenchLab) -> list[SshShell]:
    specs = [guest(name, number, _MEMORY) for number, name in enumerate(GUESTS, start=1)]
    await lab.hypervisor.create(lab.image, specs)
    shells = [await lab.reach(spec, number) for number, spec in enumerate(specs)]
    for shell in shells:
        await install_start_line(shell)
    return shells


async def main(rounds: int) -> int:
    """All cases, one after another."""
    async with bench_lab(NAME, GUESTS) as lab:
        near, far = await _reached(lab)
        for case in CASES:
            await _measure(case, rounds, near, far)
        await lab.hypervisor.destroy(list(GUESTS))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    isolated("bench.by_hand")
    sys.exit(asyncio.run(main(arguments.rounds)))
