"""Notices links of the lab's network that are changed: the kernel tells each change, so that none is too short.

A link is a tap of a guest, a bridge, or any other interface of this network namespace. rtnetlink(7) has the messages;
the numbers are those of linux/if_link.h, linux/rtnetlink.h and linux/if.h.
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from vmlab.telemetry.steady_values import Changed

_GROUPS = 0x1 | 0x8
"""RTMGRP_LINK and RTMGRP_TC."""
_NEWLINK, _DELLINK, _GETLINK, _NEWQDISC, _DELQDISC, _NEWFILTER, _DELFILTER = 16, 17, 18, 36, 37, 44, 45
_SHAPED = (_NEWQDISC, _DELQDISC, _NEWFILTER, _DELFILTER)
_REQUEST_DUMP = 0x301
_DONE = 3
_HEADER, _LINK, _ATTRIBUTE, _SHAPE = struct.Struct("=IHHII"), struct.Struct("=BxHiII"), struct.Struct("=HH"), "=Bxxxi"
_NAME, _MTU, _QDISC, _MASTER, _PORT, _QUEUE, _OPERSTATE, _CARRIER = 3, 4, 6, 10, 12, 13, 16, 33
_PORT_STATE, _FLOODS, _ISOLATED = 1, 9, 33
_IFF_UP = 1
_BRIDGE_FAMILY = 7
_DOWN = {1: "not present", 2: "down", 3: "its lower layer down", 5: "dormant"}
_FORWARDING = 3
_WHERE, _HERE = "network namespace", "the lab's"
_BUFFER = 2**20
_PIECE = 2**17


@dataclass(slots=True)
class _Link:
    name: str
    first: dict[str, str]
    since: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)


class LinkStates:
    """The links that this network namespace has at the first look: later ones come with guests that are added.

    Where the namespace is not the lab's own, they are the lab's `bridge` and its ports. Raises OSError where the kernel
    tells nothing, or has no such bridge.
    """

    def __init__(self, bridge: str | None = None) -> None:
        self._bridge = None if bridge is None else socket.if_nametoindex(bridge)
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.bind((0, _GROUPS))
        self._socket.setblocking(False)
        # Most looks hear of nothing, and to have so much memory for each would cost more than to ask.
        self._piece = memoryview(bytearray(_PIECE))
        self._links: dict[int, _Link] = {}
        self._gone: dict[int, _Link] = {}
        self._listed = False
        self._ask()

    def fileno(self) -> int:
        """Readable once the kernel has told something."""
        return self._socket.fileno()

    def close(self) -> None:
        """Hear of nothing any more."""
        self._socket.close()

    def look(self, now: float) -> None:
        """Take what the kernel has told; it happened before `now`, in seconds of the monotonic clock."""
        while True:
            try:
                length = self._socket.recv_into(self._piece)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                # There was more than the kernel keeps: what is so now is known again from a new list.
                self._ask()
                continue
            for kind, family, body in _messages(bytes(self._piece[:length])):
                if kind == _DONE and family == 0:
                    self._listed = True
                    self._ask(_BRIDGE_FAMILY)
                self._hear(kind, body, now)

    def changed(self, now: float) -> list[Changed]:
        """What was changed so far."""
        return [
            Changed(
                f"the {what} of link {link.name}",
                link.first.get(what, "as it was made"),
                other,
                link.seconds.get(what, 0.0) + (now - link.since[what] if what in link.since else 0.0),
            )
            for link in self._links.values()
            for what, other in link.other.items()
        ]

    def _ask(self, family: int = 0) -> None:
        """Have all links listed, as those of a family."""
        length = _HEADER.size + _LINK.size
        self._socket.send(_HEADER.pack(length, _GETLINK, _REQUEST_DUMP, family, 0) + _LINK.pack(family, 0, 0, 0, 0))

    def _hear(self, kind: int, body: bytes, now: float) -> None:
        if kind in _SHAPED:
            _, index = struct.unpack_from(_SHAPE, body)
            if index in self._links:
                self._links[index].other["traffic control"] = "changed"
        elif kind in (_NEWLINK, _DELLINK):
            family, _, index, flags, _ = _LINK.unpack_from(body)
            if family == _BRIDGE_FAMILY:
                if kind == _NEWLINK and index in self._links:
                    self._compare(self._links[index], dict(_port(body)), now)
            elif kind == _DELLINK:
                # It went with its guest, unless it comes back.
                if (link := self._links.pop(index, None)) is not None:
                    self._gone[index] = link
                    self._compare(link, {_WHERE: "elsewhere"}, now)
            else:
                self._take(index, flags, dict(_attributes(body, _LINK.size)), now)

    def _take(self, index: int, flags: int, told: dict[int, bytes], now: float) -> None:
        state = {**dict(_state(flags, told)), _WHERE: _HERE}
        if (back := self._gone.pop(index, None)) is not None:
            self._links[index] = back
        link = self._links.get(index)
        if link is not None:
            self._compare(link, state, now)
        elif not self._listed and flags & _IFF_UP and self._is_the_labs(index, told):
            name = told.get(_NAME, b"").rstrip(b"\0").decode("utf-8", "replace")
            self._links[index] = _Link(name, state)

    def _is_the_labs(self, index: int, told: dict[int, bytes]) -> bool:
        port_of = int.from_bytes(told.get(_MASTER, b""), sys.byteorder)
        return self._bridge is None or self._bridge in (index, port_of)

    def _compare(self, link: _Link, state: dict[str, str], now: float) -> None:
        for what, value in state.items():
            if value != link.first.setdefault(what, value):
                link.other.setdefault(what, value)
                link.since.setdefault(what, now)
            elif what in link.since:
                link.seconds[what] = link.seconds.get(what, 0.0) + now - link.since.pop(what)


def _messages(told: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The kind of each message, the family that was asked for where it answers, and its body."""
    at = 0
    while at + _HEADER.size <= len(told):
        length, kind, _, asked, _ = _HEADER.unpack_from(told, at)
        if length < _HEADER.size:
            return
        yield kind, asked, told[at + _HEADER.size : at + length]
        at += (length + 3) & ~3


def _attributes(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, body[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3


def _state(flags: int, told: dict[int, bytes]) -> Iterator[tuple[str, str]]:
    operstate = told.get(_OPERSTATE, b"\0")[0]
    carrier = told.get(_CARRIER, b"\1")[0]
    yield "state", "down" if not flags & _IFF_UP else _DOWN.get(operstate, "up" if carrier else "without a carrier")
    for what, attribute in (("MTU", _MTU), ("queue length", _QUEUE), ("bridge", _MASTER)):
        yield what, str(int.from_bytes(told.get(attribute, b""), sys.byteorder))
    yield "queueing", told.get(_QDISC, b"").rstrip(b"\0").decode("utf-8", "replace") or "none"


def _port(body: bytes) -> Iterator[tuple[str, str]]:
    port = dict(_attributes(body, _LINK.size)).get(_PORT)
    if port is not None:
        told = dict(_attributes(port, 0))
        state = told.get(_PORT_STATE, bytes([_FORWARDING]))[0]
        yield "bridge port", "forwarding" if state == _FORWARDING else f"in state {state}"
        for what, attribute in (("isolation", _ISOLATED), ("flooding", _FLOODS)):
            yield what, "on" if any(told.get(attribute, b"")) else "off"
