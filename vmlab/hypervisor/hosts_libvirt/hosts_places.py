"""Where the host's own libvirt has what belongs to a domain."""

from __future__ import annotations

import os
from pathlib import Path

from vmlab.hypervisor.isolation.namespace import host_proc
from vmlab.hypervisor.libvirt.domain_places import last_words_in
from vmlab.system.removal import remove_file_beneath

LOGS = Path("/var/log/libvirt/qemu")
_PROCESSES = Path("/run/libvirt/qemu")
_NETWORKS = Path("/run/libvirt/network")


class HostsPlaces:
    """The host's own; QEMUs are processes of the host."""

    @property
    def proc(self) -> Path:
        """A /proc of the host's PID namespace."""
        return host_proc()

    def agent_socket(self, _name: str) -> None:
        """libvirt chooses it, where its security drivers and a socket's length let it be."""
        return

    def helper_socket(self, _name: str) -> None:
        """As the agent's."""
        return

    def pid_of(self, domain: str) -> int:
        """The pid of a domain's QEMU, as the host numbers it; raises OSError when it does not run."""
        return int((_PROCESSES / f"{domain}.pid").read_text())

    def last_words_of(self, domain: str) -> str:
        """The last line that a domain's QEMU wrote to its log; the empty string where there is none."""
        return last_words_in(LOGS / f"{domain}.log")

    def forget(self, domain: str) -> None:
        """Remove the log of a domain that is gone, which libvirt keeps under its name. Raises OSError."""
        remove_log(domain)


def remove_log(domain: str) -> list[str]:
    """Remove the log of a lab's domain; its path, if it was there. Raises OSError."""
    return _remove(LOGS / f"{domain}.log")


def remove_pid_file(network: str) -> list[str]:
    """Remove what libvirt 9.0 leaves of the dnsmasq of a network that is gone; its path. Raises OSError."""
    return _remove(_NETWORKS / f"{network}.pid")


def _remove(file: Path) -> list[str]:
    folder = file.parent
    try:
        above = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        return [str(file)] if remove_file_beneath(above, folder.name, file.name) else []
    finally:
        os.close(above)
