"""How restored guests are reached: by their helper, and by agent and SSH where none answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from tests.fakes.helper import ScriptedHelper
from tests.fakes.hypervisor import FakeHypervisor
from tests.fakes.local_guest import LocalGuest
from tests.lab.one_cell import scenario_plan
from vmlab.guests.helper_shell import HelperShell
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.integrity.digests import FileDigests
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.lab.provision.timing import USUAL

IMAGE = BootImage(Path("/none"), Path("/none"), Path("/none"), "")


class Saved:
    """A saved guest of the fake hypervisor."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        for name in ("ram", "disk.qcow2", "machine.json"):
            (folder / name).write_text("whole")
        self.folder = folder
        self.files: dict[str, FileDigests] = {}


class Place:
    """The guests of one cell, restored; `by_ssh` are those that SSH was opened to."""

    def __init__(self, folder: Path, *, helper: bool = True, answers_within: float = 60.0) -> None:
        self.folder = folder
        self.hypervisor = FakeHypervisor()
        self.by_ssh: list[str] = []
        self.notices: list[str] = []
        self.states: list[tuple[str, str]] = []
        self.guests = GuestSet(
            "run",
            scenario_plan().cells[0],
            self.hypervisor,
            IMAGE,
            lambda guest, state: self.states.append((guest.key, state)),
            self.connect,
            replace(USUAL, helper=answers_within),
            on_notice=self.notices.append,
            helper=helper,
        )

    async def connect(
        self, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> LocalGuest:
        self.by_ssh.append(name)
        return LocalGuest(name, address, self.folder)

    async def restore(self, helpers: dict[str, ScriptedHelper]) -> None:
        saved = {name: Saved(self.folder / name) for name in self.guests.names}
        async with AsyncExitStack() as serving:
            for name, helper in helpers.items():
                self.hypervisor.helpers[name] = self.folder / f"{name}.help"
                await serving.enter_async_context(helper.at(self.hypervisor.helpers[name]))
            await self.guests.restore(saved)
            self.kinds = {name: type(shell) for name, shell in self.guests.shells.items()}
            await self.guests.destroy()


@pytest.fixture
def names() -> Iterator[list[str]]:
    yield [guest.key for guest in scenario_plan().cells[0].guests]


async def test_a_helper_gives_the_guest_its_identity_and_is_its_shell(tmp_path: Path, names: list[str]) -> None:
    place, helpers = Place(tmp_path), {name: ScriptedHelper() for name in names}
    await place.restore(helpers)
    assert set(place.kinds.values()) == {HelperShell}
    assert place.by_ssh == [] and place.notices == []
    for name, helper in helpers.items():
        ((argv, given),) = helper.ran
        assert argv[:3] == ["perl", "-w", "-e"]
        assert given.startswith("entropy=")
        assert f"hostname={name}\n" in given
        assert [state for key, state in place.states if key == name][:4] == [
            "restored",
            "booted",
            "identified",
            "connected",
        ]


async def test_a_guest_whose_helper_is_mute_is_reached_over_ssh_with_a_notice(tmp_path: Path, names: list[str]) -> None:
    place = Place(tmp_path, answers_within=5.0)
    await place.restore({names[0]: ScriptedHelper(mute=True), names[1]: ScriptedHelper()})
    assert place.kinds == {names[0]: LocalGuest, names[1]: HelperShell}
    assert len(place.by_ssh) == 1
    (notice,) = place.notices
    assert notice == f"{names[0]}: its helper does not answer; its programs are started over SSH"


async def test_the_old_way_can_be_asked_for(tmp_path: Path, names: list[str]) -> None:
    place, helper = Place(tmp_path, helper=False), ScriptedHelper()
    await place.restore(dict.fromkeys(names, helper))
    assert set(place.kinds.values()) == {LocalGuest}
    assert helper.ran == [] and place.notices == []
