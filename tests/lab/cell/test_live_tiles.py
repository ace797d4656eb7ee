"""A tile is added to a looped cell and retired again, by the real `Runner` over guests in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lab.runs import MemoryRun
from tests.lab.sys_folder import Sys
from tests.waiting import until
from vmlab.lab.cell.undisturbed import Undisturbed
from vmlab.lab.commands import coming_cells
from vmlab.lab.run.runner import Runner
from vmlab.model.cell_event import (
    GuestStateChanged,
    PhaseStarted,
    RoundEnded,
    TilesChanged,
    WorkloadEnded,
)
from vmlab.model.errors import RefusedError, UsageError, VmlabError
from vmlab.model.event import (
    CommandReceived,
    Event,
    Notice,
)
from vmlab.model.run import Phase
from vmlab.plan.terms import HostFacts, Overrides

pytestmark = pytest.mark.usefixtures("own_folders")
LOOPED = Overrides(size="full", loop=3600.0, sets=("order=as written",))
ROOM = HostFacts(2**34, 2**34, 2**40, 2, "tcg")
Steps = Callable[["Show"], Coroutine[Any, Any, None]]


class Show(MemoryRun):
    """A looped run that is asked for changes once its workloads work, by `steps`; its loop is ended after them."""

    since = 0
    """How many events had come when a change was asked for last, or when what was heard last had come."""

    async def changed(self, count: int) -> dict[str, Any]:
        """Ask for a change; the answer may come after events that it leads to."""
        self.since = len(self.events)
        return await self.command("set", tiles=count, now=True)

    async def changed_when_done(self, count: int) -> None:
        """Ask for a change again and again while an earlier one is being made."""

        async with asyncio.timeout(120):
            while True:
                try:
                    await self.changed(count)
                except UsageError as refused:
                    assert "is being added or retired; wait until that is done" in str(refused)
                    await asyncio.sleep(0.02)
                else:
                    return

    async def heard(self, wanted: Callable[[Event], bool], what: str) -> None:
        """Until an event is as wanted that came after the last change was asked for, and after what was heard last."""

        def found() -> bool:
            place = next((n for n in range(self.since, len(self.events)) if wanted(self.events[n])), None)
            self.since = self.since if place is None else place + 1
            return place is not None

        await until(found, what)

    async def shown(self, steps: Steps) -> str:
        """The cell's outcome. What a step raises is raised when the run is over."""
        begun: list[asyncio.Future[None]] = []

        async def act() -> None:
            try:
                await steps(self)
            finally:
                await self.command("set", end=True, now=True)

        def hear(event: Event, _run: MemoryRun) -> None:
            if isinstance(event, PhaseStarted) and event.phase == Phase.EXECUTE and not begun:
                begun.append(asyncio.ensure_future(act()))

        self.on.append(hear)
        async with asyncio.timeout(240):
            await self.run()
        await begun[0]
        ((outcome, _),) = self.outcomes()
        return outcome


def of_tile(tile: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, RoundEnded) and event.tile == tile and event.round >= 2


def tiles_are(count: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, TilesChanged) and event.after == count


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coming_cells, "read_host_facts", lambda _folder, _roots: ROOM)


async def test_a_tile_is_added_works_in_rounds_and_is_retired_cleanly(monkeypatch: pytest.MonkeyPatch) -> None:
    left: set[str] = set()
    monkeypatch.setattr(Undisturbed, "leave", lambda self, names: left.update({*names} & {*self._guests.names}))

    async def steps(show: Show) -> None:
        answer = await show.changed(2)
        assert (answer["before"], answer["after"]) == (1, 2)
        await show.heard(of_tile(2), "the second tile does rounds")
        assert {"t1-quick", "t2-quick", "t2-slow"} <= show.hypervisor.running.keys()
        await show.changed_when_done(1)
        await show.heard(lambda event: isinstance(event, GuestStateChanged) and event.state == "gone", "guests went")
        await show.heard(of_tile(1), "the first tile goes on")
        assert set(show.hypervisor.running) == {"t1-quick", "t1-slow"}
        assert left == {"t2-quick", "t2-slow"}, "what is watched is told before its guests go"

    show = Show(overrides=LOOPED)
    assert await show.shown(steps) == "invalid"
    assert [(one.before, one.after) for one in show.of(TilesChanged)] == [(1, 2), (2, 1)]
    (reason,) = show.outcomes()[0][1]
    assert reason.startswith(
        "the number of tiles changed 2 times, first from 1 to 2 while it ran: a change mid-run invalidates the cell"
    )
    assert [one.command for one in show.of(CommandReceived)][:2] == ["set tiles 2 now", "set tiles 1 now"]
    assert sorted((one.tile, one.workload, one.outcome) for one in show.of(WorkloadEnded)) == [
        (tile, name, "passed") for tile in (1, 2) for name in ("quick", "slow")
    ]
    rounds = [one for one in show.of(RoundEnded) if one.tile == 2]
    assert rounds and all(one.outcome == "passed" for one in rounds)
    assert show.hypervisor.running == {}


