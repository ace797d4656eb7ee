"""The lab's bridge, in the lab's own network namespace and nowhere else."""

from __future__ import annotations

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from vmlab.hypervisor.namespace import require_isolation
from vmlab.model.errors import HypervisorUnavailable

BRIDGE = "vmlab0"
HOST_ADDRESS = "198.18.0.1"
PREFIX = 15
"""198.18.0.0/15 is set aside for benchmarks of network devices (RFC 2544)."""

_LOOPBACK = 1
"""The kernel's number for it in every network namespace."""

# A bridge without an address of its own takes the lowest of its ports', which changes as guests come and go.
_HARDWARE_ADDRESS = "52:54:00:c6:12:01"


def make_bridge() -> None:
    """Bring up the loopback, make the bridge, give the host its address on it; no spanning tree, no way out.

    Raises HypervisorUnavailable on the host's own network, and where the kernel has no bridge.
    """
    require_isolation()
    try:
        with IPRoute() as route:
            route.link("set", index=_LOOPBACK, state="up")
            route.link("add", ifname=BRIDGE, kind="bridge", br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0)
            index = _index(route)
            route.link("set", index=index, address=_HARDWARE_ADDRESS)
            route.addr("add", index=index, address=HOST_ADDRESS, prefixlen=PREFIX)
            route.link("set", index=index, state="up")
    except (NetlinkError, OSError) as error:
        raise HypervisorUnavailable(f"no bridge: {error}", remedy="modprobe bridge") from error


def remove_bridge() -> None:
    """Remove the lab's bridge; none is no error."""
    require_isolation()
    with IPRoute() as route:
        if route.link_lookup(ifname=BRIDGE):
            route.link("del", index=_index(route))


def _index(route: IPRoute) -> int:
    found: list[int] = route.link_lookup(ifname=BRIDGE)
    return found[0]
