"""What tools say of their time, for every kind: no more than their client ran, and not much less.

The rule, see `tool_time`: the seconds that a tool's figures account for are at most those of its client, and fall
short of them by what the kind declares, three times at most, and longer only where guests waited for a CPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.workloads.kinds.test_suites import specjvm_report
from vmlab.model.errors import WorkloadError
from vmlab.model.results import CpuUse
from vmlab.workloads.kinds.bonnie import BonnieParams
from vmlab.workloads.metrics import ToolTime, demand_not_longer, demand_tool_time, with_run_time
from vmlab.workloads.registry import kinds
from vmlab.workloads.workload_steps import (
    AnyWorkload,
    Client,
    Collected,
    Finished,
    Footprint,
    Workload,
    WorkloadContext,
)

Amounts = dict[str, Any]
BUSY = CpuUse(1000.0, 0.0)
"""A guest that never waited for a CPU."""
CASES: dict[str, tuple[Amounts, Amounts, dict[str, str], float]] = {
    "bonnie": ({"size": 2**30, "characters": 2**20}, {"run_time": 31.7}, {"bonnie": "bonnie.txt"}, 29.37),
    "command": ({"run": "make"}, {"run_time": 5.0, "rounds_per_second": 0.2}, {}, 5.0),
    "cpu": ({"threads": 1}, {"run_time": 5.0}, {}, 5.0),
    "filecopy": ({"files": 9, "bytes": 2000, "idle": "3 s"}, {"run_time": 5.0, "elapsed": 8.0}, {}, 8.0),
    "fio": ({"rw": "randread", "size": 2**25, "time": "2 s"}, {"run_time": 2.0}, {"fio": "fio-randread.json"}, 2.0),
    "http": ({"requests": 9}, {"run_time": 5.0}, {}, 5.0),
    "iperf3": ({"time": "3 s", "omit": "1 s"}, {"run_time": 3.0}, {"iperf3 client": "iperf3-late-client.json"}, 4.0),
    "jvm": ({}, {"run_time": 50.0}, {}, 50.0),
    "memcpy": ({"array": 2**20}, {"run_time": 5.0}, {}, 5.0),
    "memory": ({"total": 2**20}, {"run_time": 5.0}, {}, 5.0),
    "oltp": ({"transactions": 9}, {"run_time": 5.0}, {}, 5.0),
    "replay": ({}, {"run_time": 5.0, "warm_time": 6.0}, {}, 11.0),
    "smtp": ({"batches": 1, "messages": 9, "size": 100}, {"run_time": 5.0}, {}, 5.0),
    "specjvm": ({"benchmarks": ["compress"]}, {"run_time": 1440.0}, {"report": specjvm_report()}, 1800.0),
    "stream": ({"array": 8000}, {"run_time": 5.0}, {}, 5.0),
    "system": ({}, {"run_time": 5.0}, {}, 5.0),
    "unixbench": ({}, {"run_time": 80.0}, {}, 80.0),
}
"""Of each kind: amounts, figures, texts or their files, and the seconds that these account for."""


@pytest.fixture(params=CASES)
def said(request: pytest.FixtureRequest, captured: Path) -> tuple[ToolTime, float]:
    """What a tool accounts for under TCG, and the seconds that are granted around it where no guest waited."""
    amounts, values, files, _ = CASES[request.param]
    kind = kinds()[request.param]
    texts = {name: file if "\n" in file else (captured / file).read_text() for name, file in files.items()}
    time = kind(kind.Params.model_validate(amounts)).tool_time(values, texts, "tcg")
    assert time is not None
    assert time.seconds == pytest.approx(CASES[request.param][3], rel=0.05)
    return time, max(1.0, 3 * time.around)


def test_every_kind_says_what_its_tools_time_is() -> None:
    assert set(CASES) == set(kinds())


def test_a_tool_whose_time_is_that_of_its_client_is_believed(said: tuple[ToolTime, float]) -> None:
    time, granted = said
    demand_tool_time("tool", time, time.seconds, [BUSY])
    demand_tool_time("tool", time, time.seconds + 0.99 * granted, [BUSY])


def test_a_tool_that_took_longer_than_its_client_is_not(said: tuple[ToolTime, float]) -> None:
    time, _ = said
    for check in (demand_not_longer, demand_tool_time):
        with pytest.raises(WorkloadError, match=r"tool reports [\d.]+ s of work, but its client ran for [\d.]+ s$"):
            check("tool", time, time.seconds - 0.01)


def test_nor_is_one_that_took_much_less(said: tuple[ToolTime, float]) -> None:
    time, granted = said
    with pytest.raises(WorkloadError, match=r"client ran for [\d.]+ s; at most [\d.]+ s go by around the work"):
        demand_tool_time("tool", time, time.seconds + 1.01 * granted, [BUSY])
    with pytest.raises(WorkloadError, match="around the work"):
        demand_tool_time("tool", time, time.seconds + 4.01 * granted)


def test_guests_that_waited_for_a_cpu_took_longer_to_start(said: tuple[ToolTime, float]) -> None:
    time, granted = said
    half = CpuUse(1e6, 1e6)
    demand_tool_time("tool", time, time.seconds + 1.9 * granted, [BUSY, half])
    with pytest.raises(WorkloadError, match="around the work"):
        demand_tool_time("tool", time, time.seconds + 2.1 * granted, [half, BUSY])


def test_a_processor_that_is_slower_than_expected_is_so_around_the_work_too(said: tuple[ToolTime, float]) -> None:
    time, granted = said
    expected = time.seconds / 2
    demand_tool_time("tool", time, time.seconds + 1.9 * granted, [BUSY], expected=expected)
    for use in (BUSY, CpuUse(1e6, 1e6)):
        with pytest.raises(WorkloadError, match="around the work"):
            demand_tool_time("tool", time, time.seconds + 2.1 * granted, [use], expected=expected)
    with pytest.raises(WorkloadError, match="around the work"):
        demand_tool_time("tool", time, time.seconds + 1.1 * granted, [BUSY], expected=10 * time.seconds)


def test_what_stood_still_is_no_fault_of_the_tool(said: tuple[ToolTime, float]) -> None:
    """The cell is invalid for that, and has not failed: the tool's clock may have stood still as well."""
    time, granted = said
    demand_tool_time("tool", time, time.seconds + 0.99 * granted + 2.5, [BUSY], lost=2.5)
    with pytest.raises(WorkloadError, match="around the work"):
        demand_tool_time("tool", time, time.seconds + 1.01 * granted + 2.5, [BUSY], lost=2.5)


