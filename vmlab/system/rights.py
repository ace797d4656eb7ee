"""What this process may do: root's capabilities, of which a container has only some, and how a user becomes root."""

from __future__ import annotations

import sys
from pathlib import Path

_NEEDED = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
"""What a lab needs and a container lacks by default, with the bits of capability.h: bridges and taps; namespaces and
mounts. docs/how-to/container.md says what was tried."""
_TO_RESTORE = {"CAP_IPC_LOCK": 14}
"""What restoring frozen guests needs beside: their RAM is locked in memory while it is read."""
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


def in_container() -> bool:
    """Whether this is a container of Podman or Docker."""
    return any(mark.exists() for mark in _MARKS)


def as_root() -> str:
    """What a user who is not root can do, with the program's path where sudo would not find its name."""
    program = Path(sys.argv[0]).absolute()
    by_name = program.name != "vmlab" or str(program.parent) in _SUDOS_PATH
    return f"run vmlab as root, as in sudo {'vmlab' if by_name else program} run SCENARIO"
