"""The lab's network in the host's own libvirt: isolated, transient, marked, in a range that is free on this host."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from typing import Any

from lxml import etree
from pyroute2 import IPRoute

from vmlab.hypervisor.contract import LabNetwork
from vmlab.hypervisor.libvirt.domain_xml import put_mark
from vmlab.model.errors import HypervisorUnavailable
from vmlab.model.names import NETWORK

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
    network = etree.Element("network")
    etree.SubElement(network, "name").text = name_of(lab)
    put_mark(network, id=lab)
    etree.SubElement(network, "bridge", name=name_of(lab), stp="off", delay="0")
    etree.SubElement(network, "dns", enable="no")
    etree.SubElement(network, "ip", address=str(addresses[1]), prefix=str(addresses.prefixlen))
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
    host = etree.Element("host", mac=mac, ip=address)
    network.update(_ADD_LAST, _DHCP_HOST, 0, etree.tostring(host, encoding="unicode"))
