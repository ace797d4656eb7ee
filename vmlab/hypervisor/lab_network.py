"""The lab's bridge, in the lab's own network namespace and nowhere else, and further network namespaces at the bridge.

With one of these the host sends to itself over a network card and not the loopback. A veth pair joins it to the bridge,
where the guests' taps are plugged in too. It has no name, and so no file below /run/netns: it consists of an open
descriptor and the veth pair, and both disappear with the runner.

Guests that ask by DHCP get the addresses that the lab has for them from dnsmasq on the bridge.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from vmlab.hypervisor.isolation.namespace import require_isolation
from vmlab.model.concurrency import within
from vmlab.model.errors import HypervisorError, HypervisorUnavailable
from vmlab.model.names import (
    BRIDGE,
    BRIDGE_MAC,
    FAR_HOST_ADDRESS,
    FAR_HOST_CABLE,
    HOST_ADDRESS,
    NETWORK,
    PREFIX,
)
from vmlab.system import kernel
from vmlab.system.descriptors import closed_after
from vmlab.system.packages import installing

LOOPBACK = 1
"""The kernel's number for it in every network namespace."""
_SECOND = "second network for the host"


def make_bridge() -> None:
    """Make the bridge, bring up the loopback, give the host its address on the bridge; no spanning tree, no way out.

    Raises HypervisorUnavailable on the host's own network, and where the kernel has no bridge.
    """
    require_isolation()
    with refusals("bridge", "bridge"):
        with IPRoute() as route:
            route.link("set", index=add_bridge(route, BRIDGE), address=BRIDGE_MAC)
        bring_up(BRIDGE, HOST_ADDRESS, PREFIX)


def remove_bridge() -> None:
    """Remove the lab's bridge; nothing happens where there is none."""
    require_isolation()
    with IPRoute() as route:
        remove_link(route, BRIDGE)


def add_bridge(route: IPRoute, name: str) -> int:
    """Make a bridge that learns no spanning tree and passes all on; its number. It is down."""
    route.link("add", ifname=name, kind="bridge", br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0)
    return link_index(route, name)


def remove_link(route: IPRoute, name: str) -> None:
    """Remove the link `name`; nothing happens where there is none."""
    for index in route.link_lookup(ifname=name):
        route.link("del", index=index)


def bring_up(name: str, address: str, prefix: int) -> None:
    """Bring up the loopback, and give the link `name` an IPv4 address, in the calling thread's network namespace."""
    with IPRoute() as route:
        route.link("set", index=LOOPBACK, state="up")
        index = link_index(route, name)
        route.addr("add", index=index, address=address, prefixlen=prefix)
        route.link("set", index=index, state="up")


@contextlib.contextmanager
def refusals(what: str, module: str) -> Iterator[None]:
    """Say what cannot be had where the kernel refuses in this block, and its module that may be missing."""
    try:
        yield
    except (NetlinkError, OSError) as error:
        raise HypervisorUnavailable(f"no {what}: {error}", remedy=f"modprobe {module}") from error


def link_index(route: IPRoute, name: str) -> int:
    """The number of the link `name`. Raises OSError where there is none."""
    found: list[int] = route.link_lookup(ifname=name)
    if not found:
        raise OSError(errno.ENODEV, f"no network link is called {name}")
    return found[0]


def far_host_network() -> AbstractContextManager[int]:
    """The second namespace of the host; see `bridged_network`."""
    return bridged_network(FAR_HOST_CABLE, FAR_HOST_ADDRESS)


@contextlib.contextmanager
def bridged_network(cable: tuple[str, str], address: str) -> Iterator[int]:
    """A namespace of its own for as long as the block runs, as a descriptor that ``setns`` takes.

    It has the second end of `cable` with the IPv4 `address`; the first is at the lab's bridge. Programs that are still
    in it keep it alive, but without the veth pair. Raises HypervisorUnavailable on the host's own network, without the
    lab's bridge, and where the kernel has no veth.
    """
    require_isolation()
    # Only a thread that leaves its namespace can open the new one without a name; the thread ends with the set-up.
    # pyroute2 runs an event loop of its own, so the near end is plugged in by another thread.
    with contextlib.ExitStack() as closing:
        with ThreadPoolExecutor(1) as inside, ThreadPoolExecutor(1) as outside:
            namespace = closing.enter_context(closed_after(inside.submit(fresh_namespace).result()))
            with refusals(_SECOND, "veth"):
                outside.submit(_plug_in, namespace, cable).result()
                inside.submit(bring_up, cable[1], address, PREFIX).result()
        try:
            yield namespace
        finally:
            with refusals(_SECOND, "veth"), ThreadPoolExecutor(1) as outside:
                outside.submit(_unplug, cable[0]).result()


