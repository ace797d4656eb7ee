"""A program that tries out what the kernel can do for guests' networks, in an empty network namespace of its own.

It prints a JSON object with the reason for each thing that it cannot do; nothing is left of it. A program of its own,
as the console, which plans, loads no netlink.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from vmlab.hypervisor.domain_spec import Translated
from vmlab.hypervisor.isolation.namespace import in_fresh_network
from vmlab.hypervisor.lab_network import LOOPBACK
from vmlab.hypervisor.overlay_network.guest_networks import put_limit
from vmlab.hypervisor.overlay_network.translation import put_translation
from vmlab.model.names import BRIDGE, elastic_address, guest_address

_RATE = 10**6
_PORT = "port"


def _try_tunnel() -> None:
    with IPRoute() as route:
        route.link("add", ifname="tunnel", kind="vxlan", vxlan_id=1, vxlan_link=LOOPBACK, vxlan_group="127.0.0.1")


def _try_limit() -> None:
    put_limit(_PORT, "limit", _RATE)


def _try_translation() -> None:
    with IPRoute() as route:
        route.link("add", ifname=BRIDGE, kind="bridge")
    put_translation("translation", "routed", Translated(guest_address(1, 0), elastic_address(1, 0)))


_ATTEMPTS: Mapping[str, tuple[Callable[[], None], str]] = {
    "vxlan": (_try_tunnel, "this host's kernel makes no VXLAN tunnels"),
    "nat": (_try_translation, "this host's kernel translates no addresses (nf_tables, nft_ct, nft_nat, nft_chain_nat)"),
    "bandwidth": (_try_limit, "this host's kernel limits no bandwidth (tbf, ifb, ingress, u32, mirred)"),
}


def why_not(words: str, attempt: Callable[[], None]) -> str | None:
    """`words` and the kernel's own reason where the attempt fails, else None."""
    try:
        attempt()
    except (NetlinkError, OSError) as error:
        number = error.code if isinstance(error, NetlinkError) else error.errno or 0
        return f"{words}: {os.strerror(number)}"
    return None


def lacking() -> dict[str, str]:
    """What guests' networks cannot have here, with the reason: ``vxlan``, ``nat``, ``bandwidth``. Needs root; raises
    OSError and NetlinkError where not even a veth pair can be made.
    """

    def tried() -> dict[str, str]:
        with IPRoute() as route:
            route.link("add", ifname=_PORT, kind="veth", peer={"ifname": "peer"})
        found = {name: why_not(words, attempt) for name, (attempt, words) in _ATTEMPTS.items()}
        return {name: reason for name, reason in found.items() if reason is not None}

    return in_fresh_network(tried)


if __name__ == "__main__":
    json.dump(lacking(), sys.stdout)
