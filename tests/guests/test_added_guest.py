"""A guest of an added image becomes one of the lab: what it must have, its names, its clock, its role's set-up."""

from __future__ import annotations

import asyncio
import io
import json
import os
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import vmlab.guests.payload
from tests.fakes.shell import FakeShell, says
from vmlab.guests.added_guest import missing_in, name_guest, needs_of, set_clock, set_up_roles
from vmlab.guests.image.recipe import PAYLOAD, setup_environment
from vmlab.model.errors import GuestError
from vmlab.workloads.shell import RUN_DEADLINE, Completed

SET_CLOCK = Path(str(vmlab.guests.payload.__path__[0])) / "set_clock.py"


class Local(FakeShell):
    """Really runs what is asked, with the programs of one folder alone."""

    def __init__(self, folder: Path) -> None:
        super().__init__("own", "198.18.1.10")
        self._folder = folder

    async def run(
        self, argv: Sequence[str], *, stdin: str | None = None, deadline: float = RUN_DEADLINE, check: bool = True
    ) -> Completed:
        shell = shutil.which(argv[0])
        assert shell is not None
        done = await asyncio.create_subprocess_exec(
            shell, *argv[1:], env={"PATH": str(self._folder)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await done.communicate()
        return says(out.decode(), status=done.returncode or 0, stderr=err.decode())


@pytest.fixture
def local(tmp_path: Path) -> Local:
    """A guest with python3 and id, whose systemd knows smbd.service and nothing else."""
    (tmp_path / "python3").symlink_to(sys.executable)
    for name, text in (("id", "echo 0"), ("systemctl", 'test "$2" = smbd.service')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return Local(tmp_path)


async def test_all_that_is_missing_is_one_list(local: Local, tmp_path: Path) -> None:
    needs = needs_of(["fileserver"], ["mount.cifs", "/usr/lib/vmlab/stream"], data_disk=True)
    assert await missing_in(local, needs) == [
        "install (coreutils)",
        "useradd (passwd)",
        "mkfs.ext4 (e2fsprogs)",
        "blockdev (util-linux)",
        "blkdiscard (util-linux)",
        "smbd (samba)",
        "smbpasswd (samba-common-bin)",
        "testparm (samba-common-bin)",
        "mount.cifs (cifs-utils)",
        "/usr/lib/vmlab/stream (only vmlab's own image has it)",
    ]
    programs = "install useradd mkfs.ext4 blockdev blkdiscard mount.cifs smbd smbpasswd testparm"
    for name in programs.split():
        (tmp_path / name).symlink_to("/bin/true")
    assert await missing_in(local, needs_of(["fileserver"], ["mount.cifs"], data_disk=True)) == []


async def test_an_old_python_a_missing_unit_and_a_user_without_rights_are_among_them(
    local: Local, tmp_path: Path
) -> None:
    (tmp_path / "python3").unlink()
    for name, text in (("id", "echo 1000"), ("python3", "exit 1"), ("systemctl", "exit 1"), ("useradd", ":")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    missing = await missing_in(local, needs_of(["fileserver"], [], data_disk=False))
    assert missing[0] == "root's rights for the user" and missing[-1] == "python3 3.9 or newer"
    assert "smbd.service" in missing


async def test_sudo_that_asks_for_a_password_is_named() -> None:
    shell = FakeShell("own", "198.18.1.10", {"look": says("", status=1, stderr="sudo: a password is required\n")})
    (missing,) = await missing_in(shell, needs_of([], [], data_disk=False))
    assert missing == "root's rights for the user, by sudo without a password (sudo: a password is required)"


async def test_it_knows_its_name_and_all_others() -> None:
    shell = FakeShell("own", "198.18.1.10")
    await name_guest(shell, "t1-own", "198.18.1.10 t1-own\n198.18.1.11 t1-other\n")
    hosts = shell.files["/etc/hosts"].decode().splitlines()
    assert hosts[:2] == ["127.0.0.1 localhost", "198.18.1.10 t1-own"] and "198.18.1.11 t1-other" in hosts
    (command,) = shell.commands
    assert command.endswith("name t1-own")


async def test_its_role_is_set_up_as_in_the_labs_own_image() -> None:
    shell = FakeShell("own", "198.18.1.10")
    await set_up_roles(shell, ["fileserver"], 10)
    (path,) = shell.files
    assert shell.files[path] == (PAYLOAD / "setup/60-fileserver.sh").read_bytes()
    stop, run, reload = shell.commands
    assert (stop, reload) == ("systemctl stop smbd.service", "systemctl daemon-reload")
    assert run.endswith(f"sh -eu {path}")
    assert all(f"{name}={value}" in run for name, value in setup_environment().items())


async def test_a_set_up_that_fails_is_an_error() -> None:
    shell = FakeShell("own", "198.18.1.10", {"60-fileserver": says("", status=1, stderr="no smb.conf")})
    with pytest.raises(GuestError, match=r"no smb\.conf"):
        await set_up_roles(shell, ["fileserver"], 10)


class Clock:
    """`guests.channel.Channel` to a guest whose clock is off by `off` seconds."""

    def __init__(self, off: float) -> None:
        self.off = off
        self.closed = False
        self._answer = ""

    async def send(self, line: str) -> None:
        self.off += json.loads(line).get("step", 0) / 1e9
        self._answer = json.dumps({"clock": time.time() + self.off})

    async def receive(self) -> str:
        return self._answer

    async def close(self) -> None:
        self.closed = True


class Silent(Clock):
    async def receive(self) -> str:
        return ""


class Launched(FakeShell):
    def __init__(self, clock: Clock) -> None:
        super().__init__("own", "198.18.1.10")
        self.clock = clock

    async def launch(self, argv: list[str]) -> Clock:
        assert argv[-1] == SET_CLOCK.read_text()
        return self.clock

    async def close(self) -> None:
        raise AssertionError("the connection stays")


@pytest.mark.parametrize("off", [-86_400.0, 0.7])
async def test_its_clock_is_set_to_the_hosts(off: float) -> None:
    guest = Launched(Clock(off))
    reading = await set_clock(guest, 60)
    assert abs(guest.clock.off) * 1e9 <= abs(reading.offset) + reading.uncertainty
    assert abs(guest.clock.off) < abs(off) / 2 and guest.clock.closed


async def test_a_clock_that_says_nothing_is_an_error() -> None:
    guest = Launched(Silent(0.0))
    with pytest.raises(GuestError, match="own: its clock cannot be read or set: it said nothing"):
        await set_clock(guest, 60)
    assert guest.clock.closed


def test_the_guests_program_tells_the_time_and_steps_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stepped: list[int] = []

    def step(clock: int, nanoseconds: int) -> None:
        assert clock == time.CLOCK_REALTIME
        stepped.append(nanoseconds - time.time_ns())

    monkeypatch.setattr(time, "clock_settime_ns", step)
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"ping": 0}\n{"ping": 0, "step": 3600000000000}\n'))
    runpy.run_path(os.fspath(SET_CLOCK))
    told = [json.loads(line)["clock"] for line in capsys.readouterr().out.splitlines()]
    assert [abs(clock - time.time()) < 600 for clock in told] == [True, True]
    assert len(stepped) == 1 and 3000e9 < stepped[0] <= 3600e9
