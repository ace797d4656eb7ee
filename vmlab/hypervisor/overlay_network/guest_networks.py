"""What guests need of the network beside the lab's bridge, in its namespace: tunnel, elastic addresses, limits.

A limit of bandwidth is a token bucket for each direction (tc-tbf(8)). What goes to the guest waits at its tap. A device
cannot make wait what it receives, so what comes from the guest is led through a device of its own (ifb) and waits
there. Both buckets hold 10 ms of the rate, so that a guest is slowed down all the time and not stopped now and then;
what would wait longer than 50 ms is dropped, and TCP slows down.

The tunnel joins a second bridge to the lab's own: VXLAN between two namespaces.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lxml import etree
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from vmlab.hypervisor.domain_spec import DomainSpec, Translated
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.hypervisor.lab_network import add_bridge, bring_up, fresh_namespace, link_index, refusals, remove_link
from vmlab.hypervisor.overlay_network.translation import put_translation, remove_translation, translated
from vmlab.model.errors import HypervisorError, HypervisorUnavailable
from vmlab.model.names import BRIDGE, FAR_BRIDGE, OVERLAY_ADDRESSES, OVERLAY_CABLE, TUNNEL, limiter_of, routed_bridge_of
from vmlab.model.results import NetworkCounts
from vmlab.system.descriptors import closed_after


class GuestNetworks:
    """The tunnel for as long as guests need it, an elastic address or a limiter for each guest that has one.

    Every method blocks. `lookup` gives libvirt's domain of a guest by its name.
    """

    def __init__(self, lookup: Callable[[str], Any]) -> None:
        self._lookup = lookup
        self._tunnel = contextlib.ExitStack()
        self._is_open = False
        self._limited: dict[str, tuple[str, str]] = {}
        self._routed: dict[str, str] = {}

    def make(self, specs: Sequence[DomainSpec]) -> None:
        """Make the tunnel where one of these guests needs it, else take away one that is left from other guests.

        Guests with an elastic address get their bridges and rules. Raises HypervisorUnavailable where the kernel has no
        such tunnel, or does not translate.
        """
        if not any(spec.network for spec in specs):
            return
        wanted = any(spec.resources.network == "vxlan" for spec in specs)
        if wanted and not self._is_open:
            self._tunnel.enter_context(overlay_network())
            self._is_open = True
        elif not wanted:
            self._close_tunnel()
        for spec in specs:
            if spec.network and spec.translated is not None and spec.name not in self._routed:
                self._translate(spec.name, routed_bridge_of(spec.mac), spec.translated)

    def _translate(self, name: str, bridge: str, addresses: Translated) -> None:
        require_isolation()
        self._routed[name] = bridge
        try:
            put_translation(name, bridge, addresses)
        except (NetlinkError, OSError) as error:
            with contextlib.suppress(HypervisorError):
                self.release(name)
            raise HypervisorUnavailable(f"no elastic address: {error}", remedy="modprobe nft_chain_nat") from error

    def limit(self, spec: DomainSpec) -> None:
        """Limit the bandwidth of a guest that runs and has its network card. Raises HypervisorError."""
        require_isolation()
        rate = spec.resources.bandwidth
        if rate is None:
            return
        tap, limiter = _tap(self._lookup(spec.name).XMLDesc(0), spec), limiter_of(spec.mac)
        self._limited[spec.name] = tap, limiter
        try:
            put_limit(tap, limiter, rate)
        except (NetlinkError, OSError) as error:
            raise HypervisorError(f"{spec.name}: its bandwidth cannot be limited: {error}") from error

    def counts(self, specs: Sequence[DomainSpec]) -> NetworkCounts:
        """What tunnel, rules and limits have carried. Raises HypervisorError where one of them has gone."""
        try:
            with IPRoute() as route:
                tunnel, cable = (
                    sum(counters(route, name)[key] for key in ("rx_bytes", "tx_bytes")) if self._is_open else None
                    for name in (TUNNEL[0], OVERLAY_CABLE[0])
                )
            names = [spec.name for spec in specs if spec.name in self._limited]
            limited = {name: carried(*self._limited[name]) for name in names}
            through = translated() if self._routed else {}
            routed = {spec.name: through[spec.name] for spec in specs if spec.name in self._routed}
            return NetworkCounts(tunnel, cable, limited, routed)
        except KeyError as gone:
            raise HypervisorError(f"{gone.args[0]}: the rules that translate its address are gone") from gone
        except (NetlinkError, OSError) as error:
            raise HypervisorError(f"the guests' networks cannot be counted: {error}") from error

    def release(self, name: str) -> None:
        """Remove limiter, bridge and rules of a guest that has ended; what was at its tap went with that.

        Raises HypervisorError where the rules stay.
        """
        _, limiter = self._limited.pop(name, ("", ""))
        if limiter:
            require_isolation()
            with IPRoute() as route:
                remove_link(route, limiter)
        if (bridge := self._routed.pop(name, None)) is not None:
            require_isolation()
            try:
                remove_translation(name, bridge, last=not self._routed)
            except (NetlinkError, OSError) as error:
                raise HypervisorError(f"{name}: its elastic address cannot be removed: {error}") from error

    def close(self) -> None:
        """Remove what is left of all that. Raises HypervisorError or HypervisorUnavailable where the kernel refuses."""
        try:
            for name in list(self._routed):
                self.release(name)
        finally:
            self._close_tunnel()

    def _close_tunnel(self) -> None:
        self._is_open = False
        self._tunnel.close()


def _tap(xml: str, spec: DomainSpec) -> str:
    """The guest's end on the host, which libvirt has named."""
    for card in etree.fromstring(xml).iterfind("devices/interface"):
        mac, target = card.find("mac"), card.find("target")
        if mac is not None and target is not None and mac.get("address") == spec.mac:
            return str(target.get("dev"))
    raise HypervisorError(f"{spec.name} has no network card with the address {spec.mac}")


