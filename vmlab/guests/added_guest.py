"""Makes a guest of an added image one of the lab, over SSH alone: name, hosts, clock, and its role's set-up.

What it must have inside is looked for all at once, and told as one list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import asyncssh

from vmlab.guests.agent import ClockReading, settle_clock
from vmlab.guests.channel import Channel, GuestShell, last_line, payload_file
from vmlab.guests.image.added import System
from vmlab.guests.image.recipe import PAYLOAD, setup_environment
from vmlab.guests.ssh import SshShell
from vmlab.guests.windows_shell import WindowsShell
from vmlab.model.concurrency import within
from vmlab.model.errors import GuestError
from vmlab.model.names import DATA_FOLDER
from vmlab.model.roles import ADDED_ROLES, ROLES
from vmlab.workloads.registry import kinds
from vmlab.workloads.services import LAB_USER, needed_programs, program_words
from vmlab.workloads.shell import Shell
from vmlab.workloads.verification import UNREADABLE

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


async def name_guest(shell: Shell, hostname: str, hosts: str) -> None:
    """Give the guest its name, and those of all guests: `hosts` are lines of /etc/hosts. Raises as `Shell.run`."""
    own = f"127.0.0.1 localhost\n{shell.address} {hostname}\n"
    await shell.write("/etc/hosts", (own + hosts).encode())
    await shell.run(["sh", "-eu", "-c", _NAME, "name", hostname])


async def set_clock(shell: GuestShell, deadline: float) -> ClockReading:
    """Step the guest's clock to the host's, as `settle_clock` does. Raises GuestError, and DeadlineExceeded."""
    channel = await shell.launch(["python3", "-I", "-S", "-c", payload_file("set_clock.py").decode()])
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


_PYTHON = (3, 9)
_LOOK = """\
[ "$(id -u)" = 0 ] || echo root
for one in "$@"; do
    case $one in
    *.service) systemctl cat "$one" >/dev/null 2>&1 || echo "$one" ;;
    *) command -v "$one" >/dev/null 2>&1 || echo "$one" ;;
    esac
done
command -v python3 >/dev/null 2>&1 || exit 0
python3 -I -S -c 'import sys; sys.exit(sys.version_info < (%d, %d))' || echo "newer python3"
"""
"""A line for each thing that is missing; it needs nothing but a POSIX shell."""


@dataclass(frozen=True, slots=True)
class GuestNeeds:
    """The programs and systemd units that one guest must have."""

    programs: tuple[str, ...]
    units: tuple[str, ...]


def needs_of(roles: Iterable[str], tools: Iterable[str], *, data_disk: bool) -> GuestNeeds:
    """What a guest with these roles needs, whose workloads run `tools`."""
    served = tuple(roles)
    programs = [*needed_programs(served, data_disk=data_disk), *tools]
    units = [unit for role in served for unit in ROLES[role].units]
    return GuestNeeds(tuple(dict.fromkeys(programs)), tuple(dict.fromkeys(units)))


async def missing_in(shell: Shell, needs: GuestNeeds) -> list[str]:
    """What of it the guest lacks, each with the Debian package that has it. Raises GuestError, DeadlineExceeded."""
    asked = ["sh", "-c", _LOOK % _PYTHON, "look", *needs.programs, *needs.units]
    looked = await shell.run(asked, check=False)
    if looked.status != 0:
        said = (looked.stderr.strip().splitlines() or [f"exit status {looked.status}"])[-1]
        return [f"root's rights for the user, by sudo without a password ({said[:120]})"]
    return [_words(one) for one in looked.stdout.splitlines() if one]


async def missing_on_windows(shell: Shell, tools: Iterable[str]) -> list[str]:
    """What a guest that should run Windows lacks of these programs. Raises GuestError and DeadlineExceeded."""
    said = await shell.run(["cmd.exe", "/d", "/c", "ver"], check=False)
    if "Windows" not in said.stdout:
        words = last_line(said, f"nothing, and exited with {said.status}")
        return [f"Windows, with which it was added: cmd.exe said {words[:120]}"]
    looked = [(one, await shell.run([one, "--version"], check=False)) for one in dict.fromkeys(tools)]
    return [f"{one} for Windows on its PATH" for one, found in looked if found.status != 0]


def _words(one: str) -> str:
    if one == "root":
        return "root's rights for the user"
    if one == "newer python3":
        return f"python3 {_PYTHON[0]}.{_PYTHON[1]} or newer"
    return program_words(one)


def all_programs() -> tuple[str, ...]:
    """Every program that a guest of an added image may need, for some role or some kind of workload."""
    tools = (tool for kind in kinds().values() for side in kind.tools for tool in side)
    return needs_of(ADDED_ROLES, tools, data_disk=True).programs
