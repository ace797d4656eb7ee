"""The cache mode is switched while the workloads of a cell run, over a hypervisor in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.disk import FakeDisk
from tests.lab.one_cell import Lab, scenario_plan, working
from vmlab.hypervisor.disks.cache_switch import DrainTooLong, SwitchBrokenOff
from vmlab.model.cell_event import CacheProved, CacheSwitched
from vmlab.model.errors import CommandFailed, RefusedError, UsageError
from vmlab.model.event import CommandReceived, Notice
from vmlab.model.run import Outcome

BOTH = {"t1-quick", "t1-slow"}


async def test_all_guests_are_switched_proved_and_the_cell_is_a_reading_of_neither(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        answer = await cell.live["cache"].switch("none", "test")
        assert {spec.resources.cache for spec in lab.hypervisor.running.values()} == {"none"}
    (switched,) = lab.of(CacheSwitched)
    assert (switched.cell, switched.origin, switched.before, switched.after) == (1, "test", "writeback", "none")
    assert answer == switched and switched.pauses_ms == {"t1-quick": 5.0, "t1-slow": 400.0}
    assert (switched.drained_seconds, switched.drained_bytes) == (0.5, 2000)
    assert [(event.command, event.origin) for event in lab.of(CommandReceived)] == [("set cache none now", "test")]
    later = lab.events[lab.events.index(switched) :]
    proofs = [event.proof for event in later if isinstance(event, CacheProved)]
    assert len(proofs) == 2 and all(proof.agrees and proof.o_direct for proof in proofs)
    assert lab.ended().outcome == Outcome.INVALID
    (reason,) = lab.ended().reasons
    assert "from writeback to none while it ran: a change mid-run invalidates the cell" in reason
    told = [notice.text for notice in lab.of(Notice) if notice.level == "warning"]
    assert any("t1-slow for 400 ms" in text for text in told)
    assert not any("t1-quick may have" in text for text in told)


async def test_an_emulated_disk_ends_what_is_under_way_while_its_guests_are_switched(tmp_path: Path) -> None:
    disk = FakeDisk()
    async with working(tmp_path, disk=disk) as (lab, cell):
        lab.hypervisor.calls = disk.asked
        await cell.live["cache"].switch("none", "test")
    at = disk.asked.index("switch_cache")
    assert disk.asked[at - 1 : at + 2] == ["lift", "switch_cache", "set"]


async def test_it_can_be_switched_to_and_fro(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        for mode in ("none", "writeback", "none"):
            await cell.live["cache"].switch(mode, "test")
    assert [event.before for event in lab.of(CacheSwitched)] == ["writeback", "none", "writeback"]
    (reason,) = lab.ended().reasons
    assert reason.startswith("the cache mode changed 3 times, first from writeback to none while it ran: ")


@pytest.mark.parametrize("mode", ["writethrough", "directsync", "unsafe"])
async def test_a_mode_that_changes_what_guests_were_promised_is_refused(mode: str, tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        with pytest.raises(UsageError, match=f"cache {mode} promises .* only none and writeback can be switched"):
            await cell.live["cache"].switch(mode, "test")
    assert lab.ended().outcome == Outcome.PASSED and not lab.of(CommandReceived)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("memory: 128 MiB, cpu_shares: 200", "memory: 128 MiB, cpu_shares: 200, cache: none", "differ in cache mode"),
        ("memory: 128 MiB", "memory: 128 MiB, cache: none", "cell 1 has cache none already"),
        ("memory: 128 MiB", "memory: 128 MiB, cache: directsync", "cache directsync promises"),
    ],
)
async def test_guests_that_have_other_modes_keep_them(before: str, after: str, words: str, tmp_path: Path) -> None:
    async with working(tmp_path, lambda text: text.replace(before, after)) as (lab, cell):
        with pytest.raises(UsageError, match=words):
            await cell.live["cache"].switch("none", "test")
        assert "drain_disks" not in lab.hypervisor.calls
    assert lab.ended().outcome == Outcome.PASSED


async def test_a_disk_in_a_pool_keeps_its_mode(tmp_path: Path) -> None:
    before = "memory: 128 MiB, cpu_shares: 200"
    plan = scenario_plan(lambda text: text.replace(before, f"{before}, data: 1 GiB, backing: 'rbd:lab'"))
    with pytest.raises(UsageError, match="is in a Ceph pool, and keeps the mode it was opened with"):
        await Lab(tmp_path, "true", plan).cell().live["cache"].switch("none", "test")


async def test_nonsense_is_refused(tmp_path: Path) -> None:
    async with working(tmp_path) as (_, cell):
        with pytest.raises(UsageError, match="there is no cache mode cold"):
            await cell.live["cache"].switch("cold", "test")


async def test_before_and_after_the_workloads_there_is_nothing_to_switch(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        with pytest.raises(UsageError, match="do not run now"):
            await lab.cell().live["cache"].switch("none", "test")
    with pytest.raises(UsageError, match="do not run now"):
        await cell.live["cache"].switch("none", "test")
    assert "drain_disks" not in lab.hypervisor.calls


async def test_dirty_pages_that_take_too_long_change_nothing_and_the_next_cells_are_offered(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        lab.hypervisor.drain_fault = DrainTooLong("the disks have still dirty pages after 30 s of writing")
        with pytest.raises(CommandFailed, match=r"still dirty pages .*; the cells to come can have it") as raised:
            await cell.live["cache"].switch("none", "test")
        assert "switch_cache" not in lab.hypervisor.calls
    assert str(raised.value) in [notice.text for notice in lab.of(Notice)]
    assert lab.ended().outcome == Outcome.PASSED and not lab.of(CacheSwitched)


async def test_a_switch_that_was_put_back_spoils_the_cell_all_the_same(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        lab.hypervisor.switch_fault = SwitchBrokenOff("t1-slow: no; all disks are as they were")
        with pytest.raises(CommandFailed, match="t1-slow: no; all disks are as they were"):
            await cell.live["cache"].switch("none", "test")
        lab.hypervisor.switch_fault = None
        await cell.live["cache"].switch("none", "test")
    assert lab.ended().outcome == Outcome.INVALID
    assert "to none while it ran failed: t1-slow: no" in lab.ended().reasons[0]


async def test_a_disk_without_o_direct_is_refused_and_the_cell_stays_valid(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        lab.hypervisor.switch_fault = RefusedError("cache=none needs O_DIRECT")
        with pytest.raises(RefusedError, match="needs O_DIRECT"):
            await cell.live["cache"].switch("none", "test")
    assert lab.ended().outcome == Outcome.PASSED


async def test_a_disk_that_lies_is_told(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        lab.hypervisor.lying = frozenset({"slow"})
        with pytest.raises(CommandFailed, match=r"slow: .*t1-slow.qcow2 was switched, and is not in cache mode none"):
            await cell.live["cache"].switch("none", "test")
    assert lab.ended().outcome == Outcome.INVALID


async def test_workloads_that_end_while_pages_are_written_are_not_switched(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, cell):
        lab.hypervisor.may_drain.clear()
        switching = asyncio.ensure_future(cell.live["cache"].switch("none", "test"))
        await asyncio.wait_for(lab.hypervisor.draining.wait(), 60)
        with pytest.raises(UsageError, match="is being switched already"):
            await cell.live["cache"].switch("none", "test")
    with pytest.raises(CommandFailed, match="ended before; nothing was changed"):
        await switching
    assert "switch_cache" not in lab.hypervisor.calls
    assert lab.ended().outcome == Outcome.PASSED and not lab.of(CacheSwitched)


async def test_a_stopped_run_calls_the_switch_off(tmp_path: Path) -> None:
    script = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    lab = Lab(tmp_path, script, scenario_plan())
    cell = lab.cell()
    running = asyncio.ensure_future(cell.run())
    await asyncio.wait_for(lab.begun.wait(), 60)
    lab.hypervisor.may_drain.clear()
    switching = asyncio.ensure_future(cell.live["cache"].switch("none", "test"))
    await asyncio.wait_for(lab.hypervisor.draining.wait(), 60)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(CommandFailed):
        await switching
    (tmp_path / "go").touch()
    assert lab.ended().outcome == Outcome.ABORTED