def fresh_namespace() -> int:
    """Leave the thread's network namespace for a fresh one; a descriptor of that.

    For a thread of its own, which ends with what it sets up. Raises HypervisorUnavailable on the host's own network.
    """
    require_isolation()
    kernel.unshare(kernel.CLONE_NEWNET)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _plug_in(namespace: int, cable: tuple[str, str]) -> None:
    near, far = cable
    with IPRoute() as route:
        route.link("add", ifname=near, kind="veth", peer={"ifname": far, "net_ns_fd": namespace})
        index = link_index(route, near)
        route.link("set", index=index, master=link_index(route, BRIDGE))
        route.link("set", index=index, state="up")


def _unplug(near: str) -> None:
    with IPRoute() as route:
        route.link("del", index=link_index(route, near))


PROGRAM = "dnsmasq"
_READY = b"started"
_BEGIN = 20.0
_END = 5.0


def require_dhcp() -> None:
    """Raises HypervisorUnavailable where this host has no DHCP server for guests of added images."""
    if shutil.which(PROGRAM) is None:
        raise HypervisorUnavailable(
            f"guests of added images get their addresses from {PROGRAM}, which is missing",
            remedy=installing("dnsmasq-base"),
        )


def arguments(addresses: Mapping[str, str]) -> list[str]:
    """dnsmasq's command line: DHCP alone, for these MAC addresses alone, on the bridge alone; no file is used.

    Guests get neither a router nor a name server, for there is none.
    """
    return [
        *(PROGRAM, "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--leasefile-ro"),
        *("--user=root", "--group=root", "--log-facility=-", "--quiet-dhcp"),
        *("--port=0", f"--interface={BRIDGE}", "--except-interface=lo", "--bind-interfaces"),
        f"--dhcp-range={NETWORK.network_address},static,{NETWORK.netmask},infinite",
        *("--dhcp-authoritative", "--dhcp-option=option:router", "--dhcp-option=option:dns-server"),
        *(f"--dhcp-host={mac},{address},infinite" for mac, address in addresses.items()),
    ]


class AddressServer:
    """One dnsmasq, while there are guests that need it; it dies with the lab's PID namespace."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._addresses: dict[str, str] = {}
        self._reading: asyncio.Task[None] | None = None

    async def serve(self, addresses: Mapping[str, str]) -> None:
        """Give these addresses from now on, by MAC address, beside those of earlier calls; it listens on return.

        Raises HypervisorUnavailable and HypervisorError, DeadlineExceeded where it does not begin.
        """
        if addresses.items() <= self._addresses.items():
            return
        require_isolation()
        require_dhcp()
        await self.stop()
        self._addresses |= addresses
        self._process = await asyncio.create_subprocess_exec(
            *arguments(self._addresses),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        async with within(_BEGIN, f"{PROGRAM} did not begin within {_BEGIN:.0f} s"):
            await self._begun(self._process)

    async def _begun(self, process: asyncio.subprocess.Process) -> None:
        """Return when it says that it has started, which it does when its socket is open."""
        assert process.stderr is not None
        last = b""
        while line := await process.stderr.readline():
            if _READY in line:
                # What it says later is read away, so that it never waits for a reader.
                self._reading = asyncio.ensure_future(_read_away(process.stderr))
                return
            last = line
        raise HypervisorError(f"{PROGRAM} ended: {last.decode('utf-8', 'replace').strip() or 'it said nothing'}")

    async def stop(self) -> None:
        """End it, if it runs."""
        process, self._process = self._process, None
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END):
                await process.wait()


async def _read_away(stream: asyncio.StreamReader) -> None:
    while await stream.readline():
        pass
