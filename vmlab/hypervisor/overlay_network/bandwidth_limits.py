"""A guest's limit of bandwidth: a token bucket for each direction (tc-tbf(8)).

What goes to the guest waits at its tap. A device cannot make wait what it receives, so what comes from the guest is
led through a device of its own (ifb) and waits there. Both buckets hold 10 ms of the rate, so that a guest is slowed
down all the time and not stopped now and then; what would wait longer than 50 ms is dropped, and TCP slows down.
"""

from __future__ import annotations

import errno

from pyroute2 import IPRoute

from vmlab.hypervisor.network.bridge import link_index

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
