"""No cell is passed whose guests may have read other bytes than were saved and built. One flipped bit is enough."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hypervisor import obliging_agent
from tests.fakes.image import small_image
from tests.integrity.damage import flip
from tests.lab.one_cell import REPORT, Lab, scenario_plan
from vmlab.guests import snapshots as frozen
from vmlab.guests.image import catalog
from vmlab.guests.image.catalog import Image
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.integrity.disk_reading import Findings
from vmlab.integrity.long_work import LongWork
from vmlab.lab.provision import disk_integrity
from vmlab.lab.provision.disk_integrity import Integrity
from vmlab.lab.provision.snapshot_provider import SnapshotProvider
from vmlab.model.errors import DeadlineExceeded, GuestError
from vmlab.model.event import Notice
from vmlab.model.run import Outcome

FILES = ("ram", "disk.qcow2", "machine.json")
FACTS = ("qemu", "libvirt", "accelerator", "machine_type", "cpu_model", "host_cpu_flags")
MEND = "vmlab image build --force"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Image:
    """A small image in a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return small_image()


class FrozenLab(Lab):
    """Cells from snapshots: `script` runs in the place of sysbench, while the workloads are measured."""

    def __init__(self, folder: Path, events: int, built: Image, script: str = "") -> None:
        plan = scenario_plan(lambda text: text.replace("events: 10}", f"events: {events}}}"))
        super().__init__(folder, f"cat <<'END'\n{REPORT}\nEND\n{script}", plan)
        self.integrity = Integrity(built, self.take)
        self.image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
        self.made: list[str] = []
        self.hypervisor.facts = self._facts  # type: ignore[method-assign]
        self.snapshot_provider = SnapshotProvider(self.hypervisor, self.image, 1, self.take, self.integrity)
        self.snapshot_provider._build = self._build  # type: ignore[assignment]

    async def _facts(self) -> dict[str, Any]:
        return dict.fromkeys(FACTS, "x")

    def _build(self, cell: object, guest: Any, spec: object, name: str, folder: Path) -> Awaitable[None]:
        self.made.append(guest.guest)

        async def build() -> None:
            for file in FILES:
                (folder / file).write_text("whole")

        return build()

    def told(self) -> list[str]:
        return [notice.text for notice in self.of(Notice) if notice.level == "warning"]

    def ids(self) -> list[str]:
        return sorted(one.id for one in frozen.list_snapshots())


def flipping(file: str) -> str:
    """A line of shell that changes the first byte of every such file."""
    return f'for file in {file}; do printf X | dd of="$file" conv=notrunc status=none; done'


async def test_a_cell_whose_files_are_what_they_were_passes(tmp_path: Path, built: Image, captured_events: int) -> None:
    lab = FrozenLab(tmp_path, captured_events, built)
    assert await lab.cell().run() is Outcome.PASSED, lab.ended().reasons
    assert sorted(lab.made) == ["quick", "slow"] and lab.told() == []
    lab.events.clear()
    assert await lab.cell().run() is Outcome.PASSED
    assert len(lab.made) == 2, "they are used again"


async def test_a_disk_that_changed_while_it_was_measured_makes_the_cell_invalid_and_the_snapshot_anew(
    tmp_path: Path, built: Image, captured_events: int
) -> None:
    lab = FrozenLab(tmp_path, captured_events, built, flipping(f"{tmp_path}/cache/vmlab/snapshots/*/disk.qcow2"))
    assert await lab.cell().run() is Outcome.INVALID
    reasons = lab.ended().reasons
    assert len(reasons) == 2 and all("disk.qcow2 is not what it was" in reason for reason in reasons)
    assert lab.ids() == [], "they are discarded at once"
    assert len(lab.told()) == 2 and all("made again when it is wanted" in text for text in lab.told())
    (tmp_path / "sysbench").write_text(f"#!/bin/sh\ncat <<'END'\n{REPORT}\nEND\n")
    lab.events.clear()
    assert await lab.cell().run() is Outcome.PASSED
    assert len(lab.made) == 4


async def test_a_snapshot_that_does_not_load_is_made_again_and_the_cell_passes(
    tmp_path: Path, built: Image, captured_events: int
) -> None:
    lab = FrozenLab(tmp_path, captured_events, built)
    assert await lab.cell().run() is Outcome.PASSED
    flip(frozen.list_snapshots()[0].folder / "ram")
    lab.events.clear()
    assert await lab.cell().run() is Outcome.PASSED, lab.ended().reasons
    assert len(lab.made) == 3 and len(lab.told()) == 1
    assert "does not load" in lab.told()[0]


@pytest.mark.parametrize(("times", "outcome"), [(1, Outcome.PASSED), (2, Outcome.FAILED)])
async def test_guests_of_which_one_does_not_answer_are_restored_once_more(
    tmp_path: Path, built: Image, captured_events: int, times: int, outcome: Outcome
) -> None:
    lab, left = FrozenLab(tmp_path, captured_events, built), [times]

    def answer(name: str, command: str, arguments: dict[str, Any]) -> Any:
        if name.endswith("slow") and command == "guest-exec" and left[0]:
            left[0] -= 1
            raise DeadlineExceeded("slow: it is silent")
        return obliging_agent(name, command, arguments)

    lab.hypervisor.agent_answer = answer
    assert await lab.cell().run() is outcome, lab.ended().reasons
    assert lab.hypervisor.calls.count("restore") == 2 and sorted(lab.made) == ["quick", "slow"]
    assert lab.told() == ["cell 1: its guests are restored once more: slow: it is silent"]
    assert lab.ended().reasons == ([] if outcome is Outcome.PASSED else ["slow: it is silent"])
    assert lab.hypervisor.running == {}


