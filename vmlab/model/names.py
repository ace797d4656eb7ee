"""Names and addresses that several packages use: the lab's network, guests within a cell, their files."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network

BRIDGE = "vmlab0"
"""The lab's bridge, inside the lab's network namespace."""
NETWORK = IPv4Network("198.18.0.0/15")
"""The range of the lab's addresses, reserved for benchmarks of network devices (RFC 2544)."""
PREFIX = NETWORK.prefixlen
HOST_ADDRESS = str(NETWORK[1])
"""The host's address on the bridge."""
FAR_HOST_ADDRESS = str(NETWORK[2])
"""The host's second address, in a network namespace of its own that a veth pair joins to the bridge."""
FAR_HOST_CABLE = ("vmlab1", "vmlab2")
"""The ends of the veth pair: at the bridge, and in the second namespace."""
FAR_BRIDGE = "vmlab3"
"""A second bridge in the lab's network namespace, which a tunnel joins to the first."""
OVERLAY_CABLE = ("vmlab4", "vmlab5")
"""The ends of the veth pair that the tunnel runs over: in the lab's namespace, and in a second one."""
OVERLAY_ADDRESSES = ("192.0.2.1", "192.0.2.2")
"""The addresses of these ends, of a range that is kept for documentation (RFC 5737): no guest can have them."""
TUNNEL = ("vmlab6", "vmlab7")
"""The ends of the tunnel: ports of the first bridge and of the second."""
ROUTED_PREFIX = "eip-"
"""Begins the name of each bridge that has a guest with an elastic address for its only port."""
LIMITER_PREFIX = "limit-"
"""Begins the name of each device that what a guest with limited bandwidth sends is led through."""
DATA_FOLDER = "/data"
"""Where workloads keep their files, in a guest or on the host: the guest's data disk where it has one."""
IN_MEMORY = ("tmpfs", "ramfs")
"""File systems in memory: O_DIRECT succeeds on them, and no disk is measured."""
WORKLOADS_FOLDER = "/run/vmlab/workloads"
"""Where workloads have their programs and reports, in a guest or on the host."""
DATA_SERIAL = "data"
"""The serial number of a guest's data disk, by which the guest finds it."""

_PREFIX_OF_MACS = "52:54:00"
"""QEMU's prefix of MAC addresses for virtual network cards."""
BRIDGE_MAC = f"{_PREFIX_OF_MACS}:c6:12:01"
"""The bridge's MAC address. A bridge without one takes the lowest of its ports, which changes as guests come and go."""

HOST_PLACE = "host"
"""Takes the place of a guest's name or key, for a workload that runs on the host itself."""

_HOST_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?", re.ASCII)
RAM = "ram"
"""The file of a frozen guest with its RAM and devices, as QEMU streams them."""
DISK = "disk.qcow2"
"""That with its overlay."""
MACHINE = "machine.json"
"""That with the description of the machine that they belong to, as JSON."""
FROZEN_FILES = (RAM, DISK, MACHINE)


MOST_HOSTS = 256
"""Hosts of a fleet."""


def is_host_name(name: object) -> bool:
    """Whether this may be the name of a host of a fleet: as a host's name in DNS, at most 63 characters."""
    return isinstance(name, str) and _HOST_NAME.fullmatch(name) is not None


_FIRST_GUEST = 10
_IN_A_TILE = 256

LAB_NAMESPACE = "urn:vmlab:lab:1"
"""The XML namespace of the lab's mark in the metadata of a domain or a network; no address."""

HELPER_CHANNEL = "org.vmlab.helper.0"
"""The virtio-serial port of a guest's resident helper."""


def guest_key(tile: int, guest: str) -> str:
    """A guest's name within its cell, such as ``t1-file-a``, which its domain has too. Tiles count from 1."""
    return f"t{tile}-{guest}"


def guest_of(key: str) -> str:
    """The guest's name in the scenario, from its `guest_key`; ``host`` stays ``host``."""
    return key if key == HOST_PLACE else key.partition("-")[2]


def guest_address(tile: int, position: int, network: IPv4Network = NETWORK) -> str:
    """The IPv4 address of the guest at a position, from 0, of a tile, from 1, in a network that is large enough: up to
    240 guests in each of as many tiles as it has 256 addresses, less one.
    """
    return str(IPv4Address(int(network[0]) + tile * _IN_A_TILE + _FIRST_GUEST + position))


def elastic_address(tile: int, position: int) -> str:
    """The elastic address of the same guest, which is in the other half of the lab's network."""
    return str(IPv4Address(guest_address(tile, position)) + NETWORK.num_addresses // 2)


def guest_mac(tile: int, position: int) -> str:
    """The MAC address of the same guest."""
    return f"{_PREFIX_OF_MACS}:12:{tile:02x}:{_FIRST_GUEST + position:02x}"


def limiter_of(mac: str) -> str:
    """The name of the device that limits what the guest with this MAC address sends."""
    return LIMITER_PREFIX + _end_of(mac)


def routed_bridge_of(mac: str) -> str:
    """The name of the bridge of the guest with this MAC address, where it has an elastic address."""
    return ROUTED_PREFIX + _end_of(mac)


def bare_cable(tile: int, position: int) -> tuple[str, str]:
    """The ends of the veth pair of a guest on the host: at the bridge, and in its own network namespace."""
    return f"bare-{tile}-{position}", "eth0"


def _end_of(mac: str) -> str:
    return "".join(mac.split(":")[-2:])
