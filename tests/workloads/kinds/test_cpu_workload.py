"""Primes against a scripted guest."""

from pathlib import Path

import pytest

from tests.fakes.shell import FakeShell
from vmlab.model.errors import WorkloadError
from vmlab.workloads.contract import Finished, WorkloadContext
from vmlab.workloads.kinds.cpu import Cpu, CpuParams


@pytest.fixture
def finished(captured: Path) -> Finished:
    return Finished(0, 5.2, (captured / "sysbench-cpu.txt").read_text(), "")


@pytest.fixture
def alone(source: FakeShell) -> WorkloadContext:
    return WorkloadContext(workload="primes", tile=1, cell=1, seed=1, source=source)


async def test_all_events_give_figures(alone: WorkloadContext, finished: Finished) -> None:
    collected = await Cpu(CpuParams(threads=2, events=2500)).collect(alone, finished)
    figures = collected.values
    assert figures["events"] == 2500
    assert figures["run_time"] * figures["events_per_second"] == pytest.approx(2500)


async def test_an_event_less_fails(alone: WorkloadContext, finished: Finished) -> None:
    with pytest.raises(WorkloadError, match="events of sysbench cpu: 2500, but 2501"):
        await Cpu(CpuParams(threads=2, events=2501)).collect(alone, finished)


async def test_a_killed_client_fails(alone: WorkloadContext, finished: Finished) -> None:
    with pytest.raises(WorkloadError, match="exited with -9"):
        await Cpu(CpuParams(threads=2, events=2500)).collect(alone, Finished(-9, 5.2, finished.stdout, ""))


def test_the_client_is_sysbench_and_nothing_else(alone: WorkloadContext) -> None:
    argv = Cpu(CpuParams(threads=6)).client(alone).argv
    assert argv[:2] == ("sysbench", "cpu")
    assert {"--threads=6", "--cpu-max-prime=50000", "--events=10000", "--time=0"} <= set(argv)


def test_more_threads_than_processors_cost_no_less() -> None:
    seconds = [Cpu(CpuParams(threads=threads)).footprint("tcg").seconds for threads in (1, 2, 4)]
    assert seconds[0] > seconds[1] == seconds[2]
