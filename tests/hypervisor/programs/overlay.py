"""Makes the overlay network, has a station on its far bridge answer the host, and tells which way that went."""

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyroute2 import IPRoute

from vmlab.hypervisor.lab_network import fresh_namespace, link_index, make_bridge
from vmlab.hypervisor.overlay_network.guest_networks import overlay_network
from vmlab.model.names import FAR_BRIDGE, OVERLAY_CABLE

STATION = "198.18.1.10"
BYTES = 2**20
_ANSWERS = f"""
import socket
listener = socket.create_server(("{STATION}", 7))
print("listens", flush=True)
connection, _ = listener.accept()
print(len(connection.makefile("rb").read()), flush=True)
"""


def links() -> list[str]:
    with IPRoute() as route:
        return sorted(link.get_attr("IFLA_IFNAME") for link in route.get_links())


def crossed() -> int:
    """Bytes that the cable below the tunnel has taken."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, figures = line.partition(":")
        if name.strip() == OVERLAY_CABLE[0]:
            return int(figures.split()[8])
    return 0


def put_up(namespace: int) -> None:
    with IPRoute() as route:
        route.link("add", ifname="plug", kind="veth", peer={"ifname": "card", "net_ns_fd": namespace})
        index = link_index(route, "plug")
        route.link("set", index=index, master=link_index(route, FAR_BRIDGE))
        route.link("set", index=index, state="up")


def unplug() -> None:
    with IPRoute() as route:
        route.link("del", index=link_index(route, "plug"))


def dress() -> None:
    with IPRoute() as route:
        index = link_index(route, "card")
        route.addr("add", index=index, address=STATION, prefixlen=15)
        route.link("set", index=index, state="up")


def sent(namespace: int) -> int:
    """Bytes that the station got."""
    inside = ["/usr/bin/nsenter", f"--net=/proc/{os.getpid()}/fd/{namespace}", "--"]
    with subprocess.Popen([*inside, sys.executable, "-c", _ANSWERS], stdout=subprocess.PIPE, text=True) as answering:
        assert answering.stdout is not None
        answering.stdout.readline()
        with socket.create_connection((STATION, 7), timeout=60) as connection:
            connection.sendall(bytes(BYTES))
        return int(answering.stdout.readline())


def main() -> None:
    make_bridge()
    with overlay_network(), ThreadPoolExecutor(1) as station:
        during = links()
        namespace = station.submit(fresh_namespace).result()
        put_up(namespace)
        station.submit(dress).result()
        before = crossed()
        got = sent(namespace)
        over = crossed() - before
        os.close(namespace)
        unplug()
    # A second time, as nothing may be left that is in the way.
    with overlay_network():
        pass
    said = {"during": during, "after": links(), "got": got, "over": over}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
