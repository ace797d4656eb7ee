"""Elastic addresses: guests that others reach by another address than their own, which the kernel translates (NAT).

::

    guests ── BRIDGE ──┐
                       ├── the lab's namespace forwards ──┬── a bridge of its own ── a guest with an elastic address
    the host's address ┘                                  └── a bridge of its own ── another one

All guests take each other for neighbours. For those on another bridge the kernel answers (proxy ARP) and forwards. On
the way connection tracking gives what is sent to an elastic address the guest's own as its destination, and what the
guest sends its elastic address as its source. What is sent to the guest's own address is not forwarded; only the host
itself, which starts the lab's programs in the guest, reaches it there.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute
from pyroute2.nftables.expressions import genex, ipv4addr, verdict
from pyroute2.nftables.main import NFTables

from vmlab.hypervisor.domain_spec import Translated
from vmlab.hypervisor.lab_network import add_bridge, remove_link
from vmlab.model.names import BRIDGE, BRIDGE_MAC

_SETTINGS = Path("/proc/sys/net")
"""Those of the network namespace of the thread that opens them."""
_IPV4 = 2
_ON_LINK = 253
"""Scope of a route: the address is on the other end of the device."""
_TO_OWN, _ANY, _TO_ELASTIC, _LAST = -100, 0, 100, 300
"""Netfilter's priorities: translation of destinations, filters, translation of sources, and behind all of these."""
_SNAT, _DNAT = 0, 1
_REGISTER = 1
_EQUAL = 0
_DROP = 0
_STATE, _DESTINATION = 0x00, 0x14
"""What connection tracking knows: the state of a packet; where the first packet of a connection or its answer went."""
_INVALID = (1).to_bytes(4, sys.byteorder)
_FIRST, _ANSWER = 0, 1
_TO, _FROM, _FROM_TO_HOST = "to", "from", "from-to-host"


def put_translation(name: str, bridge: str, addresses: Translated) -> None:
    """Make the new bridge `bridge` for one guest, forward between it and the lab's, and translate.

    `name` is that of the guest, and of its table of rules. Works in the network namespace of the calling thread. Raises
    NetlinkError and OSError where the kernel cannot.
    """
    with IPRoute() as route:
        index = add_bridge(route, bridge)
        route.link("set", index=index, address=BRIDGE_MAC)
        route.link("set", index=index, state="up")
        for address in (addresses.own, addresses.elastic):
            route.route("add", dst=f"{address}/32", oif=index, scope=_ON_LINK)
    for one in (BRIDGE, bridge):
        _let_forward(one, True)
    with NFTables() as tables:
        tables.table("add", name=name)
        for chain, kind, hook, priority, rules in _chains(addresses):
            tables.chain("add", table=name, name=chain, type=kind, hook=hook, priority=priority)
            for expressions in rules:
                tables.rule("add", table=name, chain=chain, expressions=expressions)


def remove_translation(name: str, bridge: str, *, last: bool) -> None:
    """Undo what is there of `put_translation`; with `last` the lab's bridge forwards no longer."""
    with IPRoute() as route:
        remove_link(route, bridge)
    if last:
        _let_forward(BRIDGE, False)
    with NFTables() as tables:
        if any(table.get_attr("NFTA_TABLE_NAME") == name for table in tables.get_tables()):
            tables.table("del", name=name)


def translated() -> dict[str, tuple[int, int]]:
    """Bytes, with IP headers, that have gone to each guest and come from it with a translated address, by its name."""
    seen: Counter[tuple[str, str]] = Counter()
    with NFTables() as tables:
        for rule in tables.get_rules():
            table, chain = rule.get_attr("NFTA_RULE_TABLE"), rule.get_attr("NFTA_RULE_CHAIN")
            for expression in rule.get_attr("NFTA_RULE_EXPRESSIONS") or ():
                if expression.get_attr("NFTA_EXPR_NAME") == "counter":
                    counted = expression.get_attr("NFTA_EXPR_DATA").get_attr("NFTA_COUNTER_BYTES")
                    seen[table, _TO if chain == _TO else _FROM] += counted
    return {name: (seen[name, _TO], seen[name, _FROM]) for name, _ in seen}


def _let_forward(bridge: str, on: bool) -> None:
    for setting in ("forwarding", "proxy_arp"):
        (_SETTINGS / "ipv4/conf" / bridge / setting).write_text(f"{on:d}")
    # The kernel would wait up to 0.8 s before it answers for another.
    (_SETTINGS / "ipv4/neigh" / bridge / "proxy_delay").write_text("0")
    # A host with a firewall for what its bridges pass on would have that go through these rules too.
    if (bridged := _SETTINGS / "bridge/bridge-nf-call-iptables").exists():
        bridged.write_text("0")


Rule = list[list[Any]]


def _chains(addresses: Translated) -> Iterator[tuple[str, str, str, int, list[Rule]]]:
    """Name, type, hook and priority of each chain of a guest, and its rules."""
    own, elastic = addresses.own, addresses.elastic
    to_own: Rule = [ipv4addr(dst=elastic), _translate(_DNAT, own)]
    to_elastic: Rule = [ipv4addr(src=own), _translate(_SNAT, elastic)]
    yield "arriving", "nat", "prerouting", _TO_OWN, [to_own]
    yield "sent-by-host", "nat", "output", _TO_OWN, [to_own]
    yield "leaving", "nat", "postrouting", _TO_ELASTIC, [to_elastic]
    yield "for-host", "nat", "input", _TO_ELASTIC, [to_elastic]
    # A packet that belongs to no connection would pass as it is.
    refused: list[Rule] = [[_tracked(_STATE, _INVALID)], [_tracked(_DESTINATION, _packed(own), _FIRST)]]
    yield "forwarded", "filter", "forward", _ANY, [[*rule, verdict(_DROP)] for rule in refused]
    arrived: list[Rule] = [
        [ipv4addr(dst=own), _tracked(_DESTINATION, _packed(elastic), whose)] for whose in (_FIRST, _ANSWER)
    ]
    yield _TO, "filter", "postrouting", _LAST, [[*rule, [genex("counter", {})]] for rule in arrived]
    for chain, hook in ((_FROM, "postrouting"), (_FROM_TO_HOST, "input")):
        yield chain, "filter", hook, _LAST, [[ipv4addr(src=elastic), [genex("counter", {})]]]


def _translate(kind: int, address: str) -> list[Any]:
    load = {"dreg": _REGISTER, "data": _data(_packed(address))}
    return [genex("immediate", load), genex("nat", {"type": kind, "family": _IPV4, "reg_addr_min": _REGISTER})]


def _tracked(key: int, value: bytes, whose: int | None = None) -> list[Any]:
    """Whether connection tracking has this value for the packet, or for one direction of its connection."""
    load = {"dreg": _REGISTER, "key": key, **({} if whose is None else {"direction": whose})}
    return [genex("ct", load), genex("cmp", {"sreg": _REGISTER, "op": _EQUAL, "data": _data(value)})]


def _data(value: bytes) -> dict[str, Any]:
    return {"attrs": [("NFTA_DATA_VALUE", value)]}


def _packed(address: str) -> bytes:
    return IPv4Address(address).packed
