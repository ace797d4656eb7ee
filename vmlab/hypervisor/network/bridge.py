"""The lab's bridge, in the lab's own network namespace and nowhere else."""

from __future__ import annotations

import errno

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.model.errors import HypervisorUnavailable
from vmlab.model.names import BRIDGE, BRIDGE_MAC, HOST_ADDRESS, PREFIX

LOOPBACK = 1
"""The kernel's number for it in every network namespace."""


def make_bridge() -> None:
    """Bring up the loopback, make the bridge, give the host its address on it; no spanning tree, no way out.

    Raises HypervisorUnavailable on the host's own network, and where the kernel has no bridge.
    """
    require_isolation()
    try:
        with IPRoute() as route:
            route.link("set", index=LOOPBACK, state="up")
            route.link("add", ifname=BRIDGE, kind="bridge", br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0)
            index = link_index(route, BRIDGE)
            route.link("set", index=index, address=BRIDGE_MAC)
            route.addr("add", index=index, address=HOST_ADDRESS, prefixlen=PREFIX)
            route.link("set", index=index, state="up")
    except (NetlinkError, OSError) as error:
        raise HypervisorUnavailable(f"no bridge: {error}", remedy="modprobe bridge") from error


def remove_bridge() -> None:
    """Remove the lab's bridge; nothing happens where there is none."""
    require_isolation()
    with IPRoute() as route:
        if route.link_lookup(ifname=BRIDGE):
            route.link("del", index=link_index(route, BRIDGE))


def link_index(route: IPRoute, name: str) -> int:
    """The number of the link `name`. Raises OSError where there is none."""
    found: list[int] = route.link_lookup(ifname=name)
    if not found:
        raise OSError(errno.ENODEV, f"no network link is called {name}")
    return found[0]
