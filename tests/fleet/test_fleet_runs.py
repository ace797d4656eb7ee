"""Whole runs of a fleet over hosts whose cells only take a while: each cell is in the record once, whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter

import pytest

from tests.fleet.local_hosts import LocalFleet, events_of
from tests.lab.faked import ROOT
from tests.waiting import until
from vmlab.analysis.document import run_document
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.fleet.hosts_file import read_fleet_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import CellEnded, CellStarted
from vmlab.model.errors import ExitCode
from vmlab.model.event import (
    CellWithdrawn,
    HostLeftOut,
    Notice,
)
from vmlab.model.run import Outcome
from vmlab.store.reader import RunReader

of_test_fleet = pytest.mark.skipif("VMLAB_FLEET" not in os.environ, reason="for `make test-fleet`")
"""Tests that take most of a minute each, of which most is waiting."""


def _timeline(folder: RunFolder) -> RunTimeline:
    return RunTimeline.of(events_of(folder))


def _outcomes(folder: RunFolder) -> Counter[str]:
    cells = _timeline(folder).cells.values()
    return Counter("none" if cell.ended is None else cell.told.outcome for cell in cells)


def _texts(folder: RunFolder) -> str:
    return "\n".join(event.text for event in events_of(folder) if isinstance(event, Notice))


async def test_each_host_runs_the_cells_of_its_own(fleet: LocalFleet) -> None:
    """Host as an axis: three hosts, two cells each, all in one record with the host that ran them."""
    folder = fleet.prepared()
    verdict = await fleet.carried_out(folder)
    assert (verdict.outcome, verdict.exit_code) == (Outcome.PASSED, ExitCode.PASSED), verdict
    timeline = _timeline(folder)
    assert Counter(cell.host for cell in timeline.cells.values()) == {"hv1": 2, "hv2": 2, "hv3": 2}
    assert all(cell.host == cell.told.axes["host"] for cell in timeline.cells.values())
    assert Counter(type(event) for event in events_of(folder))[CellEnded] == 6
    with RunReader(folder.store) as reader:
        assert reader.hosts() == ("hv1", "hv2", "hv3") or set(reader.hosts()) == {"hv1", "hv2", "hv3"}
        document = run_document(reader)
    assert {one.name for one in document.run.hosts} == {"hv1", "hv2", "hv3"}
    assert all(cell.hypervisor == cell.axes["host"] for cell in document.cells)
    assert not any(host.records() for host in fleet.hosts.values()), "their own records are removed once they arrived"


def _most_at_once(folder: RunFolder) -> int:
    under_way: set[int] = set()
    most = 0
    for event in events_of(folder):
        if isinstance(event, CellStarted):
            under_way.add(event.cell)
        elif isinstance(event, CellEnded | CellWithdrawn):
            under_way.discard(event.cell)
        most = max(most, len(under_way))
    return most


async def test_hosts_take_turns(fleet: LocalFleet) -> None:
    """One cell at a time on all hosts, also after a host was lost in the middle of its cell."""
    fleet.hosts["hv2"].seconds = 2.0
    folder = fleet.prepared(in_turn=True)
    async with fleet.under_way(folder) as run:
        await until(fleet.hosts["hv2"].in_a_cell, "a cell on hv2", run=run)
        fleet.hosts["hv2"].kill_runner()
        verdict = await run
    assert verdict.outcome is Outcome.PASSED, (verdict, _texts(folder))
    assert _outcomes(folder) == {"passed": 6}
    assert [event.name for event in events_of(folder) if isinstance(event, CellWithdrawn)] == ["hv2"]
    assert _most_at_once(folder) == 1
    assert "hosts take turns: one cell at a time on all of them" in _texts(folder)
    at_once = fleet.prepared(number=2)
    await fleet.carried_out(at_once)
    assert _most_at_once(at_once) > 1


@pytest.mark.exhaustive
async def test_blocks_are_placed_whole(fleet: LocalFleet) -> None:
    """Spread: the cells of a repeat are all on one host, and every host has some."""
    folder = fleet.prepared(spread=True, repeats=6)
    verdict = await fleet.carried_out(folder)
    assert verdict.outcome is Outcome.PASSED
    hosts: dict[int, set[str]] = {}
    for cell in _timeline(folder).cells.values():
        hosts.setdefault(cell.told.repeat, set()).add(cell.host)
    assert len(hosts) == 6
    assert all(len(one) == 1 for one in hosts.values())
    assert set.union(*hosts.values()) == set(fleet.hosts)


async def test_a_killed_runner_has_its_cell_measured_anew(fleet: LocalFleet) -> None:
    """The cell is withdrawn once and measured on the same host, which its axis names."""
    fleet.hosts["hv2"].seconds = 2.0
    folder = fleet.prepared()
    async with fleet.under_way(folder) as run:
        await until(fleet.hosts["hv2"].in_a_cell, "a cell on hv2", run=run)
        fleet.hosts["hv2"].kill_runner()
        verdict = await run
    assert verdict.outcome is Outcome.PASSED, (verdict, _texts(folder))
    assert _outcomes(folder) == {"passed": 6}
    withdrawn = [event for event in events_of(folder) if isinstance(event, CellWithdrawn)]
    assert [event.name for event in withdrawn] == ["hv2"]
    assert "host hv2 failed" in _texts(folder)


@of_test_fleet
async def test_a_host_that_fails_twice_is_left_out(fleet: LocalFleet) -> None:
    """Its cells are recorded with the reason; the others are measured."""
    fleet.hosts["hv3"].seconds = 60.0
    folder = fleet.prepared()
    async with fleet.under_way(folder) as run:
        await until(fleet.hosts["hv3"].in_a_cell, "a cell on hv3", run=run)
        fleet.hosts["hv3"].off = True
        fleet.hosts["hv3"].cut()
        verdict = await run
    assert verdict.outcome is Outcome.ABORTED
    assert _outcomes(folder) == {"passed": 4, "aborted": 2}
    reasons = [cell.told.reasons for cell in _timeline(folder).cells.values() if cell.told.reasons]
    assert all("hv3 was left out" in reason for (reason,) in reasons)
    (left_out,) = [event for event in events_of(folder) if isinstance(event, HostLeftOut)]
    assert left_out.name == "hv3"
    assert f"host hv3 was left out: {left_out.reason}" in verdict.reason


@of_test_fleet
async def test_a_short_cut_costs_nothing(fleet: LocalFleet) -> None:
    """The host's run goes on meanwhile, and what it recorded is taken afterwards."""
    fleet.hosts["hv1"].seconds = 1.5
    folder = fleet.prepared(reconnect=60.0)
    async with fleet.under_way(folder) as run:
        await until(fleet.hosts["hv1"].in_a_cell, "a cell on hv1", run=run)
        fleet.hosts["hv1"].cut()
        verdict = await run
    assert verdict.outcome is Outcome.PASSED
    assert _outcomes(folder) == {"passed": 6}
    events = events_of(folder)
    assert [event.reason for event in events if isinstance(event, CellWithdrawn)] == []
    assert Counter(event.cell for event in events if isinstance(event, CellStarted)).most_common(1)[0][1] == 1
    assert "hv1 is back" in _texts(folder)


