"""What this process may do: root's capabilities, of which a container has only some, and the limits (setrlimit(2)) that
every process of a run inherits, held against what the run needs; and how a user becomes root.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.quantities import format_bytes

_NEEDED = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
"""What a lab needs and a container lacks by default, with the bits of capability.h: bridges and taps; namespaces and
mounts. docs/how-to/container.md says what was tried."""
_TO_RESTORE = {"CAP_IPC_LOCK": 14}
"""What restoring frozen guests needs beside: their RAM is locked in memory while it is read."""
_RAISING = 24
"""The bit of CAP_SYS_RESOURCE."""
_SUDOS_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""Where sudo finds a program by its name (Debian's secure_path)."""
_MARKS = (Path("/run/.containerenv"), Path("/.dockerenv"))
"""Podman and Docker make these in each container."""


def missing_capabilities(status: Path = Path("/proc/self/status"), *, restoring: bool = False) -> list[str]:
    """The capabilities that a lab needs and this process lacks; `restoring` adds those to restore frozen guests."""
    line = next(line for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    held = int(line.split()[1], 16)
    needed = {**_NEEDED, **(_TO_RESTORE if restoring else {})}
    return [name for name, bit in needed.items() if not held >> bit & 1]


def why_no_locked_memory(status: Path = Path("/proc/self/status")) -> str:
    """Why no process that this one starts may lock all of its memory; empty where one may.

    libvirt raises the limit of a QEMU, and takes QEMU's capabilities away.
    """
    _, most = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    line = next(line for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    if most == resource.RLIM_INFINITY or int(line.split()[1], 16) >> _RAISING & 1:
        return ""
    return f"ulimit -l is {format_bytes(most)} at most, and without CAP_SYS_RESOURCE nobody here can raise it"


def in_container() -> bool:
    """Whether this is a container of Podman or Docker."""
    return any(mark.exists() for mark in _MARKS)


def as_root() -> str:
    """What a user who is not root can do, with the program's path where sudo would not find its name."""
    program = Path(sys.argv[0]).absolute()
    by_name = program.name != "vmlab" or str(program.parent) in _SUDOS_PATH
    return f"run vmlab as root, as in sudo {'vmlab' if by_name else program} run SCENARIO"


def user_name(number: int) -> str:
    """The name of the user with this id; the id where it has none."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)


QEMU_BYTES = 1536 * 2**20
"""Address space of a QEMU beside its guest's memory: 1.3 GiB were measured under TCG, 1 GiB of it for translated code.
"""
_FEW_GUESTS = 16
_USER_MAP = Path("/proc/self/uid_map")


@dataclass(frozen=True, slots=True)
class Needed:
    """What a run needs: bytes of its largest file, and of the largest address space of a process; how many guests."""

    file_bytes: int
    address_bytes: int
    guests: int

    @property
    def files(self) -> int:
        """Open files of the runner: 512 with a few guests, and ten for each further one."""
        return 512 + 10 * max(0, self.guests - _FEW_GUESTS)

    @property
    def processes(self) -> int:
        """Processes and their threads."""
        return 128 + 32 * self.guests


def too_low(needed: Needed) -> Iterator[tuple[str, str]]:
    """Each limit that is too low for a run, as one line, and the command of the shell that raises it."""
    for letter, which, least, words in (
        ("f", resource.RLIMIT_FSIZE, needed.file_bytes, "disk images need {}"),
        ("v", resource.RLIMIT_AS, needed.address_bytes, "the QEMU of the largest guest needs {} of address space"),
        ("d", resource.RLIMIT_DATA, needed.address_bytes, "the QEMU of the largest guest needs {} of data"),
    ):
        if (limit := _limit(which)) is not None and limit < least:
            yield (
                f"ulimit -{letter} is {format_bytes(limit)}: {words.format(format_bytes(least))}",
                f"ulimit -{letter} unlimited",
            )
    if (limit := _limit(resource.RLIMIT_NOFILE)) is not None and limit < needed.files:
        words = f"this process may have {limit} open files, and a run needs {needed.files}"
        yield f"ulimit -n is {limit}: {words}", "ulimit -n 4096"
    # The kernel holds no process of the machine's own root to it (fork(2), EAGAIN); it does so in a user namespace.
    if (limit := _limit(resource.RLIMIT_NPROC)) is not None and limit < needed.processes and _in_user_namespace():
        yield (
            f"ulimit -u is {limit}: a run starts up to {needed.processes} processes and threads",
            "ulimit -u unlimited",
        )


def _limit(which: int) -> int | None:
    allowed, _ = resource.getrlimit(which)
    return None if allowed == resource.RLIM_INFINITY else allowed


def _in_user_namespace() -> bool:
    return os.geteuid() == 0 and _USER_MAP.read_text().split() != ["0", "0", str(2**32 - 1)]
