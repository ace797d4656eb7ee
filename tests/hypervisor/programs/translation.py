"""Gives two stations elastic addresses, has them and a plain one talk to each other, and tells what was translated."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute
from pyroute2.nftables.main import NFTables

from tests.hypervisor.conftest import spec
from tests.hypervisor.programs.overlay import links
from vmlab.hypervisor.domain_spec import Translated
from vmlab.hypervisor.lab_network import fresh_namespace, link_index, make_bridge
from vmlab.hypervisor.overlay_network.guest_networks import GuestNetworks
from vmlab.model.errors import HypervisorError
from vmlab.model.names import BRIDGE, HOST_ADDRESS, PREFIX, elastic_address, guest_address, guest_mac, routed_bridge_of

BYTES = 2**20
NAMES = ("near", "far", "plain")
OWN = {name: guest_address(1, place) for place, name in enumerate(NAMES)}
ELASTIC = {name: elastic_address(1, place) for place, name in enumerate(NAMES)}
_ANSWERS = f"""
import socket, sys
listener = socket.create_server((sys.argv[1], 7))
print("listens", flush=True)
connection, (peer, _) = listener.accept()
connection.settimeout(60)
print(len(connection.makefile("rb").read({BYTES})), peer, connection.getsockname()[0], flush=True)
connection.sendall(bytes({BYTES}))
connection.close()
"""
_ASKS = f"""
import socket, sys
try:
    connection = socket.create_connection((sys.argv[1], 7), timeout=float(sys.argv[2]))
except OSError:
    print("nobody")
    sys.exit()
connection.settimeout(60)
connection.sendall(bytes({BYTES}))
print(len(connection.makefile("rb").read()), connection.getpeername()[0], connection.getsockname()[0])
"""


def plug_in(name: str, bridge: str, namespace: int) -> None:
    with IPRoute() as route:
        route.link("add", ifname=f"plug-{name}", kind="veth", peer={"ifname": "card", "net_ns_fd": namespace})
        index = link_index(route, f"plug-{name}")
        route.link("set", index=index, master=link_index(route, bridge))
        route.link("set", index=index, state="up")


def dress(address: str) -> None:
    with IPRoute() as route:
        index = link_index(route, "card")
        route.addr("add", index=index, address=address, prefixlen=PREFIX)
        route.link("set", index=index, state="up")


def start(namespace: int | None, program: str, *arguments: str) -> subprocess.Popen[str]:
    inside = [] if namespace is None else ["/usr/bin/nsenter", f"--net=/proc/{os.getpid()}/fd/{namespace}", "--"]
    return subprocess.Popen([*inside, sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)


def talk(asks: int | None, answers: int | None, listens: str, address: str, patience: float = 60) -> dict[str, Any]:
    """What both ends saw: bytes, the other's address, and their own."""
    with start(answers, _ANSWERS, listens) as server:
        assert server.stdout is not None
        server.stdout.readline()
        with start(asks, _ASKS, address, str(patience)) as client:
            said = client.communicate()[0].split()
        if said == ["nobody"]:
            server.kill()
            return {"client": said}
        return {"client": said, "server": server.stdout.readline().split()}


def counted(networks: GuestNetworks, specs: list[Any]) -> dict[str, tuple[int, int]]:
    return dict(networks.counts(specs).translated)


def main() -> None:
    make_bridge()
    specs = [
        replace(
            spec(name, network="plain" if name == "plain" else "nat"),
            mac=guest_mac(1, place),
            translated=None if name == "plain" else Translated(OWN[name], ELASTIC[name]),
        )
        for place, name in enumerate(NAMES)
    ]
    networks = GuestNetworks(lambda _name: None)
    networks.make(specs)
    networks.make(specs)
    told: dict[str, Any] = {}
    at: dict[str, int] = {}
    with ExitStack() as stations:
        for one in specs:
            station = stations.enter_context(ThreadPoolExecutor(1))
            at[one.name] = station.submit(fresh_namespace).result()
            bridge = BRIDGE if one.name == "plain" else routed_bridge_of(one.mac)
            plug_in(one.name, bridge, at[one.name])
            station.submit(dress, OWN[one.name]).result()
        told["during"] = [name for name in links() if not name.startswith("plug-")]
        ways = {
            "both": (at["near"], "far", ELASTIC["far"]),
            "in": (at["plain"], "far", ELASTIC["far"]),
            "out": (at["far"], "plain", OWN["plain"]),
            "host": (None, "far", ELASTIC["far"]),
            "to-host": (at["far"], "host", HOST_ADDRESS),
        }
        for way, (asks, server, address) in ways.items():
            before = counted(networks, specs)
            said = talk(asks, at.get(server), OWN.get(server, HOST_ADDRESS), address)
            after = counted(networks, specs)
            grown = {name: [b - a for a, b in zip(before[name], after[name], strict=True)] for name in after}
            told[way] = said | {"grown": grown}
        before = counted(networks, specs)
        told["management"] = talk(None, at["far"], OWN["far"], OWN["far"])
        told["uncounted"] = counted(networks, specs) == before
        past = {who: talk(at[who], at["far"], OWN["far"], OWN["far"], 3.0)["client"] for who in ("near", "plain")}
        told["refused"] = {who: client == ["nobody"] for who, client in past.items()}
    with NFTables() as tables:
        tables.table("del", name="far")
    try:
        networks.counts(specs)
    except HypervisorError as error:
        told["gone"] = str(error)
    for one in specs:
        networks.release(one.name)
        networks.release(one.name)
    with IPRoute() as route:
        for name in NAMES:
            for index in route.link_lookup(ifname=f"plug-{name}"):
                route.link("del", index=index)
    with NFTables() as tables:
        told["tables"] = len(list(tables.get_tables()))
    told["after"] = links()
    told["forwarding"] = Path(f"/proc/sys/net/ipv4/conf/{BRIDGE}/forwarding").read_text().strip()
    for namespace in at.values():
        os.close(namespace)
    networks.close()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
