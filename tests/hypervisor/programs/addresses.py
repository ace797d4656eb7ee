"""Has the lab's DHCP server answer cards on the bridge, and tells which address each was offered, in which network."""

import asyncio
import json
import socket
import struct
import sys

from pyroute2 import IPRoute

from tests.processes import named
from vmlab.hypervisor.lab_network import AddressServer, link_index, make_bridge
from vmlab.model.names import BRIDGE

KNOWN = {"52:54:00:12:01:0a": "198.18.1.10", "52:54:00:12:01:0b": "198.18.1.11"}
_CARD = "guest0"
_MAGIC = b"\x63\x82\x53\x63"
_ETHERNET_IP_UDP = 14 + 20 + 8
_MASK, _ROUTER, _NAME_SERVER = 1, 3, 6


def plug_in() -> None:
    """A cable whose one end is on the bridge; the other is the guests' card."""
    with IPRoute() as route:
        route.link("add", ifname="cable0", kind="veth", peer=_CARD)
        for name in ("cable0", _CARD):
            route.link("set", index=link_index(route, name), state="up")
        route.link("set", index=link_index(route, "cable0"), master=link_index(route, BRIDGE))


def discover(mac: str) -> bytes:
    """DHCPDISCOVER of that card, which asks for mask, router and name server (RFC 2131, RFC 2132)."""
    address = bytes.fromhex(mac.replace(":", ""))
    head = struct.pack("!BBBBIHH16x16s192x", 1, 1, 6, 0, int.from_bytes(address[2:]), 0, 0x8000, address)
    return head + _MAGIC + bytes([53, 1, 1, 55, 3, _MASK, _ROUTER, _NAME_SERVER, 255])


def framed(mac: str, message: bytes) -> bytes:
    """The message as a broadcast of a card that has no address yet (RFC 791, RFC 768; UDP goes without a checksum)."""
    datagram = struct.pack("!HHHH", 68, 67, 8 + len(message), 0) + message
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 0, 0, 64, 17, 0, bytes(4), b"\xff" * 4)
    total = sum(struct.unpack("!10H", head))
    checksum = ~(total + (total >> 16)) & 0xFFFF
    head = head[:10] + struct.pack("!H", checksum) + head[12:]
    return b"\xff" * 6 + bytes.fromhex(mac.replace(":", "")) + b"\x08\x00" + head + datagram


def options(message: bytes) -> dict[int, str]:
    """The options of an answer by number, in hex."""
    found, at = {}, message.index(_MAGIC) + len(_MAGIC)
    while message[at] != 255:
        found[message[at]] = message[at + 2 : at + 2 + message[at + 1]].hex()
        at += 2 + message[at + 1]
    return found


def offered(mac: str, patience: float) -> dict[str, object] | None:
    """The first answer to `mac`; None where none comes within so many seconds."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as wire:
        wire.bind((_CARD, 0))
        wire.settimeout(patience)
        wire.send(framed(mac, discover(mac)))
        try:
            while True:
                answer = wire.recv(2048)[_ETHERNET_IP_UDP:]
                if answer[:1] == b"\x02" and answer[28:34] == bytes.fromhex(mac.replace(":", "")):
                    return {"address": socket.inet_ntoa(answer[16:20]), "options": options(answer)}
        except TimeoutError:
            return None


async def main() -> None:
    await asyncio.to_thread(make_bridge)
    await asyncio.to_thread(plug_in)
    server = AddressServer()
    first, second = KNOWN.items()
    await server.serve(dict([first]))
    said: dict[str, object] = {"first": await asyncio.to_thread(offered, first[0], 60.0)}
    await server.serve(dict([second]))
    # Those that were given before stay: a guest may ask again.
    said["again"] = await asyncio.to_thread(offered, first[0], 60.0)
    said["second"] = await asyncio.to_thread(offered, second[0], 60.0)
    said["stranger"] = await asyncio.to_thread(offered, "52:54:00:12:01:0c", 2.0)
    await server.stop()
    said["children"] = [process.pid for process in named("dnsmasq")]
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(main())
