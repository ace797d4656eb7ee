"""A workload's figures beside those of its tool run by hand in the same place, in turn, in one run.

``python -m bench.by_hand`` boots two guests, opens the host as a place for workloads, and prints a line for each
workload: the median of the rates that the lab measured, the median of those that the tool printed by itself, and the
ratio of each pair's rates. By hand there is no barrier, no held client and no verification: the command that a person
would type is run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.support.frozen_lab import BenchLab, bench_lab, guest, isolated
from vmlab.guests.held_client import install_lab_programs, lab_programs
from vmlab.guests.host_shell import HostShell
from vmlab.hypervisor.disks.host_files import mounted_root, root_with_data
from vmlab.hypervisor.journal import Journal
from vmlab.lab.cell.common_start import start_together
from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.lab.provision.timing import USUAL
from vmlab.model.event import Event
from vmlab.model.names import DATA_FOLDER, HOST_ADDRESS
from vmlab.plan.terms import WorkloadPlan
from vmlab.workloads.registry import kinds
from vmlab.workloads.shell import Shell
from vmlab.workloads.workload_steps import WorkloadContext

NAME = "hand"
GUESTS = ("near", "far")
_MEMORY = 2**30
_MIB = 2**20

ByHand = Callable[[Shell, Shell], Awaitable[float]]


@dataclass(frozen=True)
class Case:
    """A workload of the lab, its figure in a unit per second, and how to get the same figure by hand."""

    kind: str
    params: dict[str, object]
    metric: str
    by_hand: ByHand
    words: str = ""
    on_host: bool = False


async def _sysbench(near: Shell, far: Shell) -> float:
    done = await near.run(
        [
            *("sysbench", "memory", "--memory-block-size=1K", "--memory-total-size=1G"),
            *("--memory-oper=write", "--threads=1", "--time=0", "run"),
        ]
    )
    found = re.search(r"transferred \(([\d.]+) MiB/sec\)", done.stdout)
    assert found, done.stdout
    return float(found[1]) * _MIB


async def _mbw(near: Shell, far: Shell) -> float:
    done = await near.run(["mbw", "-n", "10", "-t0", "128"])
    found = re.search(r"^AVG\s+Method: MEMCPY.*Copy: ([\d.]+) MiB/s", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return float(found[1]) * _MIB


async def _iperf3(near: Shell, far: Shell) -> float:
    await far.run(["iperf3", "--server", "--one-off", "--daemon", "--pidfile", "/run/by-hand.pid"])
    await asyncio.sleep(2)
    done = await near.run(["iperf3", "--client", far.address, "--time", "6", "--json"])
    return float(json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]) / 8


_FIO_FOLDER = f"{DATA_FOLDER}/by-hand"
_FIO_SIZE = 256 * _MIB


def _fio(rw: str, block: int, depth: int, seconds: int) -> Case:
    async def by_hand(near: Shell, far: Shell) -> float:
        await near.run(["mkdir", "-p", _FIO_FOLDER])
        file = ["fio", "--name=hand", f"--directory={_FIO_FOLDER}", f"--size={_FIO_SIZE}"]
        # A file of its own each time, written in order: what was written at random before lies in pieces on the disk.
        await near.run([*file, "--rw=write", "--bs=1M", "--fallocate=none", "--end_fsync=1"])
        done = await near.run(
            [
                *(*file, f"--rw={rw}", f"--bs={block}", f"--iodepth={depth}", "--ioengine=posixaio", "--direct=1"),
                *("--time_based", f"--runtime={seconds}", "--output-format=json"),
            ]
        )
        await near.run(["rm", "-r", _FIO_FOLDER])
        side = "write" if "write" in rw else "read"
        return float(json.loads(done.stdout)["jobs"][0][side]["bw_bytes"])

    params: dict[str, object] = {"rw": rw, "block": block, "size": _FIO_SIZE, "depth": depth, "time": f"{seconds} s"}
    return Case("fio", params, "throughput", by_hand, f"{rw} {block} B, depth {depth}", on_host=True)


CASES = (
    Case("memory", {"total": 2**30, "oper": "write"}, "bandwidth", _sysbench),
    Case("memcpy", {"array": 128 * _MIB, "methods": ("memcpy",)}, "memcpy_bandwidth", _mbw),
    Case("iperf3", {"time": "6 s"}, "throughput", _iperf3),
    _fio("randread", 4096, 16, 6),
    _fio("randwrite", 4096, 16, 6),
    _fio("read", _MIB, 1, 6),
)


def _ignore(event: Event) -> None:
    """The bench needs no events."""


async def _by_lab(case: Case, near: Shell, far: Shell) -> float:
    workload = kinds()[case.kind]
    params = workload.Params.model_validate(case.params)
    target = far if workload.sides == 2 else None
    plan = WorkloadPlan("load", 1, case.kind, params, near.name, target.name if target else None)
    context = WorkloadContext(workload="load", tile=1, cell=1, seed=1, source=near, target=target)
    instance = WorkloadInstance(1, plan, workload(params), context, _ignore)
    try:
        await instance.stage()
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


async def _measure(case: Case, rounds: int, near: Shell, far: Shell) -> None:
    lab: list[float] = []
    hand: list[float] = []
    for turn in range(rounds):
        # Which of the two comes first changes, so that neither always has the warmer guest.
        for own in (True, False) if turn % 2 else (False, True):
            (lab if own else hand).append(await (_by_lab(case, near, far) if own else case.by_hand(near, far)))
    ratios = sorted(one / other for one, other in zip(lab, hand, strict=True))
    print(
        f"{case.kind:8} {case.words:24} lab {median(lab) / 1e6:8.1f} MB/s  by hand {median(hand) / 1e6:8.1f} MB/s  "
        f"ratio {median(lab) / median(hand):.3f}, of pairs {ratios[0]:.3f} to {ratios[-1]:.3f}, {rounds} each",
        flush=True,
    )


async def _reached(lab: BenchLab) -> list[Shell]:
    """The guests, once they answer."""
    specs = [guest(name, number, _MEMORY) for number, name in enumerate(GUESTS, start=1)]
    await lab.hypervisor.create(lab.image, specs)
    shells = [await lab.reach(spec, number) for number, spec in enumerate(specs)]
    for shell in shells:
        await install_lab_programs(shell)
    return list(shells)


@contextmanager
def _host(lab: BenchLab) -> Iterator[Shell]:
    """The host as the engine gives it to a workload."""
    data, runtime = lab.folder / "data", Path(f"/run/vmlab-{NAME}")
    data.mkdir()
    with (
        mounted_root(lab.image.disk, runtime, NAME, Journal(lab.folder / "journal")) as root,
        root_with_data(root, runtime / "view", data) as view,
    ):
        shell = HostShell(view, HOST_ADDRESS)
        for path, program in lab_programs().items():
            shell.put(path, program)
        yield shell


async def main(rounds: int, wanted: list[str]) -> int:
    """The cases of the kinds that are `wanted`, or all of them, one after another."""
    cases = [case for case in CASES if not wanted or case.kind in wanted]
    async with bench_lab(NAME, GUESTS) as lab:
        with _host(lab) as host:
            for case in (case for case in cases if case.on_host):
                await _measure(case, rounds, host, host)
        in_guests = [case for case in cases if not case.on_host]
        if in_guests:
            near, far = await _reached(lab)
            for case in in_guests:
                await _measure(case, rounds, near, far)
            await lab.hypervisor.destroy(list(GUESTS))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("kinds", nargs="*", help="workloads to measure; all where none is named")
    arguments = parser.parse_args()
    isolated("bench.by_hand")
    sys.exit(asyncio.run(main(arguments.rounds, arguments.kinds)))
