"""Addresses of a cell's guests, on the lab's own network only.

The same guest of the same tile has the same address and MAC in every cell, so that both sides of a comparison agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from ipaddress import IPv4Network

from vmlab.model.names import NETWORK, elastic_address, guest_address, guest_mac
from vmlab.plan.terms import GuestPlan


def positions(guests: Iterable[GuestPlan]) -> dict[str, tuple[int, int]]:
    """Tile and position in it, from 0, by guest key."""
    seen: dict[int, int] = defaultdict(int)
    found = {}
    for guest in guests:
        found[guest.key] = (guest.tile, seen[guest.tile])
        seen[guest.tile] += 1
    return found


def addresses(guests: Iterable[GuestPlan], network: IPv4Network = NETWORK) -> dict[str, str]:
    """IPv4 address in `network` by guest key."""
    return {key: guest_address(*place, network) for key, place in positions(guests).items()}


def elastic_addresses(guests: Iterable[GuestPlan]) -> dict[str, str]:
    """IPv4 address by which others reach a guest whose addresses are translated, by guest key; others have none."""
    guests = list(guests)
    translated = {guest.key for guest in guests if guest.resources.network == "nat"}
    return {key: elastic_address(*place) for key, place in positions(guests).items() if key in translated}


def macs(guests: Iterable[GuestPlan]) -> dict[str, str]:
    """MAC address by guest key."""
    return {key: guest_mac(*place) for key, place in positions(guests).items()}
