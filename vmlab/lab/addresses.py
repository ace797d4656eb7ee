"""Addresses of guests: in 198.18.0.0/15, which RFC 2544 keeps for benchmarks, and inside the lab's namespace only.

The same guest of the same tile has the same address and MAC in every cell, so that both sides of a comparison agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from vmlab.plan.terms import GuestPlan

HOST_ADDRESS = "198.18.0.1"
PREFIX = 15
_FIRST_GUEST = 10


def _positions(guests: Iterable[GuestPlan]) -> dict[str, tuple[int, int]]:
    seen: dict[int, int] = defaultdict(int)
    positions = {}
    for guest in guests:
        positions[guest.key] = (guest.tile, seen[guest.tile])
        seen[guest.tile] += 1
    return positions


def addresses(guests: Iterable[GuestPlan]) -> dict[str, str]:
    """IPv4 address by guest key; up to 255 tiles of up to 240 guests."""
    return {key: f"198.18.{tile}.{_FIRST_GUEST + n}" for key, (tile, n) in _positions(guests).items()}


def macs(guests: Iterable[GuestPlan]) -> dict[str, str]:
    """MAC address by guest key, under QEMU's own prefix."""
    return {key: f"52:54:00:12:{tile:02x}:{_FIRST_GUEST + n:02x}" for key, (tile, n) in _positions(guests).items()}
