"""What a guest of an added image must have inside: looked for all at once, and told as one list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vmlab.model.roles import ADDED_ROLES, ROLES
from vmlab.workloads.contract import Shell
from vmlab.workloads.registry import kinds
from vmlab.workloads.services import needed_programs, program_words

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
        words = (said.stderr.strip() or said.stdout.strip() or f"nothing, and exited with {said.status}").splitlines()
        return [f"Windows, with which it was added: cmd.exe said {words[-1][:120]}"]
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
