"""Where a libvirt has what belongs to a domain, as a lab needs it: its process, its log, its sockets; and
whether this host has a libvirt of its own that a lab may be in.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from vmlab.hypervisor.isolation.namespace import host_proc
from vmlab.model.errors import HypervisorUnavailable
from vmlab.system.packages import installing
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


LOGS = Path("/var/log/libvirt/qemu")
SOCKETS = (Path("/run/libvirt/libvirt-sock"), Path("/run/libvirt/virtqemud-sock"))
PACKAGES = {"libvirtd": "libvirt-daemon-system", "iptables": "iptables"}
"""Debian's package for each thing that `missing` names."""
_FIREWALLS = ("iptables", "nft")


def hosts_places() -> Places:
    """The host's own: QEMUs are processes of the host.

    libvirt chooses the sockets, where its security drivers and a socket's length let them be.
    """
    return Places(host_proc(), Path("/run/libvirt/qemu"), LOGS)


def missing() -> str | None:
    """What lacks, as a key of `PACKAGES`; None where nothing does. Nothing is started or asked."""
    if not any(socket.exists() for socket in SOCKETS):
        return "libvirtd"
    path = "/usr/sbin:/sbin:/usr/bin:/bin"
    # libvirt needs it for any network with an address; since 10.4 it may use nft in its place.
    return None if any(shutil.which(program, path=path) for program in _FIREWALLS) else "iptables"


def words_for(lacking: str) -> str:
    """One line for a user."""
    if lacking == "libvirtd":
        return "this host has no libvirtd or virtqemud that runs"
    return "libvirt needs iptables for an isolated network, and it is not installed"


def require_daemon() -> None:
    """Raises HypervisorUnavailable where something lacks."""
    if (lacking := missing()) is not None:
        raise HypervisorUnavailable(words_for(lacking), remedy=installing(PACKAGES[lacking]))
