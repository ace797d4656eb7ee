"""Where a libvirt has what belongs to a domain, as a lab needs it: its process, its log, its sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Places(Protocol):
    """Those of one libvirt. Methods block for a moment."""

    @property
    def proc(self) -> Path:
        """The /proc in which `pid_of` is a process."""
        ...

    def agent_socket(self, name: str) -> Path | None:
        """Where the guest agent of guest `name` is to be reached; None where libvirt chooses."""
        ...

    def helper_socket(self, name: str) -> Path | None:
        """Where the resident helper of guest `name` is to be reached; None where libvirt chooses."""
        ...

    def pid_of(self, domain: str) -> int:
        """The pid of a domain's QEMU in `proc`; raises OSError when it does not run."""
        ...

    def last_words_of(self, domain: str) -> str:
        """The last line that a domain's QEMU wrote to its log; the empty string where there is none."""
        ...

    def forget(self, domain: str) -> None:
        """Remove the log of a domain that is gone. Raises OSError."""
        ...


def last_words_in(log: Path) -> str:
    """The last line that QEMU itself wrote to its `log`; the empty string where there is none."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    own = [line.partition("qemu-system-x86_64: ")[2] for line in lines if "qemu-system-x86_64: " in line]
    return own[-1] if own else ""