async def test_a_retired_tile_comes_back() -> None:
    async def steps(show: Show) -> None:
        for count in (2, 1, 2):
            await show.changed_when_done(count)
            await show.heard(tiles_are(count), f"there are {count} tiles")
            await show.heard(of_tile(1), "the first tile goes on, and what was begun is done")

    show = Show(overrides=LOOPED)
    assert await show.shown(steps) == "invalid"
    assert [one.after for one in show.of(TilesChanged)] == [2, 1, 2]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "cell 1 has 1 now; one tile at a time"),
        (3, "cell 1 has 1 now; one tile at a time"),
        (0, "a cell has at least one tile, and cannot have 0"),
        (True, "tiles cannot be True"),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(count: int, words: str) -> None:
    await refused(Show(overrides=LOOPED), count, UsageError, words)


async def test_without_a_loop_or_without_snapshots_no_tile_is_added() -> None:
    await refused(Show(overrides=replace(LOOPED, cold=True)), 2, UsageError, "were booted; a tile is added from snapsh")


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (replace(ROOM, memory_available_bytes=2**20), r"tile 2 needs .* of memory and the host has 1 MiB free now"),
        (replace(ROOM, disk_free_bytes=-1), r"tile 2 will write .* and the disk has .* free now"),
    ],
)
async def test_a_host_without_room_refuses_it(room: HostFacts, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coming_cells, "read_host_facts", lambda _folder, _roots: room)
    await refused(Show(overrides=LOOPED), 2, RefusedError, words)


async def refused(show: Show, count: int, kind: type[VmlabError], words: str) -> None:
    async def steps(_show: Show) -> None:
        with pytest.raises(kind, match=words):
            await show.changed(count)

    assert await show.shown(steps) == "passed"
    assert not show.of(TilesChanged) and "t2-quick" not in show.hypervisor.running


async def test_while_the_cache_mode_or_ksm_is_being_switched_no_tile_is_added(tmp_path: Path) -> None:
    sys = Sys(tmp_path)
    # KSM that goes off waits until it has looked at all memory twice.
    sys.write("run", "1")
    sys.write("full_scans", "5")

    async def refused_while(show: Show, what: str, switching: asyncio.Future[dict[str, Any]]) -> None:
        with pytest.raises(UsageError, match=f"{what} of cell 1 is being switched; wait until that is done"):
            await show.changed(2)
        assert not switching.done()

    async def steps(show: Show) -> None:
        show.hypervisor.may_drain.clear()
        switching = asyncio.ensure_future(show.command("set", cache="none", now=True))
        await show.hypervisor.draining.wait()
        await refused_while(show, "cache", switching)
        show.hypervisor.may_drain.set()
        await switching
        switching = asyncio.ensure_future(show.command("set", ksm="off", now=True))
        await until(lambda: show.hypervisor.unmergeable, "the guests are unmerged")
        await refused_while(show, "ksm", switching)
        sys.write("full_scans", "7")
        await switching

    show = Show(overrides=LOOPED, parts={"settings_keeper": sys.of_run})
    assert await show.shown(steps) == "invalid"
    assert not show.of(TilesChanged)


async def test_a_tile_that_joined_while_ksm_was_off_is_unmerged_with_the_others(tmp_path: Path) -> None:
    sys = Sys(tmp_path)
    sys.write("run", "1")
    first = {"t1-quick", "t1-slow"}
    unmerged: list[set[str]] = []

    async def switched(show: Show, state: str) -> None:
        await show.command("set", ksm=state, now=True)
        unmerged.append(set(show.hypervisor.unmergeable))

    async def steps(show: Show) -> None:
        await switched(show, "off")
        await show.changed(2)
        await show.heard(of_tile(2), "the second tile does rounds")
        await switched(show, "on")
        await switched(show, "off")

    show = Show(overrides=LOOPED, parts={"settings_keeper": sys.of_run})
    assert await show.shown(steps) == "invalid"
    assert unmerged == [first, set(), first | {"t2-quick", "t2-slow"}]
    reasons = show.outcomes()[0][1]
    assert {reason.split(" changed ")[0] for reason in reasons} == {"the number of tiles", "the host's KSM"}


async def test_guests_that_do_not_start_are_cleared_away_and_what_ran_goes_on() -> None:
    async def steps(show: Show) -> None:
        show.hypervisor.fail_create = "t2-slow"
        await show.changed(2)
        await show.heard(lambda event: isinstance(event, Notice) and "tile 2 was not added" in event.text, "it failed")
        await show.heard(of_tile(1), "the first tile goes on")
        assert set(show.hypervisor.running) == {"t1-quick", "t1-slow"}

    show = Show(overrides=LOOPED)
    assert await show.shown(steps) == "passed"
    assert not show.of(TilesChanged)


async def test_a_loop_that_ends_meanwhile_clears_the_coming_tile_away() -> None:
    async def steps(show: Show) -> None:
        await show.changed(2)

    show = Show(overrides=LOOPED)
    assert await show.shown(steps) in ("passed", "invalid")
    assert show.hypervisor.running == {} and isinstance(Runner, type)
