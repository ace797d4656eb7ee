"""The real `Runner` is stopped: in each phase, before it begins, over its socket, for its store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn

import pytest

from tests.fakes.scripted_guest import Script
from tests.lab.runs import CACHES, PASSED, PHASES, REPORT, SOON, MemoryRun
from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.lab.commands.command_server import ControlServer
from vmlab.lab.process.run_ending import Verdict
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    MeasurementTaken,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.errors import ExitCode, GuestError, HypervisorError, StoreError
from vmlab.model.event import CommandReceived, Event
from vmlab.model.run import Outcome
from vmlab.store.outbox import Outbox
from vmlab.workloads.shell import Shell

pytestmark = pytest.mark.usefixtures("own_folders")


def stops_at(phase: str) -> Callable[[Event, MemoryRun], None]:
    """Stop the run at the begin of a phase of its second cell."""

    def hear(event: Event, run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted) and (event.cell, event.phase) == (2, phase):
            run.runner.stop(ExitCode.TERMINATED, "SIGTERM")

    return hear


@pytest.mark.parametrize("phase", PHASES)
async def test_a_stop_ends_the_cell_in_its_phase_and_keeps_what_was_measured(phase: str) -> None:
    run = MemoryRun(CACHES + "repeats: 2\n", on=[stops_at(phase)])
    assert await run.run() == Verdict(Outcome.ABORTED, ExitCode.TERMINATED, "stopped")
    # A cell whose work is done and collected is what it is; its clean-up is not to be stopped.
    whole = phase == "clean up"
    assert run.outcomes() == [PASSED, PASSED if whole else ("aborted", ["stopped"])]
    in_second = [event.phase for event in run.of(PhaseEnded) if event.cell == 2]
    assert in_second == [*PHASES[: PHASES.index(phase)], *([] if whole else [phase]), "clean up"]
    figures = [event.cell for event in run.of(MeasurementTaken) if event.figure.metric == "run_time"]
    assert figures == [1, 1, *([2, 2] if whole else [])]
    ended = {event.workload: event.outcome for event in run.of(WorkloadEnded) if event.cell == 2}
    assert ended == ({} if phase == "provision" else dict.fromkeys(("quick", "slow"), "passed" if whole else "aborted"))
    kept = [output.name for cell, output in run.raw() if cell == 2]
    # Clients that end before the stop reaches them leave what they printed.
    assert phase == "execute" or bool(kept) == (phase in ("collect", "clean up"))
    last = run.of(CellEnded)[-1]
    assert (last.wall_seconds is None) == (phase in PHASES[:3])
    assert (last.provision.seconds is None) == (phase in PHASES[:2])
    assert run.hypervisor.running == {} and not run.hypervisor.is_open
    assert all(guest.closed for guest in run.guests)
    assert run.stored() == run.events


async def test_a_stop_before_the_run_has_begun_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = MemoryRun(CACHES)

    async def stopped(_server: ControlServer) -> None:
        run.runner.stop(ExitCode.INTERRUPTED, "SIGINT")

    monkeypatch.setattr(ControlServer, "open", stopped)
    assert await run.run() == Verdict(Outcome.ABORTED, ExitCode.INTERRUPTED, "stopped")
    assert [type(event) for event in run.events] == [CommandReceived]


async def test_a_stop_does_not_wait_for_clients_that_work_and_hangs_up_before_the_clean_up() -> None:
    run = MemoryRun(CACHES, scripts={"slow": Script(REPORT, seconds=10 * SOON)})
    open_at_clean_up: list[int] = []

    def look(event: Event, run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted) and (event.cell, event.phase) == (1, "execute"):
            run.runner.stop(ExitCode.TERMINATED, "SIGTERM")
        if isinstance(event, PhaseStarted) and event.phase == "clean up":
            open_at_clean_up.append(sum(not guest.closed for guest in run.guests))

    run.on.append(look)
    assert (await run.run()).outcome is Outcome.ABORTED
    assert open_at_clean_up == [0]


async def test_the_second_stop_changes_nothing_and_the_first_one_is_heard_over_the_socket() -> None:
    run = MemoryRun(CACHES)
    run.hypervisor.may_create.clear()
    running = asyncio.ensure_future(run.run())
    await run.until(CellStarted)
    assert await run.command("stop", signal="SIGTERM") == {"ok": True}
    run.runner.stop(ExitCode.INTERRUPTED, "again")
    assert await running == Verdict(Outcome.ABORTED, ExitCode.TERMINATED, "stopped")
    assert [(event.command, event.origin) for event in run.of(CommandReceived)] == [("stop", "test")]
    assert run.outcomes() == [("aborted", ["stopped"])]


class NotedSettings:
    """In place of the settings of the host's kernel: notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def apply(self, _wanted: object) -> None:
        self.asked.append("apply")

    def put_back(self) -> None:
        self.asked.append("put back")

    def in_force(self) -> dict[str, str]:
        return {}


