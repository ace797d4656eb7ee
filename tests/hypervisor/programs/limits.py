"""Limits a station on the lab's far bridge, has it take and send a megabyte, and tells how long that took."""

import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pyroute2 import IPRoute

from tests.hypervisor.conftest import spec
from tests.hypervisor.programs.overlay import STATION, dress, links, put_up
from vmlab.hypervisor.lab_network import fresh_namespace, make_bridge
from vmlab.hypervisor.overlay_network.guest_networks import GuestNetworks

BYTES = 2**20
_ANSWERS = f"""
import socket
listener = socket.create_server(("{STATION}", 7))
print("listens", flush=True)
connection, _ = listener.accept()
print(len(connection.recv({BYTES}, socket.MSG_WAITALL)), flush=True)
connection.sendall(bytes({BYTES}))
connection.close()
"""
RATE = 8_000_000


class Domain:
    """As much of libvirt's domain as is asked for its tap."""

    def __init__(self, mac: str) -> None:
        self._mac = mac

    def XMLDesc(self, _flags: int) -> str:
        """Two network cards, of which the second is the guest's."""
        cards = (("52:54:00:00:00:00", "other"), (self._mac, "plug"))
        each = (f"<interface><mac address='{mac}'/><target dev='{tap}'/></interface>" for mac, tap in cards)
        return f"<domain><devices>{''.join(each)}</devices></domain>"


def moved(namespace: int) -> tuple[int, int, float, float]:
    """Bytes there and back, and the seconds of each."""
    inside = ["/usr/bin/nsenter", f"--net=/proc/{os.getpid()}/fd/{namespace}", "--"]
    with subprocess.Popen([*inside, sys.executable, "-c", _ANSWERS], stdout=subprocess.PIPE, text=True) as answering:
        assert answering.stdout is not None
        answering.stdout.readline()
        with socket.create_connection((STATION, 7), timeout=200) as connection:
            began = time.monotonic()
            connection.sendall(bytes(BYTES))
            there = int(answering.stdout.readline())
            turned = time.monotonic()
            back = len(connection.makefile("rb").read())
            return there, back, turned - began, time.monotonic() - turned


def main() -> None:
    make_bridge()
    limited = spec(network="vxlan", bandwidth=RATE)
    networks = GuestNetworks(lambda _name: Domain(limited.mac))
    networks.make([limited])
    with ThreadPoolExecutor(1) as station:
        namespace = station.submit(fresh_namespace).result()
        put_up(namespace)
        station.submit(dress).result()
        with IPRoute() as route:
            # As libvirt leaves its taps.
            route.tc("replace", "noqueue", index=route.link_lookup(ifname="plug")[0], handle=0)
        networks.limit(limited)
        during = links()
        before = networks.counts([limited])
        there, back, out, home = moved(namespace)
        after = networks.counts([limited])
    ends = zip(after.limited[limited.name], before.limited[limited.name], strict=True)
    carried = [later - earlier for later, earlier in ends]
    tunnel, cable = (after.tunnel or 0) - (before.tunnel or 0), (after.cable or 0) - (before.cable or 0)
    networks.release(limited.name)
    networks.release(limited.name)
    with IPRoute() as route:
        route.link("del", index=route.link_lookup(ifname="plug")[0])
    networks.make([spec(network="plain")])
    plain = links()
    os.close(namespace)
    networks.close()
    told = {"during": during, "there": there, "back": back, "out": out, "home": home, "plain": plain}
    sys.stdout.write(json.dumps(told | {"carried": carried, "tunnel": tunnel, "cable": cable}))


if __name__ == "__main__":
    main()
