"""sysbench's memory test against a scripted guest."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.fakes.shell import FakeShell
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.memory import Memory, MemoryParams
from vmlab.workloads.workload_steps import Finished, WorkloadContext

ASKED = MemoryParams(total=2**30, block=1024, threads=2)


@pytest.fixture
def finished(captured: Path) -> Finished:
    return Finished(0, 0.7, (captured / "sysbench-memory.txt").read_text(), "")


@pytest.fixture
def alone(source: FakeShell) -> WorkloadContext:
    return WorkloadContext(workload="ram", tile=1, cell=1, seed=1, source=source)


async def test_rates_follow_from_the_exact_count(alone: WorkloadContext, finished: Finished) -> None:
    collected = await Memory(ASKED).collect(alone, finished)
    assert collected.values == {
        "run_time": 0.607,
        "bandwidth": 2**30 / 0.607,
        "operations": 2**20,
        "operations_per_second": 2**20 / 0.607,
        "bytes": 2**30,
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"total": 2**30 + 2048}, "operations of sysbench memory: 1048576, but 1048578 were asked for"),
        ({"oper": "read"}, "sysbench did write with scope global, not read with global"),
        ({"scope": "local"}, "not write with local"),
    ],
)
async def test_another_test_than_was_asked_for_fails(
    alone: WorkloadContext, finished: Finished, changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(WorkloadError, match=reason):
        await Memory(ASKED.model_copy(update=changes)).collect(alone, finished)


@pytest.mark.parametrize(
    ("changed", "into", "reason"),
    [
        ("block size: 1KiB", "block size: 8KiB", "KiB of sysbench's blocks: 8, but 1 were asked for"),
        ("Number of threads: 2", "Number of threads: 1", "threads of sysbench: 1, but 2 were asked for"),
        ("total size: 1024MiB", "total size: 10MiB", "MiB of sysbench's total size: 10, but 1024 were asked for"),
        ("0.6070s", "0.0607s", r"events took 0\.396 s together, more than 2 threads have in its 0\.061 s"),
    ],
)
async def test_what_sysbench_repeats_is_held_against_what_was_asked(
    alone: WorkloadContext, finished: Finished, changed: str, into: str, reason: str
) -> None:
    assert changed in finished.stdout
    with pytest.raises(WorkloadError, match=reason):
        await Memory(ASKED).collect(alone, Finished(0, 0.7, finished.stdout.replace(changed, into), ""))


async def test_what_is_over_at_once_is_no_figure(alone: WorkloadContext, finished: Finished) -> None:
    text = finished.stdout.replace("0.6070s", "0.0070s").replace("395.67", "3.95").replace("52.35", "2.35")
    with pytest.raises(WorkloadError, match="too quick to be measured; make total larger"):
        await Memory(ASKED).collect(alone, Finished(0, 0.1, text, ""))


async def test_a_rate_that_is_padded_is_read(alone: WorkloadContext, finished: Finished) -> None:
    """As sysbench 1.0.20 printed it with blocks of 1 MiB."""
    text = re.sub(r"\([0-9.]+ per second\)", "( 1226.61 per second)", finished.stdout)
    assert text != finished.stdout
    assert (await Memory(ASKED).collect(alone, Finished(0, 0.7, text, ""))).values["operations"] == 2**20


async def test_a_killed_client_fails(alone: WorkloadContext, finished: Finished) -> None:
    with pytest.raises(WorkloadError, match="exited with -9"):
        await Memory(ASKED).collect(alone, Finished(-9, 0.1, finished.stdout, ""))


def test_shares_are_rounded_down_as_sysbench_does() -> None:
    """Seven threads did 98 of 100 blocks of 1 MiB."""
    assert MemoryParams(total=100 * 2**20, block=2**20, threads=7).operations == 98


@pytest.mark.parametrize("wrong", [{"block": 3000}, {"total": 1024, "threads": 2}, {"oper": "none"}])
def test_amounts_that_sysbench_would_refuse(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MemoryParams.model_validate({"total": 2**20, **wrong})


def test_progress_adds_up_to_the_total_and_no_further() -> None:
    load = Memory(MemoryParams(total=2**30))
    shown = [load.progress(f"[ {second}s ] 600.00 MiB/sec") for second in (1, 2, 3)]
    assert [step.done for step in shown if step] == [600 * 2**20, 2**30, 2**30]
    assert load.progress("Threads started!") is None
