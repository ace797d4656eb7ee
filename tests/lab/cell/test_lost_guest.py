"""A guest that dies ends its cell at once, in every phase, and the cell says which one and why."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hypervisor import obliging_agent
from tests.fakes.image import small_image
from tests.lab.one_cell import REPORT, Lab, lab_of
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.lab.provision.disk_integrity import Integrity
from vmlab.lab.provision.snapshot_provider import SnapshotProvider
from vmlab.model.cell_event import (
    GuestStateChanged,
    PhaseEnded,
    PhaseStarted,
    SnapshotProgressed,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.errors import HypervisorError
from vmlab.model.event import Event, Notice
from vmlab.model.run import Outcome
from vmlab.workloads.kinds.cpu import Cpu

SOON = 60.0
"""Below every deadline of a cell's own that would end what hangs here, and far above what a busy machine takes."""

DEATH = "its QEMU died: killed by SIGKILL"
EVENTS = int(next(line for line in REPORT.splitlines() if "total number of events" in line).split()[-1])


async def dies(lab: Lab, when: Callable[[Event], bool], guest: str = "t1-slow") -> Outcome:
    """Run the cell; guest `guest` dies at the first event that `when` holds for."""
    told = asyncio.Event()
    take = lab.take

    def also(event: Event) -> None:
        take(event)
        if when(event):
            told.set()

    lab.take = also  # type: ignore[method-assign]
    async with asyncio.timeout(SOON):
        running = asyncio.ensure_future(lab.cell().run())
        await told.wait()
        lab.hypervisor.lose(guest)
        return await running


def begins(phase: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, PhaseStarted) and event.phase == phase


def require_named_and_cleared(lab: Lab, outcome: Outcome) -> None:
    assert outcome is Outcome.FAILED
    assert lab.ended().outcome == "failed"
    assert lab.ended().reasons == [f"t1-slow: {DEATH}"]
    assert [event.phase for event in lab.of(PhaseEnded)][-1] == "clean up"
    assert lab.hypervisor.running == {}
    assert all(guest.closed for guest in lab.guests)


async def test_in_provision_nobody_waits_for_its_agent(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)

    def mute(name: str, command: str, arguments: dict[str, Any]) -> Any:
        raise HypervisorError("the guest agent is not connected")

    lab.hypervisor.agent_answer = mute
    outcome = await dies(lab, lambda event: isinstance(event, GuestStateChanged) and event.state == "created")
    require_named_and_cleared(lab, outcome)


async def test_in_prepare_no_command_is_waited_for(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    lab.hanging = frozenset({"sh"})
    require_named_and_cleared(lab, await dies(lab, begins("prepare")))


async def test_in_execute_the_client_is_not_blamed(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS, "echo begun; sleep 3600")
    require_named_and_cleared(lab, await dies(lab, lambda _event: len(lab.of(WorkloadStarted)) == 2))
    assert {event.outcome for event in lab.of(WorkloadEnded)} == {"aborted"}
    assert {event.workload for event in lab.of(WorkloadEnded)} == {"quick", "slow"}


async def test_in_collect_no_verification_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(*_: object) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(Cpu, "collect", hangs)
    lab = lab_of(tmp_path, EVENTS)
    require_named_and_cleared(lab, await dies(lab, begins("collect")))
    assert {event.outcome for event in lab.of(WorkloadEnded)} == {"aborted"}


async def test_what_failed_for_its_death_does_not_stand_in_its_place(tmp_path: Path) -> None:
    """The agent is the first to know, some milliseconds before the death is told."""
    lab = lab_of(tmp_path, EVENTS)

    def dying(name: str, command: str, arguments: dict[str, Any]) -> Any:
        if command == "guest-get-time" and name == "t1-slow":
            asyncio.get_running_loop().call_later(0.1, lab.hypervisor.lose, name)
            raise HypervisorError("End of file while reading data")
        return obliging_agent(name, command, arguments)

    lab.hypervisor.agent_answer = dying
    lab.timing = replace(lab.timing, cause=SOON)
    async with asyncio.timeout(2 * SOON):
        require_named_and_cleared(lab, await lab.cell().run())


async def test_a_guest_that_the_cell_itself_ends_is_no_death(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    assert await lab.cell().run() is Outcome.PASSED
    assert "destroy" in lab.hypervisor.calls


def freezing(lab: Lab) -> None:
    """Have guests frozen, of a small image in a cache of the test's own."""
    built = small_image()
    lab.image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
    lab.snapshot_provider = SnapshotProvider(lab.hypervisor, lab.image, 1, lab.take, Integrity(built, lab.take))


async def test_a_template_that_dies_ends_the_cell_and_leaves_no_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lab = lab_of(tmp_path, EVENTS)
    freezing(lab)

    def dying(name: str, command: str, arguments: dict[str, Any]) -> Any:
        if name in lab.hypervisor.running:
            lab.hypervisor.lose(name)
        raise HypervisorError("Domain not found")

    lab.hypervisor.agent_answer = dying
    async with asyncio.timeout(SOON):
        assert await lab.cell().run() is Outcome.FAILED
    (reason,) = lab.ended().reasons
    assert reason in [f"{guest}: {DEATH} while it was made ready to be frozen" for guest in ("quick", "slow")]
    assert lab.hypervisor.running == {}
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.name in ("ram", "disk.qcow2")]


async def test_a_template_whose_qemu_crashes_is_made_once_more_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lab = lab_of(tmp_path, EVENTS)
    freezing(lab)
    died: list[str] = []

    def crashing(name: str, command: str, arguments: dict[str, Any]) -> Any:
        if name in lab.hypervisor.running:
            died.append(name)
            lab.hypervisor.lose(name, "its QEMU died: killed by SIGSEGV", crashed=True)
        raise HypervisorError("Domain not found")

    lab.hypervisor.agent_answer = crashing
    async with asyncio.timeout(SOON):
        assert await lab.cell().run() is Outcome.FAILED
    (reason,) = lab.ended().reasons
    assert reason.endswith(": its QEMU died: killed by SIGSEGV while it was made ready to be frozen")
    again = [notice.text for notice in lab.of(Notice) if notice.text.startswith(f"{reason}; ")]
    assert again == [f"{reason}; it is booted and prepared once more"]
    assert max(died.count(name) for name in died) == 2
    guest = reason.partition(":")[0]
    stages = [event.stage for event in lab.of(SnapshotProgressed) if event.guest == guest]
    assert stages == ["waits for a processor", "boots", "boots"]