@of_test_fleet
async def test_a_runner_that_is_too_busy_to_answer_is_not_lost(fleet: LocalFleet) -> None:
    """It stands still for longer than it is given to answer that the controller is still there, and ends its cell."""
    fleet.hosts["hv1"].seconds = 16.0
    folder = fleet.prepared(hold=12.0)
    async with fleet.under_way(folder) as run:
        await until(fleet.hosts["hv1"].in_a_cell, "a cell on hv1", run=run)
        runner = fleet.hosts["hv1"].pid("runner_pid")
        os.kill(runner, signal.SIGSTOP)
        try:
            await asyncio.sleep(14.0)
        finally:
            os.kill(runner, signal.SIGCONT)
        verdict = await run
    assert verdict.outcome is Outcome.PASSED, (verdict, _texts(folder))
    assert [event.reason for event in events_of(folder) if isinstance(event, CellWithdrawn)] == []


@of_test_fleet
async def test_a_block_goes_whole_to_another_host(fleet: LocalFleet) -> None:
    """Spread: where a host is lost in the middle of a block, all cells of the block count from one other host."""
    fleet.hosts["hv1"].seconds = 1.0
    folder = fleet.prepared(spread=True, repeats=3)
    async with fleet.under_way(folder) as run:
        host = fleet.hosts["hv1"]
        await until(lambda: len(host.events("CellStarted")) == 2, "the second cell of a block on hv1", run=run)
        host.off = True
        host.cut()
        verdict = await run
    assert verdict.outcome is Outcome.PASSED, verdict
    assert _outcomes(folder) == {"passed": 6}
    hosts: dict[int, set[str]] = {}
    for cell in _timeline(folder).cells.values():
        hosts.setdefault(cell.told.repeat, set()).add(cell.host)
    assert all(len(one) == 1 and "hv1" not in one for one in hosts.values()), hosts


