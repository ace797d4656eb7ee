"""Cells that all hosts of a fleet run together, over hosts without guests whose clocks differ."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter

import pytest

from tests.fleet.local_hosts import LocalFleet, events_of
from tests.lab.faked import ROOT
from tests.waiting import until
from vmlab.analysis.document import run_document
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.tiles.tiles_carried import carried_of
from vmlab.fleet.clock import ClockOffset, Start, skew_of
from vmlab.model.cell_event import CellEnded
from vmlab.model.errors import ExitCode
from vmlab.model.event import (
    CellWithdrawn,
    CommonStartSet,
    HostJoined,
    TogetherEnded,
)
from vmlab.model.run import Outcome
from vmlab.store.reader import RunReader

of_test_fleet = pytest.mark.skipif("VMLAB_FLEET" not in os.environ, reason="for `make test-fleet`")
AHEAD = {"hv1": 5.0, "hv2": -5.0, "hv3": 0.3}


def test_the_skew_is_from_the_first_start_to_the_last_by_one_clock() -> None:
    """Two hosts, whose clocks are 5 s apart: one begins 4 ms late, the other 1 and 9 ms, each known to 0.5 ms."""
    here, there = ClockOffset(0.0, -5.0, 0.001), ClockOffset(0.0, 0.0, 0.002)
    starts = {
        "hv1": [Start(0.004, 0.0005).on(105.0, here)],
        "hv2": [Start(late, 0.0005).on(100.0, there) for late in (0.009, 0.001)],
    }
    found = skew_of(starts)
    assert found.seconds == pytest.approx(0.008)
    assert found.uncertainty == pytest.approx(2 * 0.0025)
    assert found.starts == pytest.approx({"hv1": 0.003, "hv2": 0.0})


async def test_hosts_whose_clocks_differ_start_together(fleet: LocalFleet) -> None:
    """Each cell is run on all hosts, its start is one moment on each host's own clock, and the skew is stored."""
    for name, host in fleet.hosts.items():
        host.clock = AHEAD[name]
    folder = fleet.prepared(together=True)
    verdict = await fleet.carried_out(folder)
    events = events_of(folder)
    ended = [event for event in events if isinstance(event, TogetherEnded)]
    assert verdict.outcome is Outcome.PASSED, (verdict, ended)
    joined = {event.name: event.offset_ms for event in events if isinstance(event, HostJoined)}
    assert all(abs(offset - 1e3 * AHEAD[name]) < 1e3 for name, offset in joined.items()), joined
    for moment in (event for event in events if isinstance(event, CommonStartSet)):
        ahead = sorted(there - moment.moment for there in moment.moments)
        assert ahead == pytest.approx([-5.0, 0.3, 5.0], abs=0.5)
    assert len(ended) == 2
    assert sorted(number for event in ended for number in event.cells) == [1, 2, 3, 4, 5, 6]
    for event in ended:
        assert event.outcome == "passed"
        assert set(event.starts_ms) == set(fleet.hosts)
        # Clocks that were taken as they are would be off by 10 s.
        assert event.skew_ms is not None and event.skew_uncertainty_ms is not None
        assert 0 <= event.skew_ms < 500
        assert 0 < event.skew_uncertainty_ms < 500
    assert Counter(type(event) for event in events)[CellEnded] == 6


async def test_a_host_that_fails_fails_the_cell_on_all(fleet: LocalFleet) -> None:
    """Its runner is killed in the first cell: the others are called off there, and the next one is measured on all."""
    for host in fleet.hosts.values():
        host.seconds = 5.0
    folder = fleet.prepared(together=True)
    async with fleet.under_way(folder) as run:
        for host in fleet.hosts.values():
            await until(lambda host=host: host.events("WorkloadStarted"), "a start", run=run)  # type: ignore[misc]
        fleet.hosts["hv2"].kill_runner()
        verdict = await run
    assert (verdict.outcome, verdict.exit_code) == (Outcome.ABORTED, ExitCode.FAILED)
    events = events_of(folder)
    first, second = (event for event in events if isinstance(event, TogetherEnded))
    assert (first.outcome, first.reason.partition(":")[0]) == ("aborted", "host hv2 failed")
    assert second.outcome == "passed", second.reason
    ends = [event for event in events if isinstance(event, CellEnded)]
    assert sorted(event.outcome for event in ends if event.cell in first.cells) == ["aborted", "failed", "failed"]
    assert sorted(event.cell for event in ends) == [1, 2, 3, 4, 5, 6]
    assert [event.name for event in events if isinstance(event, CellWithdrawn)] == ["hv2"]
    # The record has one outcome for the cell.
    cells = RunTimeline.of(events).cells
    assert {cells[number].told.outcome for number in first.cells} == {"aborted"}
    assert not any(host.records() for host in fleet.hosts.values())


