"""The guests of the running cell are switched by a command while the real `Runner` runs it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.fakes.scripted_guest import Script
from tests.lab.runs import CACHES, REPORT, MemoryRun
from vmlab.hypervisor.disks.cache_switch import DrainTooLong
from vmlab.lab.process.run_ending import Verdict
from vmlab.model.cell_event import (
    CacheSwitched,
    CellStarted,
    PhaseStarted,
)
from vmlab.model.errors import CommandFailed, ExitCode, UsageError
from vmlab.model.event import (
    CellsReplanned,
    CommandReceived,
    Event,
)
from vmlab.model.run import Outcome, Phase
from vmlab.plan.terms import Overrides

pytestmark = pytest.mark.usefixtures("own_folders")
ALONE = "of a cell that runs cache, ksm or tiles can be changed, one at a time, and a loop be ended"
ONE = Overrides(size="full", cold=True, sets=("order=as written",))


class AskedRun(MemoryRun):
    """A run that is asked for a change as soon as its first cell executes; its clients work until it has answered."""

    async def asked(self, **change: Any) -> tuple[Verdict, dict[str, Any]]:
        """The verdict and the answer, which is raised when the run is over if it is an error."""
        go = asyncio.Event()
        asking: list[asyncio.Future[dict[str, Any]]] = []
        self.scripts = {name: Script(REPORT, go=go) for name in ("quick", "slow")}

        async def ask() -> dict[str, Any]:
            try:
                return await self.command("set", now=True, **change)
            finally:
                go.set()

        def hear(event: Event, _run: MemoryRun) -> None:
            if isinstance(event, PhaseStarted) and event.phase == Phase.EXECUTE and not asking:
                asking.append(asyncio.ensure_future(ask()))

        self.on.append(hear)
        verdict = await self.run()
        return verdict, await asking[0]


async def test_the_running_guests_are_switched_and_the_cells_to_come_stay_as_they_are() -> None:
    run = AskedRun(CACHES)
    verdict, answer = await run.asked(cache="writeback")
    assert (answer["cell"], answer["before"], answer["after"]) == (1, "none", "writeback")
    assert [event.after for event in run.of(CacheSwitched)] == ["writeback"]
    assert [event.axes["cache"] for event in run.of(CellStarted)] == ["none", "writeback"]
    assert not run.of(CellsReplanned)
    assert [outcome for outcome, _ in run.outcomes()] == ["invalid", "passed"]
    assert (verdict.outcome, verdict.exit_code) == (Outcome.INVALID, ExitCode.INVALID)
    assert [(event.command, event.origin) for event in run.of(CommandReceived)] == [("set cache writeback now", "test")]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cache": "unsafe"}, "cache unsafe promises"),
        ({"end": True}, "cell 1 is no loop"),
        ({"cache": "none"}, "cell 1 has cache none already"),
        ({"tiles": 2}, "cell 1 is no loop; tiles are added and retired in one alone"),
        ({"cache": "writeback", "ksm": "on"}, ALONE),
        ({}, ALONE),
    ],
)
async def test_what_cannot_be_changed_now_is_refused_and_spoils_nothing(change: dict[str, Any], words: str) -> None:
    run = AskedRun(CACHES)
    with pytest.raises(UsageError, match=words):
        await run.asked(**change)
    assert [outcome for outcome, _ in run.outcomes()] == ["passed", "passed"]
    assert not run.of(CommandReceived)


async def test_a_control_run_keeps_its_one_configuration() -> None:
    run = AskedRun("axes: {cache: [none]}\n", Overrides(size="full", cold=True, control=True))
    with pytest.raises(UsageError, match="a control run has one configuration on both sides"):
        await run.asked(cache="writeback")
    assert {outcome for outcome, _ in run.outcomes()} == {"passed"}


async def test_pages_that_are_not_written_in_time_are_a_failure_and_the_run_goes_on() -> None:
    run = AskedRun(CACHES)
    run.hypervisor.drain_fault = DrainTooLong("the disks have still dirty pages after 30 s of writing")
    with pytest.raises(CommandFailed, match="the cells to come can have it"):
        await run.asked(cache="writeback")
    assert [outcome for outcome, _ in run.outcomes()] == ["passed", "passed"]


async def test_before_the_first_cell_there_is_none_to_switch() -> None:
    run = MemoryRun(CACHES)
    opened = run.hypervisor.open
    refused: list[str] = []

    async def open_late() -> None:
        with pytest.raises(UsageError) as raised:
            await run.command("set", cache="writeback", now=True)
        refused.append(str(raised.value))
        await opened()

    run.hypervisor.open = open_late  # type: ignore[method-assign]
    assert (await run.run()).outcome is Outcome.PASSED
    assert refused == ["no cell runs now"]