@pytest.mark.parametrize("stopped", [False, True])
async def test_the_hosts_settings_are_put_back_by_the_runner_itself_while_the_hypervisor_is_open(stopped: bool) -> None:
    """The launcher would put them back too, but only when the runner has gone."""
    settings = NotedSettings()
    run = MemoryRun(CACHES, on=[stops_at("execute")] if stopped else [], parts={"settings_keeper": lambda *_: settings})
    close = run.hypervisor.close

    async def noted_close() -> None:
        settings.asked.append("close")
        await close()

    run.hypervisor.close = noted_close  # type: ignore[method-assign]
    await run.run()
    assert settings.asked == ["apply", "apply", "put back", "close"]


async def test_a_cell_whose_settings_the_host_does_not_take_has_failed_and_the_others_run() -> None:
    class Refusing(NotedSettings):
        def apply(self, _wanted: object) -> None:
            super().apply(_wanted)
            if len(self.asked) == 1:
                raise HypervisorError("/sys/block/sdz/queue/nr_requests does not take 9000: Invalid argument")

    settings = Refusing()
    run = MemoryRun(CACHES, parts={"settings_keeper": lambda *_: settings})
    assert await run.run() == Verdict(Outcome.FAILED, ExitCode.FAILED)
    refused = ["/sys/block/sdz/queue/nr_requests does not take 9000: Invalid argument"]
    assert run.outcomes() == [("failed", refused), PASSED]
    assert settings.asked == ["apply", "apply", "put back"]


async def test_a_cell_that_is_called_off_for_the_store_has_that_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    full = StoreError("run.sqlite: no space left on device")
    come = asyncio.Event()

    async def overdue(_outbox: Outbox) -> NoReturn:
        await come.wait()
        raise full

    monkeypatch.setattr(Outbox, "overdue", overdue)
    monkeypatch.setattr(Outbox, "trouble", lambda _outbox: full if come.is_set() else None)
    run = MemoryRun(CACHES, scripts={"slow": Script(REPORT, seconds=10 * SOON)})
    run.on.append(lambda event, _run: come.set() if isinstance(event, WorkloadStarted) else None)
    assert await run.run() == Verdict(Outcome.FAILED, ExitCode.FAILED, str(full))
    assert run.outcomes() == [("aborted", [str(full)])]


async def test_what_is_read_after_the_workloads_does_not_go_on_when_one_of_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[str] = []
    called_off: list[str] = []
    all_begun = asyncio.Event()

    async def wait(name: str) -> None:
        begun.append(name)
        if len(begun) == 3:
            all_begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            called_off.append(name)
            raise

    async def look(shell: Shell, _boot: str) -> None:
        if shell.name.startswith("quick"):
            await all_begun.wait()
            raise GuestError("the guest does not answer")
        await wait(shell.name)

    monkeypatch.setattr("vmlab.lab.provision.guest_set.look_at_boot", look)
    monkeypatch.setattr(WorkloadInstance, "collect", lambda one, _lost: wait(one.label))
    at_end: list[list[str]] = []
    run = MemoryRun(on=[lambda event, _run: at_end.append([*called_off]) if isinstance(event, CellEnded) else None])
    assert (await run.run()).outcome == Outcome.FAILED
    assert len(begun) == 3, "the other guest's boot, and what two workloads leave"
    assert [sorted(one) for one in at_end] == [sorted(begun)], "none goes on after its cell"
