"""The latency of guests' disks is read while the workloads of a cell run, over a hypervisor in memory."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.one_cell import REPORT, Lab, lab_of, working
from tests.waiting import until
from vmlab.lab.provision.timing import USUAL
from vmlab.model.cell_event import (
    CacheSwitched,
    CountersRead,
    DiskLatencyRead,
    PhaseEnded,
    PhaseStarted,
    WorkloadProgressed,
)
from vmlab.model.errors import DeadlineExceeded, HypervisorError, VmlabError
from vmlab.model.event import Notice
from vmlab.model.run import Outcome, Phase
from vmlab.telemetry.latency_bins import BINS
from vmlab.telemetry.recorder import ReadTimes


def doubts(lab: Lab) -> list[str]:
    return [notice.text for notice in lab.of(Notice) if "how long requests" in notice.text]


async def test_each_guest_is_read_when_its_workloads_have_ended(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, 2500)
    await lab.cell().run()
    assert lab.ended().outcome == Outcome.PASSED
    readings = lab.of(DiskLatencyRead)
    assert [(one.cell, one.tile, one.guest) for one in readings] == [(1, 1, "quick"), (1, 1, "slow")]
    assert all(one.counts == {"root": {"read": [5, 1], "write": [20, 2]}} for one in readings)
    assert all(one.scale == BINS.scale for one in readings)
    (began,) = [event for event in lab.of(PhaseStarted) if event.phase == Phase.EXECUTE]
    (ended,) = [event for event in lab.of(PhaseEnded) if event.phase == Phase.EXECUTE]
    assert all(one.since <= began.mono and one.mono >= ended.mono for one in readings)


async def test_all_counters_are_read_before_the_start_and_before_the_lab_itself_does_anything_after_the_end(
    tmp_path: Path,
) -> None:
    lab = lab_of(tmp_path, 2500)

    async def read_at(mono: float) -> ReadTimes:
        await asyncio.sleep(mono - time.monotonic())
        now = time.monotonic()
        return ReadTimes(now, now, now, now)

    lab.read_at = read_at
    await lab.cell().run()
    assert lab.ended().outcome == Outcome.PASSED
    first, last = lab.of(CountersRead)
    assert (first.edge, last.edge) == ("start", "end")
    (began,) = [event for event in lab.of(PhaseStarted) if event.phase == Phase.EXECUTE]
    assert first.mono - first.host_ago < began.mono
    after = lab.events[lab.events.index(last) + 1 :]
    assert isinstance(after[0], PhaseEnded) and after[0].phase == Phase.EXECUTE
    assert {DiskLatencyRead, PhaseStarted} <= set(map(type, after)), "reading goes on, and results are collected"
    assert not any(isinstance(event, WorkloadProgressed) for event in after)


async def test_in_between_there_are_readings_of_what_came_since(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, 2500, f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; cat {tmp_path}/report")
    (tmp_path / "report").write_text(REPORT)
    lab.timing = replace(USUAL, latency=0.02)
    cell = lab.cell()
    running = asyncio.ensure_future(cell.run())
    await until(lambda: len(lab.of(DiskLatencyRead)) >= 6, "six readings")
    (tmp_path / "go").touch()
    await running
    readings = [one for one in lab.of(DiskLatencyRead) if one.guest == "quick"]
    assert len(readings) >= 3
    # The guest counts one read and two writes more each time that it is asked.
    assert all(one.counts == {"root": {"read": [5, 1], "write": [20, 2]}} for one in readings)
    assert all(one.mono <= later.since for one, later in itertools.pairwise(readings))


@pytest.mark.parametrize(
    "fault", [HypervisorError("Domain not found"), DeadlineExceeded("reading it took longer than 5 s")]
)
async def test_what_cannot_be_read_costs_the_reading_alone(fault: VmlabError, tmp_path: Path) -> None:
    lab = lab_of(tmp_path, 2500)
    lab.hypervisor.latency_fault = fault
    await lab.cell().run()
    assert lab.ended().outcome == Outcome.PASSED and not lab.of(DiskLatencyRead)
    # Once for each guest.
    assert len(doubts(lab)) == 2 and all(str(fault) in text for text in doubts(lab))


async def test_a_switch_ends_a_span(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        await cell.live["cache"].switch("none", "test")
        before = lab.of(DiskLatencyRead)
        (switched,) = lab.of(CacheSwitched)
        assert [one.guest for one in before] == ["quick", "slow"]
        assert all(one.mono <= switched.mono for one in before)
    assert len(lab.of(DiskLatencyRead)) == 4
