"""The keys of a guest on the host's memory behind its RAM, and which of them do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from vmlab.model.quantities import format_bytes

if TYPE_CHECKING:
    from vmlab.model.scenarios.guest import GuestAttributes
    from vmlab.model.scenarios.host_settings import Host

HugePages = Literal["none", "transparent", "2 MiB", "1 GiB"]
RESERVED_BYTES: dict[str, int] = {"2 MiB": 2**21, "1 GiB": 2**30}
"""Bytes of the huge pages that a host reserves; of the others it takes what is free."""
RESERVED_PAGES: dict[int, str] = {size: name for name, size in RESERVED_BYTES.items()}


def pages_conflict(guest: GuestAttributes) -> str | None:
    """Why the RAM cannot lie in the pages that the key ``huge_pages`` names."""
    size = guest.page_bytes
    if size is None:
        return None
    if guest.numa is not None:
        return (
            f"huge_pages: {guest.huge_pages} are reserved on every NUMA node, and numa names one; leave one of them out"
        )
    if guest.memory_bytes % size == 0:
        return None
    having, next_one = format_bytes(guest.memory_bytes), format_bytes(-(-guest.memory_bytes // size) * size)
    return f"huge_pages: {guest.huge_pages} needs memory in whole pages: {next_one}, not {having}"


def ksm_conflict(guest: GuestAttributes) -> str | None:
    """Why the RAM cannot be merged as the key ``ksm`` says."""
    if guest.ksm is not True or guest.page_bytes is None:
        return None
    return f"KSM merges no huge pages that are reserved: ksm: true excludes huge_pages: {guest.huge_pages}"


def pages_host_conflict(guest: GuestAttributes, host: Host) -> str | None:
    """Why the settings of the host, or the ordered one, forbid what the key ``huge_pages`` asks for."""
    # QEMU asks for them for the RAM of every guest (madvise in ram_block_add of softmmu/physmem.c), and has no option.
    if guest.huge_pages == "none" and host.thp != "never":
        return (
            "QEMU always asks for transparent huge pages; with huge_pages: none the scenario needs host: {thp: never}"
        )
    if guest.huge_pages == "transparent" and host.thp == "never":
        return "host.thp: never leaves no transparent huge pages; use madvise or always, or huge_pages: none"
    if guest.page_bytes is not None and host.memory_bytes is not None:
        return "huge pages that are reserved do not count in the memory of a limited host; leave out one of the two"
    return None
