"""Primes against a scripted guest."""

from pathlib import Path

import pytest

from tests.fakes.shell import FakeShell
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.cpu import Cpu, CpuParams
from vmlab.workloads.workload_steps import Finished, WorkloadContext


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


async def test_halves_are_timed_by_the_rate_of_each_second(alone: WorkloadContext, finished: Finished) -> None:
    """20 s at 50 events a second, then 10 s at 100: half of 2,000 events are done after 20 s."""
    rates = [50] * 20 + [100] * 10
    lines = [f"[ {at}s ] thds: 2 eps: {rate}.00 lat (ms,95%): 8.28" for at, rate in enumerate(rates, start=1)]
    printed = finished.stdout.replace("5.0390s", "30.0000s").replace("2500", "2000")
    for old, new in {"4.03": "28.00", "6.67": "40.00", "28.54": "90.00", "10075.34": "56000.00"}.items():
        printed = printed.replace(f" {old}\n", f" {new}\n")
    text = "\n".join([*(line for line in printed.splitlines() if "eps:" not in line), *lines])
    figures = (await Cpu(CpuParams(threads=2, events=2000)).collect(alone, Finished(0, 30.1, text, ""))).values
    assert [figures["first_half_time"], figures["second_half_time"]] == pytest.approx([20, 10])
    slower = text.replace("[ 20s ] thds: 2 eps: 50.00", "[ 20s ] thds: 2 eps: 5.00")
    uneven = slower.replace("eps: 100.00", "eps: 90.00")
    figures = (await Cpu(CpuParams(threads=2, events=2000)).collect(alone, Finished(0, 30.1, uneven, ""))).values
    assert figures["first_half_time"] == pytest.approx(20 + 45 / 90)


async def test_events_far_shorter_than_their_threads_were_busy_fail(alone: WorkloadContext, finished: Finished) -> None:
    """Latencies that agree with each other, and are a tenth of what they were."""
    text = finished.stdout
    for old, new in {"4.03": "0.40", "6.67": "0.67", "28.54": "2.85", "10075.34": "1000.00"}.items():
        text = text.replace(f" {old}\n", f" {new}\n")
    with pytest.raises(WorkloadError, match=r"events are too short: .* 1\.000 s together, and 2 at a time 10\.075 s"):
        await Cpu(CpuParams(threads=2, events=2500)).collect(alone, Finished(0, 5.2, text, ""))


async def test_a_first_half_of_few_seconds_is_not_timed(alone: WorkloadContext, finished: Finished) -> None:
    figures = (await Cpu(CpuParams(threads=2, events=2500)).collect(alone, finished)).values
    assert not {"first_half_time", "second_half_time"} & figures.keys()


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
