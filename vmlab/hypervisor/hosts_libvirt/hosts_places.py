"""Whether this host has a libvirt of its own that a lab may be in, and where that has what belongs to a domain."""

from __future__ import annotations

import shutil
from pathlib import Path

from vmlab.hypervisor.isolation.namespace import host_proc
from vmlab.hypervisor.libvirt.domain_places import Places
from vmlab.model.errors import HypervisorUnavailable
from vmlab.system.packages import installing

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
