"""Where a libvirt has what belongs to a domain, as a lab needs it: its process, its log, its sockets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vmlab.system.removal import remove_file_beneath


@dataclass(frozen=True, slots=True)
class Places:
    """Those of one libvirt: the /proc that its QEMUs are in, the folder with their pids as that has them, that with
    their logs, and that for guests' sockets; None where libvirt chooses the sockets' places. Methods block for a
    moment.
    """

    proc: Path
    processes: Path
    logs: Path
    sockets: Path | None = None

    def agent_socket(self, name: str) -> Path | None:
        """Where the guest agent of guest `name` is to be reached; None where libvirt chooses."""
        return None if self.sockets is None else self.sockets / f"{name}.sock"

    def helper_socket(self, name: str) -> Path | None:
        """Where the resident helper of guest `name` is to be reached; None where libvirt chooses."""
        return None if self.sockets is None else self.sockets / f"{name}.help"

    def pid_of(self, domain: str) -> int:
        """The pid of a domain's QEMU in `proc`; raises OSError when it does not run."""
        return int((self.processes / f"{domain}.pid").read_text())

    def last_words_of(self, domain: str) -> str:
        """The last line that a domain's QEMU itself wrote to its log; the empty string where there is none."""
        log = self._log_of(domain)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        own = [line.partition("qemu-system-x86_64: ")[2] for line in lines if "qemu-system-x86_64: " in line]
        return own[-1] if own else ""

    def forget(self, domain: str) -> list[str]:
        """Remove the log of a domain that is gone, to which libvirt would append at the next start of that name.

        Its path, if it was there. Raises OSError.
        """
        log = self._log_of(domain)
        return [str(log)] if remove_file_beneath(self.logs.parent, self.logs.name, log.name) else []

    def _log_of(self, domain: str) -> Path:
        return self.logs / f"{domain}.log"
