"""What a lab has in the host's own libvirt, by its mark alone: how its network is made, and how all of it is removed.

The network is isolated and transient, in a range that is free on this host. Nothing is taken for the lab's by its name.
What somebody has defined, so that it outlives its end, is not the lab's either, whatever mark was copied into it: a lab
defines nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import libvirt
from lxml import etree
from pyroute2 import IPRoute

from vmlab.hypervisor.libvirt.domain_xml import mark, marked_for, node
from vmlab.hypervisor.protocols import LabNetwork
from vmlab.integrity.long_work import fill
from vmlab.model.errors import HypervisorError, HypervisorUnavailable
from vmlab.model.names import LAB_NAMESPACE, NETWORK
from vmlab.system.removal import remove_file_beneath
from vmlab.telemetry.domains.libvirt_reader import SYSTEM

UNDO_SECONDS = 90.0
NETWORKS = Path("/run/libvirt/network")
_GONE = (
    libvirt.VIR_ERR_NO_DOMAIN,
    libvirt.VIR_ERR_NO_NETWORK,
    libvirt.VIR_ERR_OPERATION_INVALID,
    libvirt.VIR_ERR_NO_DOMAIN_METADATA,
)


def is_marked(domain: Any, lab: str) -> bool:
    """Whether a domain carries the mark of `lab`; blocks. Raises libvirtError."""
    try:
        # libvirt gives the one element of the lab's namespace, stripped of its namespace.
        mark = etree.fromstring(domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, LAB_NAMESPACE))
        return str(mark.get("id")) == lab
    except libvirt.libvirtError as error:
        if error.get_error_code() in _GONE:
            return False
        raise


def undo(lab: str, seconds: float = UNDO_SECONDS) -> list[str]:
    """End the domains and remove the networks of `lab`; what was removed. Blocks, `seconds` at most.

    Raises HypervisorError where libvirt does not answer or refuses.
    """
    found: Future[list[str]] = Future()
    work = partial(fill, found, lambda: list(_undone(lab)))
    threading.Thread(target=work, name="undo", daemon=True).start()
    try:
        return found.result(seconds)
    except TimeoutError as late:
        raise HypervisorError(f"{SYSTEM} did not answer within {seconds:.0f} s") from late
    except libvirt.libvirtError as error:
        raise HypervisorError(f"{SYSTEM}: {error.get_error_message()}") from error


def _undone(lab: str) -> Iterator[str]:
    libvirt.registerErrorHandler(lambda *_: None, None)
    connection = libvirt.open(SYSTEM)
    try:
        for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_TRANSIENT):
            if is_marked(domain, lab):
                with _may_be_gone():
                    domain.destroy()
                    yield f"domain {domain.name()}"
        for network in connection.listAllNetworks(libvirt.VIR_CONNECT_LIST_NETWORKS_TRANSIENT):
            with _may_be_gone():
                if marked_for(network.XMLDesc(0)) == lab:
                    network.destroy()
                    # libvirt 9.0 leaves that of the network's dnsmasq.
                    remove_file_beneath(NETWORKS.parent, NETWORKS.name, f"{network.name()}.pid")
                    yield f"network {network.name()}"
    finally:
        connection.close()


@contextlib.contextmanager
def _may_be_gone() -> Iterator[None]:
    """A domain ends with the connection of a client that was killed, maybe at this moment."""
    try:
        yield
    except libvirt.libvirtError as error:
        if error.get_error_code() not in _GONE:
            raise


_PREFIX = 17
"""Room for 127 tiles, and four labs beside each other in the range that images let their guests be in."""
_ADD_LAST = 3
_DHCP_HOST = 4
"""libvirt's numbers of virNetworkUpdateCommand and virNetworkUpdateSection, which its Python package has too."""


def name_of(lab: str) -> str:
    """The name of the lab's network and of its bridge; an interface's name has 15 characters at most."""
    return f"vmlab-{hashlib.sha256(lab.encode()).hexdigest()[:8]}"


def free_range(taken: Iterable[IPv4Network]) -> IPv4Network:
    """The first range for a lab that overlaps with none of `taken`. Raises HypervisorUnavailable without one."""
    taken = list(taken)
    for candidate in NETWORK.subnets(new_prefix=_PREFIX):
        if not any(candidate.overlaps(one) for one in taken):
            return candidate
    raise HypervisorUnavailable(
        f"this host has routes to all of {NETWORK}: a lab in its own libvirt has no address range",
        remedy="--hypervisor embedded",
    )


def routed() -> Iterator[IPv4Network]:
    """What this host has routes to, the default one aside. Raises OSError."""
    with IPRoute() as route:
        for one in route.get_routes(family=socket.AF_INET):
            if one["dst_len"]:
                yield IPv4Network((one.get_attr("RTA_DST"), one["dst_len"]), strict=False)


def network_xml(lab: str, addresses: IPv4Network) -> str:
    """The network: no way out, no name server, no DHCP before a guest needs it; the host has its first address."""
    network = node(
        "network",
        node("name", name_of(lab)),
        mark(id=lab),
        node("bridge", name=name_of(lab), stp="off", delay="0"),
        node("dns", enable="no"),
        node("ip", address=str(addresses[1]), prefix=str(addresses.prefixlen)),
    )
    return etree.tostring(network, encoding="unicode", pretty_print=True)


def make_network(connection: Any, lab: str) -> LabNetwork:
    """Make it; blocks. It outlives its maker, so that its journal entry must stand already.

    Raises libvirtError, OSError, HypervisorUnavailable.
    """
    addresses = free_range(routed())
    connection.networkCreateXML(network_xml(lab, addresses))
    return LabNetwork(name_of(lab), addresses)


def serve(network: Any, mac: str, address: str) -> None:
    """Give the guest with this card its address by DHCP; libvirt starts its dnsmasq for the first one. Blocks."""
    host = node("host", mac=mac, ip=address)
    network.update(_ADD_LAST, _DHCP_HOST, 0, etree.tostring(host, encoding="unicode"))
