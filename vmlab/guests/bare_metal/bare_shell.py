"""Commands in a guest that runs on the host itself: in its namespaces, its root file system and its cgroups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

from vmlab.guests.held_client import install_start_line
from vmlab.guests.host_shell import HostShell
from vmlab.guests.role_services import start_services

_PROGRAMS = "/run/vmlab/programs"
"""In front of the image's own, in the place's fresh /run."""
_STAND_INS = ("systemctl", "journalctl")
_WRITE = 'mkdir -p "$(dirname "$1")" && cat >"$1" && chmod "$2" "$1"'
_FOLDERS = ["systemd-tmpfiles", "--create", "--prefix=/run", "--prefix=/tmp"]
"""What the packages' servers expect below /run, made by the image's own program and lists."""


class BareShell(HostShell):
    """The place whose first process is `pid`, in this process's PID namespace; it has the IPv4 `address`."""

    search = f"{_PROGRAMS}:{HostShell.search}"

    def __init__(self, pid: int, address: str, groups: Sequence[Path] = ()) -> None:
        super().__init__(Path("/"), address, groups=groups)
        self._pid = pid

    def _placed(self, argv: Sequence[str]) -> list[str]:
        spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd=/")
        # What is killed here is the program that entered; the one that it started dies with it.
        return ["/usr/bin/nsenter", f"--target={self._pid}", *spaces, "setpriv", "--pdeathsig=KILL", "--", *argv]

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file by a program inside, so that no link in the place can lead out of it."""
        await self._run(["sh", "-c", _WRITE, "sh", path, f"{mode:o}"], content)

    async def prepare(self, roles: Iterable[str], deadline: float) -> None:
        """Put the start line and what stands in for systemd into the place, and start the servers of `roles`.

        Raises GuestError naming each unit that is not active, and DeadlineExceeded.
        """
        program = resources.files("vmlab.guests.bare_metal.payload").joinpath("systemctl.py").read_bytes()
        for name in _STAND_INS:
            await self.write(f"{_PROGRAMS}/{name}", program, mode=0o755)
        await install_start_line(self)
        await self.run(_FOLDERS, check=False)
        await start_services(self, roles, deadline)