@of_test_fleet
async def test_a_stop_ends_the_runs_of_all_hosts(fleet: LocalFleet) -> None:
    """What is under way is aborted, and no host has a run left."""
    for host in fleet.hosts.values():
        host.seconds = 60.0
    folder = fleet.prepared()
    async with fleet.under_way(folder) as run:
        for host in fleet.hosts.values():
            await until(host.in_a_cell, "a cell", run=run)
        assert fleet.controller is not None
        fleet.controller.stop(ExitCode.INTERRUPTED, "the test")
        verdict = await run
    assert (verdict.outcome, verdict.exit_code) == (Outcome.ABORTED, ExitCode.INTERRUPTED)
    assert not any(host.records() for host in fleet.hosts.values())


@of_test_fleet
async def test_another_controller_goes_on(fleet: LocalFleet) -> None:
    """A killed controller leaves the hosts' runs waiting; the next one takes up each cell where it is."""
    folder = fleet.prepared()
    words = [str(fleet.folder.parent), str(folder.path), "3"]
    first = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.fleet.local_controller", *words, cwd=ROOT)
    await until(lambda: _outcomes(folder) == {"none": 3}, "a cell on each host, none of which has ended")
    first.kill()
    await first.wait()
    verdict = await fleet.carried_out(folder)
    assert verdict.outcome is Outcome.PASSED, verdict
    assert _outcomes(folder) == {"passed": 6}
    events = events_of(folder)
    assert [event for event in events if isinstance(event, CellWithdrawn)] == []
    assert Counter(event.cell for event in events if isinstance(event, CellStarted)).most_common(1)[0][1] == 1


@of_test_fleet
async def test_a_host_whose_run_has_ended_meanwhile_begins_another(fleet: LocalFleet) -> None:
    """What it had ended is taken from there, what it had not is measured anew."""
    folder = fleet.prepared(hold=10.0)
    words = [str(fleet.folder.parent), str(folder.path), "3"]
    first = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.fleet.local_controller", *words, cwd=ROOT)
    for host in fleet.hosts.values():
        await until(host.in_a_cell, "a cell")
    first.kill()
    await first.wait()
    for host in fleet.hosts.values():
        await until(lambda host=host: host.events("RunEnded"), "the end of the host's own run")  # type: ignore[misc]
        assert "nobody asked for a further cell" in str(host.events("RunEnded"))
    read_fleet_request(folder).model_copy(update={"hold": 120.0}).write(folder)
    verdict = await fleet.carried_out(folder)
    assert verdict.outcome is Outcome.PASSED, verdict
    assert _outcomes(folder) == {"passed": 6}
    assert Counter(type(event) for event in events_of(folder))[CellEnded] == 6
    assert [record.name for host in fleet.hosts.values() for record in host.records()] == [], (verdict, _texts(folder))


SIXTY = """
name: sixty
guests: {one: {memory: 128 MiB}}
workloads: {primes: {kind: cpu, on: one, threads: 1, max_prime: 1000, events: 10}}
axes: {cache: [none, writeback]}
allow: {noise: true}
"""


@of_test_fleet
async def test_sixty_cells_over_three_hosts_are_there_once_each(fleet: LocalFleet) -> None:
    """All hosts at once: thirty repeats of two cells, spread; each cell ends once, and each host has its share."""
    folder = fleet.prepared(text=SIXTY, spread=True, repeats=30)
    verdict = await fleet.carried_out(folder)
    assert verdict.outcome is Outcome.PASSED, verdict
    ended = Counter(event.cell for event in events_of(folder) if isinstance(event, CellEnded))
    assert ended == dict.fromkeys(range(1, 61), 1)
    shares = Counter(cell.host for cell in _timeline(folder).cells.values())
    assert sum(shares.values()) == 60
    assert len(shares) == 3 and min(shares.values()) >= 10, shares
