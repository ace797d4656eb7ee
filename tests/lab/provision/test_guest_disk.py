"""Runs whose guests' files lie on an emulated disk, which here only notes what is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.disk import DIED, FakeDisk
from tests.lab.runs import PASSED, MemoryRun
from vmlab.hypervisor.protocols import GuestDisk
from vmlab.model.cell_event import PhaseEnded, PhaseStarted
from vmlab.model.errors import RefusedError
from vmlab.model.event import (
    Event,
    HostProbed,
    Notice,
)
from vmlab.model.run import Outcome

pytestmark = pytest.mark.usefixtures("own_folders")
ORDERED = "host: {disk: hdd-7200}\n"
CACHES = "axes: {cache: [none, writeback]}\n"


def ordered(disk: FakeDisk, changes: str = ORDERED, *hears: Callable[[Event, MemoryRun], None]) -> MemoryRun:
    return MemoryRun(changes, parts={"guest_disk": lambda _folder, _plan: disk}, on=list(hears))


async def test_it_is_slow_while_the_workloads_run_and_at_no_other_time() -> None:
    disk = FakeDisk()

    def note(event: Event, _run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted | PhaseEnded):
            name = "begin" if isinstance(event, PhaseStarted) else "end"
            disk.asked.append(f"{name} {event.phase}")

    run = ordered(disk, ORDERED, note)
    verdict = await run.run()
    assert verdict.outcome is Outcome.PASSED, verdict
    asked = [what for what in disk.asked if what.partition(" ")[0] in ("set", "lift") or "execute" in what]
    assert asked == ["set", "begin execute", "end execute", "lift"]


async def test_it_is_open_before_the_host_is_looked_at_and_closed_after_all_cells() -> None:
    disk = FakeDisk()
    run = ordered(disk, ORDERED + CACHES)
    await run.run()
    assert run.outcomes() == [PASSED, PASSED]
    assert disk.asked[:2] == ["open", f"cover {run.image.disk.name}"]
    assert disk.asked[-1] == "close"
    (probed,) = run.of(HostProbed)
    assert (probed.host["disk"]["emulated"], probed.host["disk"]["profile"]) == (True, "hdd-7200")
    told = [event.text for event in run.of(Notice)]
    assert "emulated disk, 64 MiB in sequence: 139 MB/s, where the profile gives 140" in told


async def test_a_disk_that_cannot_be_had_refuses_the_run_before_any_guest() -> None:
    disk = FakeDisk(RefusedError("no emulated disk: /dev/fuse is missing", remedy="vmlab doctor"))
    run = ordered(disk)
    verdict = await run.run()
    assert (verdict.outcome, int(verdict.exit_code)) == (Outcome.FAILED, 3)
    assert "/dev/fuse is missing" in verdict.reason
    assert run.guests == []
    assert disk.asked == ["open", "close"]


async def test_a_disk_that_dies_fails_its_cell_with_the_cause_and_ends_the_run() -> None:
    disk = FakeDisk()

    def kill(event: Event, _run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted) and event.phase == "execute":
            disk.die()

    run = ordered(disk, ORDERED + CACHES, kill)
    verdict = await run.run()
    assert run.outcomes() == [(str(Outcome.FAILED), [DIED])]
    assert verdict.outcome is Outcome.FAILED
    assert disk.asked[-1] == "close"


async def test_without_an_order_there_is_nothing_to_do(tmp_path: Path) -> None:
    disk = GuestDisk()
    await disk.begin([tmp_path], pytest.fail)
    async with disk.covering([tmp_path]), disk.limited():
        assert (disk.pid, disk.dead) == (None, False)
    await disk.close()
    run = MemoryRun()
    await run.run()
    assert run.outcomes() == [PASSED]
    (probed,) = run.of(HostProbed)
    assert probed.host["disk"]["emulated"] is False
