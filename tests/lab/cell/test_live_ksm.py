"""The host's KSM is switched while the workloads of a cell run: guests in memory, and a dummy of /sys."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.scripted_guest import Script
from tests.lab.one_cell import Lab, working
from tests.lab.runs import CACHES, MemoryRun
from tests.lab.runs import REPORT as SHORT_REPORT
from tests.lab.sys_folder import BEFORE, KSM, Sys
from tests.waiting import until
from vmlab.lab.cell import live_switch
from vmlab.model.cell_event import (
    CellStarted,
    KsmSwitched,
    PhaseStarted,
)
from vmlab.model.errors import CommandFailed, HypervisorError, RefusedError, UsageError
from vmlab.model.event import Event, Notice
from vmlab.model.run import Outcome, Phase
from vmlab.telemetry.setting_files import full_scans
from vmlab.telemetry.source import Roots


@pytest.fixture
def sys(tmp_path: Path) -> Sys:
    return Sys(tmp_path)


def warned(lab: Lab) -> str:
    return "\n".join(notice.text for notice in lab.of(Notice) if notice.level == "warning")


async def test_it_is_switched_to_and_fro_and_the_guests_memory_is_unmerged_while_it_is_off(
    tmp_path: Path, sys: Sys
) -> None:
    async with working(tmp_path, ksm=sys.ksm()) as (lab, cell):
        answer = await cell.live["ksm"].switch("on", "test")
        assert answer == lab.of(KsmSwitched)[0]
        assert (sys.now(), sys.now("pages_to_scan"), lab.hypervisor.unmergeable) == ("1", "1000", set())
        assert "make_mergeable" not in lab.hypervisor.calls
        await cell.live["ksm"].switch("off", "test")
        assert (sys.now(), lab.hypervisor.unmergeable) == ("0", {"t1-quick", "t1-slow"})
        await cell.live["ksm"].switch("on", "test")
        assert (sys.now(), lab.hypervisor.unmergeable) == ("1", set())
    found = [(event.cell, event.origin, event.before, event.after) for event in lab.of(KsmSwitched)]
    assert found == [(1, "test", "off", "on"), (1, "test", "on", "off"), (1, "test", "off", "on")]
    assert "t1-slow for 400 ms" in warned(lab) and "t1-quick for" not in warned(lab)
    assert lab.ended().outcome == Outcome.INVALID
    (reason,) = lab.ended().reasons
    assert reason.startswith(
        "the host's KSM changed 3 times, first from off to on while it ran: a change mid-run invalidates the cell"
    )


async def test_a_guest_that_asks_for_memory_that_is_never_merged_is_left_alone(tmp_path: Path, sys: Sys) -> None:
    async with working(
        tmp_path, lambda text: text.replace("cpu_shares: 200}", "cpu_shares: 200, ksm: false}"), sys.ksm()
    ) as (lab, cell):
        await cell.live["ksm"].switch("on", "test")
        await cell.live["ksm"].switch("off", "test")
        assert lab.hypervisor.unmergeable == {"t1-slow"}


async def test_off_goes_on_until_ksm_has_counted_what_was_unmerged(
    tmp_path: Path, sys: Sys, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int | None] = []

    def looked(roots: Roots) -> int | None:
        looks.append(full_scans(roots))
        return looks[-1]

    monkeypatch.setattr(live_switch, "full_scans", looked)
    sys.write("run", "1")
    sys.write("full_scans", "5")
    async with working(tmp_path, ksm=sys.ksm(recount_seconds=600)) as (lab, cell):
        switching = asyncio.ensure_future(cell.live["ksm"].switch("off", "test"))
        await until(lambda: looks, "the guests are unmerged, and KSM's looks are counted from here on")
        assert looks[0] == 5 and lab.hypervisor.unmergeable
        sys.write("full_scans", "6")
        # Everything that can go on has done so when this is over.
        await asyncio.sleep(0.3)
        assert (sys.now(), switching.done()) == ("1", False)
        sys.write("full_scans", "7")
        assert (await switching).after == "off"
        assert sys.now() == "0"


async def test_off_does_not_wait_for_the_count_beyond_the_end_of_the_workloads(tmp_path: Path, sys: Sys) -> None:
    sys.write("run", "1")
    sys.write("full_scans", "5")
    async with working(tmp_path, ksm=sys.ksm(recount_seconds=600)) as (lab, cell):
        switching = asyncio.ensure_future(cell.live["ksm"].switch("off", "test"))
        await until(lambda: lab.hypervisor.unmergeable, "the guests are unmerged")
    assert (await switching).after == "off"
    assert (sys.now(), lab.ended().outcome) == ("0", Outcome.INVALID)


async def test_ksm_and_the_cache_mode_are_two_reasons(tmp_path: Path, sys: Sys) -> None:
    async with working(tmp_path, ksm=sys.ksm()) as (lab, cell):
        await cell.live["ksm"].switch("on", "test")
        await cell.live["cache"].switch("none", "test")
    assert [reason.split(" changed ")[0] for reason in lab.ended().reasons] == ["the host's KSM", "the cache mode"]


@pytest.mark.parametrize(
    ("pages", "ordered", "words"),
    [("1", True, "the limited memory may be too small"), (str(2**40), False, "is too much for the ")],
)
async def test_without_room_merged_pages_stay_merged_and_this_is_said(
    pages: str, ordered: bool, words: str, tmp_path: Path, sys: Sys
) -> None:
    sys.write("run", "1")
    sys.write("pages_sharing", pages)
    async with working(tmp_path, ksm=sys.ksm(ordered_memory=ordered)) as (lab, cell):
        await cell.live["ksm"].switch("off", "test")
        assert sys.now() == "0" and "make_mergeable" not in lab.hypervisor.calls
    assert "KSM is off, and what it merged stays merged until it is written" in warned(lab) and words in warned(lab)


async def test_guests_that_cannot_be_unmerged_are_told_and_ksm_is_off(tmp_path: Path, sys: Sys) -> None:
    sys.write("run", "1")
    async with working(tmp_path, ksm=sys.ksm()) as (lab, cell):
        lab.hypervisor.merge_fault = HypervisorError("qom-set: no")
        await cell.live["ksm"].switch("off", "test")
        assert sys.now() == "0"
        with pytest.raises(CommandFailed, match="qom-set: no"):
            await cell.live["ksm"].switch("on", "test")
        assert sys.now() == "0"
    assert "stays merged until it is written: qom-set: no" in warned(lab)
    assert [event.after for event in lab.of(KsmSwitched)] == ["off"]


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        ("off", UsageError, "cell 1 has ksm off already"),
        ("unmerge", UsageError, "KSM cannot be unmerge; while guests run it is on or off"),
        (["on"], UsageError, "KSM cannot be"),
        (None, UsageError, "KSM cannot be None"),
    ],
)
async def test_what_cannot_be_had_is_refused(
    state: Any, error: type[Exception], words: str, tmp_path: Path, sys: Sys
) -> None:
    async with working(tmp_path, ksm=sys.ksm()) as (lab, cell):
        with pytest.raises(error, match=words):
            await cell.live["ksm"].switch(state, "test")
    assert (sys.now(), lab.ended().outcome) == ("0", Outcome.PASSED)


async def test_a_host_without_ksm_says_so(tmp_path: Path, sys: Sys) -> None:
    (sys.roots.sys / KSM / "run").unlink()
    async with working(tmp_path, ksm=sys.ksm()) as (lab, cell):
        with pytest.raises(RefusedError, match="run is missing: this kernel has no such setting"):
            await cell.live["ksm"].switch("on", "test")
    assert lab.ended().outcome == Outcome.PASSED and not lab.of(KsmSwitched)


async def test_beside_another_run_and_without_running_workloads_nothing_is_switched(tmp_path: Path, sys: Sys) -> None:
    async with working(tmp_path, ksm=sys.ksm(others=lambda: ["another"])) as (lab, cell):
        with pytest.raises(RefusedError, match="another run measures on this host at the same time"):
            await cell.live["ksm"].switch("on", "test")
    lab.ksm = sys.ksm()
    with pytest.raises(UsageError, match="do not run now"):
        await lab.cell().live["ksm"].switch("on", "test")
    assert sys.now() == "0"


@pytest.mark.usefixtures("own_folders")
async def test_the_next_cell_and_the_end_of_the_run_find_it_as_it_was(sys: Sys) -> None:
    """Two cells; KSM is switched on in each of them."""
    go = asyncio.Event()
    begun: list[str] = []
    asking: list[asyncio.Future[dict[str, Any]]] = []
    run = MemoryRun(CACHES, parts={"settings_keeper": sys.of_run})
    run.scripts = {name: Script(SHORT_REPORT, go=go) for name in ("quick", "slow")}

    async def ask() -> dict[str, Any]:
        try:
            return await run.command("set", now=True, ksm="on")
        finally:
            go.set()

    def hear(event: Event, _run: MemoryRun) -> None:
        if isinstance(event, CellStarted):
            begun.append(sys.now())
            go.clear()
        elif isinstance(event, PhaseStarted) and event.phase == Phase.EXECUTE:
            asking.append(asyncio.ensure_future(ask()))

    run.on.append(hear)
    await run.run()
    assert [(await one)["after"] for one in asking] == ["on", "on"]
    assert begun == ["0", "0"]
    assert {name: sys.now(name) for name in BEFORE} == BEFORE
    assert [outcome for outcome, _ in run.outcomes()] == ["invalid", "invalid"]
