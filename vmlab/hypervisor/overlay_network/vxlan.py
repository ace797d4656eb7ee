"""An overlay network: a second bridge that is joined to the lab's own by a VXLAN tunnel between two namespaces.

::

    guests ── BRIDGE ── vmlab6 ═ VXLAN over vmlab4 ════ vmlab5 in a second namespace ═ vmlab7 ── vmlab3 ── guests

The far end of the tunnel is made in the second namespace and then moved into the lab's: its socket stays where it was
made, so each frame is packed, crosses the cable, and is unpacked, while all taps stay in one namespace, where libvirt
makes and counts them. The cable takes larger frames than the tunnel carries, so guests keep their 1,500 B.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from pyroute2 import IPRoute

from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.hypervisor.lab_network import add_bridge, bring_up, fresh_namespace, link_index, refusals, remove_link
from vmlab.model.names import BRIDGE, FAR_BRIDGE, OVERLAY_ADDRESSES, OVERLAY_CABLE, TUNNEL

_VXLAN_PORT = 4789
"""The port that is assigned to it (RFC 7348)."""
_OVERLAY = "overlay network"
_TUNNEL_ID = 1
_CABLE_PREFIX = 30
_MTU = 1500
_PACKED = 50
"""Bytes that VXLAN puts around an Ethernet frame: headers of VXLAN, UDP and IPv4, and the inner Ethernet header."""


@contextlib.contextmanager
def overlay_network() -> Iterator[None]:
    """The second bridge and its tunnel for as long as the block runs.

    Raises HypervisorUnavailable on the host's own network, without the lab's bridge, and where the kernel has no veth
    or no VXLAN.
    """
    require_isolation()
    # As in far_host: a thread of its own leaves its namespace, others work in the lab's.
    with ThreadPoolExecutor(1) as inside, ThreadPoolExecutor(1) as outside:
        with refusals(_OVERLAY, "veth"):
            far = inside.submit(fresh_namespace).result()
        near = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            with refusals(_OVERLAY, "veth"):
                outside.submit(_lay_cable, far).result()
                inside.submit(bring_up, OVERLAY_CABLE[1], OVERLAY_ADDRESSES[1], _CABLE_PREFIX).result()
            with refusals(_OVERLAY, "vxlan"):
                outside.submit(_open_tunnel, 0).result()
                inside.submit(_open_tunnel, 1, near).result()
                outside.submit(_join).result()
        except BaseException:
            outside.submit(_remove).result()
            os.close(far)
            raise
        finally:
            os.close(near)
    try:
        yield
    finally:
        try:
            with refusals(_OVERLAY, "veth"), ThreadPoolExecutor(1) as outside:
                outside.submit(_remove).result()
        finally:
            os.close(far)


def _lay_cable(far: int) -> None:
    size = _MTU + _PACKED
    with IPRoute() as route:
        link_index(route, BRIDGE)
        peer = {"ifname": OVERLAY_CABLE[1], "net_ns_fd": far, "mtu": size}
        route.link("add", ifname=OVERLAY_CABLE[0], kind="veth", mtu=size, peer=peer)
    bring_up(OVERLAY_CABLE[0], OVERLAY_ADDRESSES[0], _CABLE_PREFIX)


def _open_tunnel(end: int, home: int | None = None) -> None:
    """One end of the tunnel, over this namespace's end of the cable; moved into the namespace `home` where given."""
    with IPRoute() as route:
        route.link(
            "add",
            ifname=TUNNEL[end],
            kind="vxlan",
            vxlan_id=_TUNNEL_ID,
            vxlan_link=link_index(route, OVERLAY_CABLE[end]),
            vxlan_local=OVERLAY_ADDRESSES[end],
            vxlan_group=OVERLAY_ADDRESSES[1 - end],
            vxlan_port=_VXLAN_PORT,
        )
        if home is not None:
            route.link("set", index=link_index(route, TUNNEL[end]), net_ns_fd=home)


def _join() -> None:
    with IPRoute() as route:
        route.link("set", index=add_bridge(route, FAR_BRIDGE), state="up")
        for end, bridge in zip(TUNNEL, (BRIDGE, FAR_BRIDGE), strict=True):
            index = link_index(route, end)
            route.link("set", index=index, mtu=_MTU, master=link_index(route, bridge))
            route.link("set", index=index, state="up")


def _remove() -> None:
    """Remove what is there of it; the far end of the cable goes with the near one."""
    with IPRoute() as route:
        for name in (*TUNNEL, OVERLAY_CABLE[0], FAR_BRIDGE):
            remove_link(route, name)
