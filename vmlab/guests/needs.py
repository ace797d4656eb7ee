"""What a guest of an added image must have inside: looked for all at once, and told as one list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vmlab.guests.roles import ROLE_UNITS
from vmlab.workloads.contract import Shell

_PYTHON = (3, 9)
_ALWAYS = ("python3", "systemctl", "install", "useradd")
_OF_DATA_DISK = ("mkfs.ext4", "blockdev")
_OF_ROLE = {"fileserver": ("smbd", "smbpasswd", "testparm")}
_PACKAGES = {
    "ab": "apache2-utils",
    "blockdev": "util-linux",
    "install": "coreutils",
    "mkfs.ext4": "e2fsprogs",
    "mount.cifs": "cifs-utils",
    "smbd": "samba",
    "smbpasswd": "samba-common-bin",
    "systemctl": "systemd",
    "testparm": "samba-common-bin",
    "useradd": "passwd",
}
"""The Debian package of each program that is not called as its package."""

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
    programs = [*_ALWAYS, *(_OF_DATA_DISK if data_disk else ()), *tools]
    programs += [program for role in served for program in _OF_ROLE.get(role, ())]
    units = [unit for role in served for unit in ROLE_UNITS[role]]
    return GuestNeeds(tuple(dict.fromkeys(programs)), tuple(dict.fromkeys(units)))


async def missing_in(shell: Shell, needs: GuestNeeds) -> list[str]:
    """What of it the guest lacks, each with the Debian package that has it. Raises GuestError, DeadlineExceeded."""
    asked = ["sh", "-c", _LOOK % _PYTHON, "look", *needs.programs, *needs.units]
    looked = await shell.run(asked, check=False)
    if looked.status != 0:
        said = (looked.stderr.strip().splitlines() or [f"exit status {looked.status}"])[-1]
        return [f"root's rights for the user, by sudo without a password ({said[:120]})"]
    return [_words(one) for one in looked.stdout.splitlines() if one]


def _words(one: str) -> str:
    if one == "root":
        return "root's rights for the user"
    if one == "newer python3":
        return f"python3 {_PYTHON[0]}.{_PYTHON[1]} or newer"
    if one.startswith("/"):
        return f"{one} (only vmlab's own image has it)"
    package = _PACKAGES.get(one)
    return one if package is None else f"{one} ({package})"