@of_test_fleet
async def test_another_controller_goes_on(fleet: LocalFleet) -> None:
    """A controller that was killed while all hosts worked leaves the cell to the next one, which ends it as one."""
    folder = fleet.prepared(together=True)
    words = [str(fleet.folder.parent), str(folder.path), "6"]
    first = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.fleet.local_controller", *words, cwd=ROOT)
    for host in fleet.hosts.values():
        await until(lambda host=host: host.events("WorkloadStarted"), "a start")  # type: ignore[misc]
    first.kill()
    await first.wait()
    verdict = await fleet.carried_out(folder)
    events = events_of(folder)
    ended = [event for event in events if isinstance(event, TogetherEnded)]
    assert verdict.outcome is Outcome.PASSED, (verdict, ended)
    assert [event.outcome for event in ended] == ["passed", "passed"]
    assert all(event.skew_ms is not None for event in ended)
    assert sorted(event.cell for event in events if isinstance(event, CellEnded)) == [1, 2, 3, 4, 5, 6]


@of_test_fleet
async def test_a_host_that_is_left_out_ends_the_measurement(fleet: LocalFleet) -> None:
    """What all hosts are to run together cannot be run by two of them: each cell has the reason."""
    for host in fleet.hosts.values():
        host.seconds = 5.0
    folder = fleet.prepared(together=True)
    async with fleet.under_way(folder) as run:
        for host in fleet.hosts.values():
            await until(lambda host=host: host.events("WorkloadStarted"), "a start", run=run)  # type: ignore[misc]
        fleet.hosts["hv3"].off = True
        fleet.hosts["hv3"].cut()
        verdict = await run
    assert verdict.outcome is Outcome.ABORTED
    events = events_of(folder)
    ended = [event for event in events if isinstance(event, TogetherEnded)]
    assert [event.outcome for event in ended] == ["aborted", "aborted"]
    assert "hv3 was left out" in ended[1].reason
    assert sorted(event.cell for event in events if isinstance(event, CellEnded)) == [1, 2, 3, 4, 5, 6]


LOADED = """
name: load
guests:
  users: {vcpus: 1, memory: 128 MiB}
  front: {role: web, vcpus: 1, memory: 128 MiB}
workloads:
  web: {kind: http, from: users, to: front, requests: 60, pace: 5/s}
axes: {cache: [none]}
targets: {web: {latency_p95: 500 ms}}
"""


@of_test_fleet
async def test_a_climb_together_ends_where_each_host_has_missed(fleet: LocalFleet) -> None:
    """As `vmlab scale` climbs: with two tiles two of three hosts miss, with three the last one; all carry one."""
    documents = []
    for host, seconds in zip(fleet.hosts.values(), (0.3, 0.2, 0.3), strict=True):
        host.load = json.dumps({"none": seconds})
    for tiles in (1, 2, 3):
        folder = fleet.prepared(text=LOADED, together=True, number=tiles, tiles=(tiles,))
        verdict = await fleet.carried_out(folder)
        assert verdict.outcome is Outcome.PASSED, verdict
        with RunReader(folder.store) as reader:
            documents.append(run_document(reader))
        places = {str(place.axes["host"]): place for place in carried_of(documents)}
        climbing = {name for name, place in places.items() if place.climbing}
        assert climbing == {1: {"all", "hv1", "hv2", "hv3"}, 2: {"hv2"}, 3: set()}[tiles]
    assert {name: place.tiles for name, place in places.items()} == {"all": 1, "hv1": 1, "hv2": 2, "hv3": 1}
