"""What guests need of the network beside the lab's bridge, in its namespace: tunnel, elastic addresses, limits.

A limit of bandwidth is a token bucket for each direction (tc-tbf(8)). What goes to the guest waits at its tap. A device
cannot make wait what it receives, so what comes from the guest is led through a device of its own (ifb) and waits
there. Both buckets hold 10 ms of the rate, so that a guest is slowed down all the time and not stopped now and then;
what would wait longer than 50 ms is dropped, and TCP slows down.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Sequence
from typing import Any

from lxml import etree
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from vmlab.hypervisor.contract import DomainSpec, Translated
from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.hypervisor.lab_network import link_index, remove_link
from vmlab.hypervisor.overlay_network.translation import put_translation, remove_translation, translated
from vmlab.hypervisor.overlay_network.vxlan import overlay_network
from vmlab.model.errors import HypervisorError, HypervisorUnavailable
from vmlab.model.names import OVERLAY_CABLE, TUNNEL, limiter_of, routed_bridge_of
from vmlab.model.results import NetworkCounts


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
