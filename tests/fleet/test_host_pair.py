"""Cells whose guests are on two hosts, over hosts without guests: two halves, one link, one cell in the record."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from functools import partial

import pytest

from tests.fleet.local_hosts import LocalFleet, LocalHost, events_of
from tests.lab.faked import ROOT
from tests.waiting import until
from vmlab.analysis.document import run_document
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.event import CellEnded, CellLinked, CellPlaced, CellWithdrawn, HalfEnded, HalfReached
from vmlab.model.run import Outcome
from vmlab.store.reader import RunReader


def _pair(fleet: LocalFleet) -> tuple[LocalHost, LocalHost]:
    return fleet.hosts["hv1"], fleet.hosts["hv2"]


def _has_starts(fleet: LocalFleet, count: int) -> bool:
    return len(_pair(fleet)[0].events("WorkloadStarted")) == count


async def test_both_halves_are_one_cell(fleet: LocalFleet) -> None:
    """Each cell is begun and ended once in the record, by the host that drives it, and says which guest is where."""
    folder = fleet.prepared(linked=True)
    verdict = await fleet.carried_out(folder)
    events = events_of(folder)
    assert verdict.outcome is Outcome.PASSED, verdict
    cells = RunTimeline.of(events).cells
    assert sorted(cells) == [1, 2]
    for cell in cells.values():
        assert cell.host == "hv1"
        assert cell.end is not None and cell.end.outcome == "passed"
        assert cell.half is not None and cell.half.name == "hv2"
        assert cell.linked is not None
        assert cell.linked.hosts == {"t1-client": "hv1", "t1-server": "hv2"}
        assert cell.linked.way == "ssh"
    counted = Counter(type(event) for event in events)
    assert (counted[CellEnded], counted[HalfEnded], counted[CellLinked], counted[CellPlaced]) == (2, 2, 2, 2)
    stages = [event.stage for event in events if isinstance(event, HalfReached) and event.cell == 1]
    assert stages == ["ready", "prepared", "emptied", "executed", "collected"]
    assert not any(host.records() for host in fleet.hosts.values())


async def test_results_say_which_guest_was_where_and_what_the_link_was(fleet: LocalFleet) -> None:
    """In JSON, and in words below every table."""
    folder = fleet.prepared(linked=True)
    await fleet.carried_out(folder)
    with RunReader(folder.store) as reader:
        document = run_document(reader)
    for cell in document["cells"]:
        assert cell["hypervisor"] == "hv1"
        linked = cell["linked"]
        assert linked is not None
        assert (linked["here"], linked["other"], linked["way"]) == ("hv1", "hv2", "ssh")
        assert linked["hosts"] == {"t1-client": "hv1", "t1-server": "hv2"}
        assert (linked["rounds"], linked["least_ms"], linked["median_ms"], linked["most_ms"]) == (10, 1.5, 2.25, 9.0)
    notices = document["run"]["notices"]
    assert "guests are on two hosts: client on hv1; server on hv2" in notices
    assert any(one.startswith("a link over SSH joins them, a round over it took 2.2 ms") for one in notices), notices
    assert not any("spread over hosts" in one for one in notices)


async def test_a_link_that_is_cut_ends_both_halves_and_the_cell_is_placed_anew(fleet: LocalFleet) -> None:
    """One end of the link is killed: the cell broke off, on both hosts, and is measured once more in the same runs."""
    for host in _pair(fleet):
        host.seconds = 4.0
    folder = fleet.prepared(linked=True)
    async with fleet.under_way(folder) as run:
        await until(lambda: _pair(fleet)[0].events("WorkloadStarted"), "a start", run=run)
        (end,) = _pair(fleet)[1].lines[-1].ends
        end.kill()
        verdict = await run
    events = events_of(folder)
    assert verdict.outcome is Outcome.PASSED, verdict
    (withdrawn,) = (event for event in events if isinstance(event, CellWithdrawn))
    assert withdrawn.reason.startswith("the link was cut")
    assert sorted(RunTimeline.of(events).cells) == [1, 2]
    called_off = [event for event in events if isinstance(event, CellEnded | HalfEnded) and event.outcome == "failed"]
    assert {type(event) for event in called_off} == {CellEnded, HalfEnded}
    assert all("the link was cut" in event.reasons[0] for event in called_off)
    assert not any(host.records() for host in fleet.hosts.values())


@pytest.mark.parametrize("which", [0, 1])
async def test_a_runner_that_is_killed_ends_the_other_half(fleet: LocalFleet, which: int) -> None:
    """The cell broke off, and is measured anew when its host is back; nothing is left on any."""
    for host in _pair(fleet):
        host.seconds = 4.0
    folder = fleet.prepared(linked=True)
    async with fleet.under_way(folder) as run:
        await until(lambda: _pair(fleet)[0].events("WorkloadStarted"), "a start", run=run)
        os.kill(_pair(fleet)[which].pid("runner_pid"), signal.SIGKILL)
        verdict = await run
    events = events_of(folder)
    assert verdict.outcome is Outcome.PASSED, verdict
    assert [event.cell for event in events if isinstance(event, CellWithdrawn)] == [1]
    cells = RunTimeline.of(events).cells
    assert {number: cell.end.outcome for number, cell in cells.items() if cell.end} == {1: "passed", 2: "passed"}
    assert not any(host.records() for host in fleet.hosts.values())


async def test_a_cell_that_broke_off_twice_is_recorded_with_the_reason(fleet: LocalFleet) -> None:
    """Both of its attempts lost their link; the cell after it is measured."""
    for host in _pair(fleet):
        host.seconds = 3.0
    folder = fleet.prepared(linked=True)
    async with fleet.under_way(folder) as run:
        for attempt in (1, 2):
            await until(partial(_has_starts, fleet, attempt), "a start", run=run)
            _pair(fleet)[0].lines[-1].ends[-1].kill()
        verdict = await run
    events = events_of(folder)
    assert verdict.outcome is Outcome.ABORTED
    assert len([event for event in events if isinstance(event, CellWithdrawn)]) == 2
    ended = {number: cell.end for number, cell in RunTimeline.of(events).cells.items()}
    assert {number: end.outcome for number, end in ended.items() if end} == {1: "aborted", 2: "passed"}
    assert ended[1] is not None and ended[1].reasons == ["it broke off twice"]


async def test_a_half_that_fails_fails_the_cell(fleet: LocalFleet) -> None:
    """The host that only has guests found fault: the cell has its outcome and reason, and is not measured again."""
    fleet.hosts["hv2"].load = '{"none": "invalid"}'
    folder = fleet.prepared(linked=True)
    verdict = await fleet.carried_out(folder)
    assert verdict.outcome is Outcome.INVALID, verdict
    events = events_of(folder)
    assert not [event for event in events if isinstance(event, CellWithdrawn)]
    ends = {cell.start.axes["cache"]: cell.end for cell in RunTimeline.of(events).cells.values()}
    assert {mode: end.outcome for mode, end in ends.items() if end} == {"none": "invalid", "writeback": "passed"}
    assert ends["none"] is not None and ends["none"].reasons == ["host hv2: so the test says"]


async def test_another_controller_goes_on(fleet: LocalFleet) -> None:
    """One that was killed takes the link with it: the cell is withdrawn, and the next controller measures it anew."""
    folder = fleet.prepared(linked=True)
    words = [str(fleet.folder.parent), str(folder.path), "6"]
    first = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.fleet.local_controller", *words, cwd=ROOT)
    await until(lambda: _pair(fleet)[0].events("WorkloadStarted"), "a start")
    first.kill()
    await first.wait()
    verdict = await fleet.carried_out(folder)
    events = events_of(folder)
    assert verdict.outcome is Outcome.PASSED, verdict
    (withdrawn,) = (event for event in events if isinstance(event, CellWithdrawn))
    assert withdrawn.reason == "the controller was gone, and the link with it"
    cells = RunTimeline.of(events).cells
    assert {number: cell.end.outcome for number, cell in cells.items() if cell.end} == {1: "passed", 2: "passed"}
    assert not any(host.records() for host in fleet.hosts.values())
