"""The shipped scenarios by what they load, in the order in which the console lists them."""

from __future__ import annotations

from collections.abc import Iterable

GROUPS: dict[str, tuple[str, ...]] = {
    "Start here": ("tile", "cache-modes", "consolidation"),
    "CPU": ("cpu-overhead", "cpu-priority"),
    "Memory": ("memory-overhead", "memcpy-overhead", "memory-overbooking", "memory-sharing", "tile-memory"),
    "Disk": (
        "disk-matrix",
        "disk-allocation",
        "disk-overbooking",
        "disk-overbooking-blocks",
        "disk-shared",
        "tile-backing",
        "tile-disk",
    ),
    "Network": ("network-classic", "network-vpc", "network-overlay"),
    "Java and systems": ("jvm-members", "jvm-overbooking", "query-replay", "system-overhead"),
}
OTHERS = "Others"
"""The user's own, and what has no group yet."""


def grouped(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """`names` in groups, without those that are empty."""
    known = list(names)
    groups = [(title, [name for name in members if name in known]) for title, members in GROUPS.items()]
    listed = {name for _, members in groups for name in members}
    groups.append((OTHERS, [name for name in known if name not in listed]))
    return [(title, members) for title, members in groups if members]