def test_a_tool_that_only_slept_gains_little_by_waiting() -> None:
    """It hardly ran, so what it waited counts for itself alone, and is not multiplied."""
    asleep = CpuUse(0.1, 0.3)
    with pytest.raises(WorkloadError, match="around the work"):
        demand_tool_time("cpu", ToolTime(0.1, 0.5), 4.0, [asleep])


def test_a_tenth_of_a_second_in_four_is_no_time_of_sysbench() -> None:
    amounts = kinds()["cpu"].Params.model_validate({"threads": 1, "max_prime": 10_000, "events": 4000})
    time = kinds()["cpu"](amounts).tool_time({"run_time": 0.1}, {}, "tcg")
    with pytest.raises(WorkloadError, match=r"^cpu reports 0\.100 s of work, but its client ran for 4\.000 s"):
        demand_tool_time("cpu", time, 4.0, [CpuUse(4.1, 0.4)])


class Silent(Workload[BonnieParams]):
    """A kind of another package, which says nothing of its time."""

    kind = "silent"
    sides = 1
    Params = BonnieParams
    summary = ""
    metrics = with_run_time()

    def footprint(self, accelerator: str) -> Footprint:
        raise NotImplementedError

    async def prepare(self, context: WorkloadContext) -> None:
        raise NotImplementedError

    def client(self, context: WorkloadContext) -> Client:
        raise NotImplementedError

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        raise NotImplementedError


def test_the_time_of_a_kind_that_says_nothing_is_not_judged() -> None:
    silent: AnyWorkload = Silent(BonnieParams(size=2**20))
    demand_tool_time("silent", silent.tool_time({"run_time": 99.0}, {}, "tcg"), 1.0)