_ROOT = 0x10000
"""The handle 1: of a queueing discipline; its number for a class is 1:0."""
_INGRESS = 0xFFFF0000
"""The handle ffff:, which the kernel gives to what a device receives."""
_EVERY_PROTOCOL = 3
"""ETH_P_ALL."""
_FILLED = 0.01
_LEAST_BUCKET = 16 * 1024
_WAITS = 0.05


def bucket_bytes(rate: int) -> int:
    """What passes at once after a pause, at a limit of `rate` bit/s: 10 ms of it, and at least ten whole packets."""
    return max(_LEAST_BUCKET, round(rate / 8 * _FILLED))


def put_limit(tap: str, limiter: str, rate: int) -> None:
    """Limit what the network device `tap` sends, and what it receives, to `rate` bit/s each, through the new device
    `limiter`.

    Works in the network namespace of the calling thread. Raises NetlinkError and OSError where the kernel cannot, or
    has another rate afterwards.
    """
    with IPRoute() as route:
        port = link_index(route, tap)
        route.link("add", ifname=limiter, kind="ifb")
        beside = link_index(route, limiter)
        route.link("set", index=beside, state="up")
        for index in (port, beside):
            _fill(route, index, rate)
        route.tc("add", "ingress", index=port)
        route.tc(
            "add-filter",
            "u32",
            index=port,
            parent=_INGRESS,
            protocol=_EVERY_PROTOCOL,
            target=_ROOT,
            keys=["0x0/0x0+0"],
            action={"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": beside},
        )


def _fill(route: IPRoute, index: int, rate: int) -> None:
    """Put a bucket on a device, in place of what it has (libvirt gives its taps a queue of none), and read it back."""
    bytes_a_second, bucket = rate // 8, bucket_bytes(rate)
    waiting = bucket + round(bytes_a_second * _WAITS)
    route.tc("replace", "tbf", index=index, handle=_ROOT, rate=bytes_a_second, burst=bucket, limit=waiting)
    for found in route.get_qdiscs(index=index):
        if found["handle"] == _ROOT and found.get_attr("TCA_KIND") == "tbf":
            if (has := found.get_attr("TCA_OPTIONS").get_attr("TCA_TBF_PARMS")["rate"]) == bytes_a_second:
                return
            raise OSError(errno.EINVAL, f"the kernel made {8 * has} bit/s of {rate}")
    raise OSError(errno.ENOENT, "the kernel has no limit where one was put")


def carried(tap: str, limiter: str) -> tuple[int, int]:
    """Bytes that have come out of the limit: to the guest, and from it. Raises OSError where it has no such devices."""
    with IPRoute() as route:
        to = counters(route, tap)["tx_bytes"]
        return to, counters(route, limiter)["tx_bytes"]


def counters(route: IPRoute, name: str) -> dict[str, int]:
    """The counters of a network device, by the kernel's names of them. Raises OSError where there is none."""
    (link,) = route.get_links(link_index(route, name))
    found: dict[str, int] = link.get_attr("IFLA_STATS64")
    return found


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
    with contextlib.ExitStack() as closing:
        with ThreadPoolExecutor(1) as inside, ThreadPoolExecutor(1) as outside:
            with refusals(_OVERLAY, "veth"):
                far = closing.enter_context(closed_after(inside.submit(fresh_namespace).result()))
            closing.callback(_take_away)
            with closed_after(os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)) as near:
                with refusals(_OVERLAY, "veth"):
                    outside.submit(_lay_cable, far).result()
                    inside.submit(bring_up, OVERLAY_CABLE[1], OVERLAY_ADDRESSES[1], _CABLE_PREFIX).result()
                with refusals(_OVERLAY, "vxlan"):
                    outside.submit(_open_tunnel, 0).result()
                    inside.submit(_open_tunnel, 1, near).result()
                    outside.submit(_join).result()
        yield


def _take_away() -> None:
    with refusals(_OVERLAY, "veth"), ThreadPoolExecutor(1) as outside:
        outside.submit(_remove).result()


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
