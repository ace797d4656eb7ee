"""Makes a guest of an added image one of the lab, over SSH alone: name, hosts, clock, and its role's set-up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

import asyncssh

from vmlab.guests.channel import Channel, GuestShell
from vmlab.guests.identity import ClockReading, settle_clock
from vmlab.guests.image.added import System
from vmlab.guests.image.recipe import PAYLOAD, setup_environment
from vmlab.guests.ssh import SshShell
from vmlab.guests.windows_shell import WindowsShell
from vmlab.model.concurrency import within
from vmlab.model.errors import GuestError
from vmlab.model.names import DATA_FOLDER
from vmlab.model.roles import ROLES
from vmlab.workloads.contract import Shell
from vmlab.workloads.services import LAB_USER
from vmlab.workloads.verification import UNREADABLE

_SETTLED_SECONDS = 240.0
_FOLDER = "/run/vmlab/setup"

_NAME = f"""\
echo "$1" >/proc/sys/kernel/hostname
echo "$1" >/etc/hostname
id {LAB_USER} >/dev/null 2>&1 || useradd --create-home --shell /usr/sbin/nologin {LAB_USER}
mkdir -p {DATA_FOLDER}
"""


async def log_in(
    name: str, address: str, *, system: System, user: str, key: asyncssh.SSHKey, deadline: float
) -> SshShell:
    """The shell of a guest in which `system` runs. Raises as `SshShell.log_in`."""
    shell = WindowsShell if system == "windows" else SshShell
    return await shell.log_in(name, address, user=user, key=key, deadline=deadline)


async def wait_until_booted(shell: Shell) -> None:
    """Return when the guest's own boot is over, whatever of it failed. Raises GuestError, and DeadlineExceeded."""
    await shell.run(["systemctl", "is-system-running", "--wait"], deadline=_SETTLED_SECONDS, check=False)


async def name_guest(shell: Shell, hostname: str, hosts: str) -> None:
    """Give the guest its name, and those of all guests: `hosts` are lines of /etc/hosts. Raises as `Shell.run`."""
    own = f"127.0.0.1 localhost\n{shell.address} {hostname}\n"
    await shell.write("/etc/hosts", (own + hosts).encode())
    await shell.run(["sh", "-eu", "-c", _NAME, "name", hostname])


async def set_clock(shell: GuestShell, deadline: float) -> ClockReading:
    """Step the guest's clock to the host's, as `settle_clock` does. Raises GuestError, and DeadlineExceeded."""
    channel = await shell.launch(["python3", "-I", "-S", "-c", _clock_program()])
    try:
        async with within(deadline, f"{shell.name}: its clock could not be set within {deadline:.0f} s"):
            return await _settled(channel, shell.name)
    finally:
        await channel.close()


async def _settled(channel: Channel, name: str) -> ClockReading:
    async def ask(order: dict[str, Any]) -> float:
        await channel.send(json.dumps(order))
        said = await channel.receive()
        try:
            return float(json.loads(said)["clock"])
        except UNREADABLE as error:
            raise GuestError(f"{name}: its clock cannot be read or set: {said[:120] or 'it said nothing'}") from error

    async def tell(_command: str, _arguments: object, *, deadline: float) -> int:
        return round(await ask({"ping": 0}) * 1e9)

    async def step(nanoseconds: int) -> None:
        await ask({"ping": 0, "step": nanoseconds})

    return await settle_clock(tell, step)


async def set_up_roles(shell: Shell, roles: Iterable[str], deadline: float) -> None:
    """Set up the servers of `roles` as in the lab's own image; they do not run afterwards. Raises as `Shell.run`."""
    for role in roles:
        program = ROLES[role].setup
        await shell.run(["systemctl", "stop", *ROLES[role].units], deadline=deadline)
        await shell.write(f"{_FOLDER}/{program}", (PAYLOAD / "setup" / program).read_bytes())
        given = [f"{name}={value}" for name, value in setup_environment().items()]
        await shell.run(["env", *given, "sh", "-eu", f"{_FOLDER}/{program}"], deadline=deadline)
        await shell.run(["systemctl", "daemon-reload"], deadline=deadline)


@cache
def _clock_program() -> str:
    return resources.files("vmlab.guests.payload").joinpath("set_clock.py").read_text(encoding="utf-8")
