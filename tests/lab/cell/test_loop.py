"""A looped cell: its workloads start again when they have verified themselves, over a hypervisor in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.one_cell import REPORT, Lab, scenario_plan
from vmlab.lab.cell import looped_cell
from vmlab.lab.run.cell_run import CellRun
from vmlab.model.cell_event import (
    CellStarted,
    MeasurementTaken,
    RoundEnded,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.errors import UsageError
from vmlab.model.event import CommandReceived, Event
from vmlab.model.run import Outcome
from vmlab.telemetry.host_counters import HostCounters
from vmlab.workloads.registry import kinds

EVENTS = 2500
"""As many as the captured report of sysbench tells."""


class LoopedLab(Lab):
    """A cell that is looped for `seconds`; `heard` is called with each event once it was taken."""

    def __init__(self, folder: Path, seconds: float | None, script: str = f"cat <<'END'\n{REPORT}\nEND") -> None:
        plan = scenario_plan(lambda text: text.replace("events: 10}", f"events: {EVENTS}}}"))
        super().__init__(folder, script, replace(plan, loop=seconds))
        self.heard: Callable[[Event], None] = lambda _event: None

    def take(self, event: Event) -> None:
        super().take(event)
        self.heard(event)

    def rounds(self, workload: str) -> list[RoundEnded]:
        return [one for one in self.of(RoundEnded) if one.workload == workload]


def ending_after(lab: LoopedLab, cell: CellRun, rounds: int) -> Callable[[Event], None]:
    """Ends the loop when each workload has so many rounds."""

    def hear(event: Event) -> None:
        enough = all(len(lab.rounds(name)) >= rounds for name in ("quick", "slow"))
        if isinstance(event, RoundEnded) and enough and cell.loop.goes_on:
            cell.loop.end("test")

    return hear


async def test_each_workload_starts_again_when_it_has_verified_itself_until_the_loop_is_ended(tmp_path: Path) -> None:
    lab = LoopedLab(tmp_path, 3600)
    cell = lab.cell()
    lab.heard = ending_after(lab, cell, 3)
    async with asyncio.timeout(120):
        assert await cell.run() is Outcome.PASSED
    for name in ("quick", "slow"):
        numbers = [one.round for one in lab.rounds(name)]
        assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 3
        assert [one.round for one in lab.of(WorkloadStarted) if one.workload == name] == numbers
        assert [one.outcome for one in lab.rounds(name)] == ["passed"] * len(numbers)
    first = lab.rounds("quick")[0]
    assert (first.throughput, first.latency) == ("events_per_second", "latency_p95")
    assert first.values["events"] == EVENTS and first.units["events_per_second"] == "1/s"
    assert [one.looped for one in lab.of(CellStarted)] == [True]
    assert not lab.of(MeasurementTaken), "a loop has rounds, and no figure of a cell"
    assert sorted(one.workload for one in lab.of(WorkloadEnded)) == ["quick", "slow"]
    assert [(one.command, one.origin) for one in lab.of(CommandReceived)] == [("end the loop", "test")]
    assert sorted(raw.workload for _, raw in lab.raw.kept if raw.name == "sysbench") == ["quick", "slow"]
    assert lab.hypervisor.running == {}


async def test_caches_of_the_host_that_somebody_empties_are_noticed_in_a_loop(tmp_path: Path) -> None:
    lab = LoopedLab(tmp_path, 1e-9)
    lab.counters = [HostCounters(10.0), HostCounters(14.0, caches_dropped=1)]
    async with asyncio.timeout(120):
        assert await lab.cell().run() is Outcome.INVALID
    assert lab.ended().reasons == ["the host's caches were emptied while the workloads ran (drop_caches)"]


async def test_what_is_under_way_when_the_time_is_over_ends_and_nothing_starts_again(tmp_path: Path) -> None:
    lab = LoopedLab(tmp_path, 1e-9)
    async with asyncio.timeout(120):
        assert await lab.cell().run() is Outcome.PASSED
    assert sorted((one.workload, one.round) for one in lab.of(RoundEnded)) == [("quick", 1), ("slow", 1)]


async def test_the_rounds_of_a_loop_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looped_cell, "MOST_ROUNDS", 2)
    lab = LoopedLab(tmp_path, 3600)
    async with asyncio.timeout(120):
        assert await lab.cell().run() is Outcome.PASSED
    assert sorted((one.workload, one.round) for one in lab.of(RoundEnded)) == [
        *(("quick", number) for number in (1, 2)),
        *(("slow", number) for number in (1, 2)),
    ]


async def test_a_round_that_fails_ends_the_loop_and_the_cell_has_failed(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    script = f"[ -e {broken} ] && exit 3\ncat <<'END'\n{REPORT}\nEND"
    lab = LoopedLab(tmp_path, 3600, script)
    lab.heard = lambda event: broken.touch() if isinstance(event, RoundEnded) else None
    async with asyncio.timeout(120):
        assert await lab.cell().run() is Outcome.FAILED
    last = lab.of(RoundEnded)[-1]
    assert last.outcome == "failed" and "exited with 3" in last.reason and last.values == {}
    assert any("exited with 3" in reason for reason in lab.ended().reasons)


async def test_a_round_that_what_a_guest_prints_keeps_from_beginning_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def renew(*_arguments: object) -> None:
        raise ValueError("invalid literal for int()")

    monkeypatch.setattr(kinds()["cpu"], "renew", renew)
    lab = LoopedLab(tmp_path, 3600)
    async with asyncio.timeout(120):
        assert await lab.cell().run() is Outcome.FAILED
    last = lab.of(RoundEnded)[-1]
    assert (last.round, last.reason) == (2, "what cpu printed cannot be read: invalid literal for int()")


async def test_without_a_loop_there_is_none_to_end_and_no_round(tmp_path: Path) -> None:
    lab = LoopedLab(tmp_path, None)
    cell = lab.cell()
    with pytest.raises(UsageError, match="cell 1 is no loop"):
        cell.loop.end("test")
    assert await cell.run() is Outcome.PASSED
    assert not lab.of(RoundEnded) and lab.of(MeasurementTaken)
    assert [one.looped for one in lab.of(CellStarted)] == [False]


async def test_a_loop_that_has_not_begun_or_is_over_cannot_be_ended(tmp_path: Path) -> None:
    lab = LoopedLab(tmp_path, 1e-9)
    cell = lab.cell()
    for _ in range(2):
        with pytest.raises(UsageError, match="the loop of cell 1 does not go on now"):
            cell.loop.end("test")
        if not lab.events:
            await cell.run()
    assert not lab.of(CommandReceived)


async def test_a_stopped_run_ends_the_rounds_that_are_under_way(tmp_path: Path) -> None:
    lab = LoopedLab(tmp_path, 3600)
    cell = lab.cell()
    again = asyncio.Event()
    lab.heard = lambda event: again.set() if isinstance(event, WorkloadStarted) and event.round == 2 else None
    running = asyncio.ensure_future(cell.run())
    async with asyncio.timeout(120):
        await again.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert lab.ended().outcome == Outcome.ABORTED and lab.hypervisor.running == {}
    assert all(guest.closed for guest in lab.guests)
