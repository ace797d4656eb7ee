"""`huge_pages`, `ksm`, `memory_lock`: the host's memory that a guest's RAM lies in.

QEMU asks the kernel for transparent huge pages for the RAM of every guest; whether it gets any is the host's setting
alone. Pages that are reserved are files of a hugetlbfs, which libvirt makes and QEMU maps. QEMU lets KSM merge RAM
(madvise) unless it is told not to, and locks all of its memory (mlockall) where it is told to.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.hypervisor.levers.guest_ram import SMAPS, RamMapping, ram_of
from vmlab.model.axes import axis_word
from vmlab.model.quantities import format_bytes
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.guest import GuestResources
from vmlab.model.scenarios.memory_levers import RESERVED_BYTES

_FLAGS = (("ksm", "mg", "VmFlags mg (mergeable)"), ("memory_lock", "lo", "VmFlags lo (locked)"))
"""Of each key, the kernel's flag of a mapping, and where it is read."""


class MemoryBackingLever(GuestLever):
    """libvirt's ``memoryBacking``."""

    keys = ("huge_pages", "ksm", "memory_lock")

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """What QEMU does by itself needs no word."""
        if asked.page_bytes is not None:
            pages = etree.SubElement(_backing(domain), "hugepages")
            etree.SubElement(pages, "page", size=str(asked.page_bytes // 1024), unit="KiB")
        if asked.ksm is False:
            etree.SubElement(_backing(domain), "nosharepages")
        if asked.memory_lock:
            etree.SubElement(_backing(domain), "locked")

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By what the kernel says of the mappings of its RAM."""
        ram = ram_of(qemu)
        if qemu.asked.huge_pages is not None:
            huge = format_bytes(1024 * sum(one.kib("AnonHugePages") for one in ram))
            found = " and ".join(dict.fromkeys(map(_pages_of, ram)))
            by = f"KernelPageSize and THPeligible in {SMAPS}, of which {huge} are transparent huge pages now"
            yield qemu.proof("huge_pages", qemu.asked.huge_pages, found, by)
        for key, flag, what in _FLAGS:
            asked = getattr(qemu.asked, key)
            if asked is not None:
                found = " and ".join(dict.fromkeys(axis_word(flag in one.flags) for one in ram))
                yield qemu.proof(key, axis_word(asked), found, f"{what} in {SMAPS}")


def _backing(domain: etree._Element) -> etree._Element:
    found = domain.find("memoryBacking")
    return etree.SubElement(domain, "memoryBacking") if found is None else found


def _pages_of(mapping: RamMapping) -> str:
    """In the scenario's words; a size that has none there as it is."""
    size = 1024 * mapping.kib("KernelPageSize")
    known = next((name for name, bytes_ in RESERVED_BYTES.items() if bytes_ == size), None)
    if known is not None or size > 2**16:
        return known or format_bytes(size)
    return "transparent" if mapping.kib("THPeligible") else "none"


LEVER = MemoryBackingLever()