async def test_a_guest_that_dies_while_it_is_restored_fails_the_cell_at_once(
    tmp_path: Path, built: Image, captured_events: int
) -> None:
    lab = FrozenLab(tmp_path, captured_events, built)

    def answer(name: str, command: str, arguments: dict[str, Any]) -> Any:
        if command == "guest-exec" and name.endswith("slow") and name in lab.hypervisor.running:
            lab.hypervisor.lose(name)
            raise GuestError("slow: its agent has gone")
        return obliging_agent(name, command, arguments)

    lab.hypervisor.agent_answer = answer
    assert await lab.cell().run() is Outcome.FAILED
    assert lab.hypervisor.calls.count("restore") == 1 and lab.told() == []
    assert "its QEMU died" in " ".join(lab.ended().reasons)


@pytest.mark.parametrize("name", catalog.FILES)
@pytest.mark.parametrize("frozen", [True, False])
async def test_an_image_that_changed_makes_the_cell_invalid_and_says_what_mends_it(
    tmp_path: Path, built: Image, captured_events: int, name: str, frozen: bool
) -> None:
    lab = FrozenLab(tmp_path, captured_events, built, flipping(str(built.folder / name)))
    if not frozen:
        lab.snapshot_provider = None
    assert await lab.cell().run() is Outcome.INVALID
    (reason,) = lab.ended().reasons
    assert reason.startswith(f"guest image vmlab-1 is damaged: {name} is not what it was") and MEND in reason
    assert lab.integrity is not None and lab.integrity.image_fault == reason


async def test_a_workload_that_failed_is_told_of_the_damage_too(
    tmp_path: Path, built: Image, captured_events: int
) -> None:
    lab = FrozenLab(tmp_path, captured_events, built, "exit 4")
    flip(built.disk)
    assert await lab.cell().run() is Outcome.FAILED
    reasons = lab.ended().reasons
    assert sum(MEND in reason for reason in reasons) == 1
    assert sum("exited with 4" in reason for reason in reasons) == 2


async def test_what_another_run_holds_stays_and_is_said_to(tmp_path: Path, built: Image, captured_events: int) -> None:
    lab = FrozenLab(tmp_path, captured_events, built)
    assert await lab.cell().run() is Outcome.PASSED
    first = lab.ids()[0]
    folder = frozen.snapshots_folder() / first
    lab.events.clear()
    with frozen.load(folder).held():
        flip(folder / "disk.qcow2")
        assert await lab.cell().run() is not Outcome.PASSED, "it is never measured as if it were whole"
    assert any(f"snapshot {first} is in use by another run" in text for text in lab.told())


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("which", [slice(0, 1), slice(0, 2)])
async def test_what_is_damaged_already_is_made_again_before_anything_is_measured(
    tmp_path: Path, built: Image, captured_events: int, name: str, which: slice
) -> None:
    lab = FrozenLab(tmp_path, captured_events, built)
    assert await lab.cell().run() is Outcome.PASSED
    damaged = lab.ids()[which]
    for one in damaged:
        flip(frozen.snapshots_folder() / one / name)
    lab.events.clear()
    assert await lab.cell().run() is Outcome.PASSED
    assert len(lab.made) == 2 + len(damaged), "and no other"
    assert all(any(one in text and "made again" in text for text in lab.told()) for one in damaged)


async def test_what_cannot_be_compared_in_time_is_not_passed(
    tmp_path: Path, built: Image, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = FrozenLab(tmp_path, captured_events, built)
    lab.snapshot_provider = None
    seen = threading.Event()

    def hangs(_files: object, work: LongWork) -> Findings:
        with contextlib.suppress(InterruptedError):
            while True:
                work.step()
                time.sleep(0.01)
        seen.set()
        return Findings({}, ())

    monkeypatch.setattr(disk_integrity, "verify", hangs)
    monkeypatch.setattr(disk_integrity, "_DEADLINE", 0.1)
    assert await lab.cell().run() is Outcome.INVALID
    assert "the guests' disks could not be compared" in lab.ended().reasons[0]
    assert await asyncio.to_thread(seen.wait, 60), "the reading is told to end"


async def test_a_file_system_without_o_direct_is_told_once(
    tmp_path: Path, built: Image, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = FrozenLab(tmp_path, captured_events, built)
    monkeypatch.setattr(disk_integrity, "verify", lambda files, _work: Findings({}, tuple(files)))
    assert await lab.cell().run() is Outcome.PASSED
    said = [text for text in lab.told() if "has no O_DIRECT" in text]
    assert len(said) == len(set(said)) == 2, "one for the images, one for the snapshots"
