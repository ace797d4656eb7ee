"""`huge_pages`, `ksm`, `memory_lock`, `numa`: the host's memory that a guest's RAM lies in.

QEMU asks the kernel for transparent huge pages for the RAM of every guest; whether it gets any is the host's setting
alone. Pages that are reserved are files of a hugetlbfs, which libvirt makes and QEMU maps. QEMU lets KSM merge RAM
(madvise) unless it is told not to, and locks all of its memory (mlockall) where it is told to. What the kernel tells of
the memory of QEMU's process (proc_pid_smaps(5)) is the proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu, child_of
from vmlab.model.axes import axis_word
from vmlab.model.errors import HypervisorError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.guest import GuestResources
from vmlab.model.scenarios.memory_levers import RESERVED_BYTES

SMAPS = "smaps of the guest's RAM"
_RANGE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) ")
_AT = re.compile(r" is 0x([0-9a-f]+)")
_FLAGS = (("ksm", "mg", "VmFlags mg (mergeable)"), ("memory_lock", "lo", "VmFlags lo (locked)"))
"""Of each key, the kernel's flag of a mapping, and where it is read."""
_TRANSPARENT = "transparent"
_PAGES_ON = re.compile(r" N([0-9]+)=[1-9]")
_BOUND = re.compile(r"bind(?:=static|=relative)?:([0-9,-]+)")


@dataclass(frozen=True, slots=True)
class RamMapping:
    """One mapping of it: its first address, all fields of its text by their names, and the kernel's flags."""

    start: int
    fields: dict[str, str]
    flags: frozenset[str]

    def kib(self, name: str) -> int:
        """An amount, in KiB; 0 where this kernel does not tell it."""
        return int(self.fields.get(name, "0").split()[0])


def ram_of(qemu: RunningQemu) -> list[RamMapping]:
    """The mappings, in order. Raises HypervisorError where QEMU does not say where its guest's RAM is, and OSError."""
    said = str(qemu.monitor("human-monitor-command", {"command-line": "gpa2hva 0"}))
    if (match := _AT.search(said)) is None:
        raise HypervisorError(f"QEMU does not say where its guest's RAM is: {said.strip()[:100]}")
    first = int(match[1], 16)
    last = first + qemu.asked.memory_bytes
    found = [one for begin, end, one in _mappings((qemu.process / "smaps").read_text()) if begin < last and end > first]
    if not found:
        raise HypervisorError("the kernel has no mapping where QEMU says that its guest's RAM is")
    return found


def _mappings(text: str) -> Iterator[tuple[int, int, RamMapping]]:
    begin, end, fields = 0, 0, dict[str, str]()
    for line in text.splitlines():
        if (match := _RANGE.match(line)) is not None:
            begin, end, fields = int(match[1], 16), int(match[2], 16), {}
            continue
        name, _, value = line.partition(":")
        fields[name] = value.strip()
        if name == "VmFlags":
            # The last line of each.
            yield begin, end, RamMapping(begin, fields, frozenset(value.split()))


class MemoryBackingLever(GuestLever):
    """libvirt's ``memoryBacking``."""

    keys = ("huge_pages", "ksm", "memory_lock")

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """What QEMU does by itself needs no word."""
        if asked.page_bytes is not None:
            pages = etree.SubElement(child_of(domain, "memoryBacking"), "hugepages")
            etree.SubElement(pages, "page", size=str(asked.page_bytes // 1024), unit="KiB")
        if asked.ksm is False:
            etree.SubElement(child_of(domain, "memoryBacking"), "nosharepages")
        if asked.memory_lock:
            etree.SubElement(child_of(domain, "memoryBacking"), "locked")

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By what the kernel says of the mappings of its RAM."""
        ram = ram_of(qemu)
        if qemu.asked.huge_pages is not None:
            huge = 1024 * sum(one.kib("AnonHugePages") for one in ram)
            found = " and ".join(dict.fromkeys(map(_pages_of, ram)))
            if found == _TRANSPARENT and not huge:
                # The host may have no memory in one piece, or sizes that count elsewhere.
                found = "transparent where the host has some, and it has none now"
            now = f"of which {format_bytes(huge)} are transparent huge pages now"
            by = f"KernelPageSize and THPeligible in {SMAPS}, {now}"
            yield qemu.proof("huge_pages", qemu.asked.huge_pages, found, by)
        for key, flag, what in _FLAGS:
            asked = getattr(qemu.asked, key)
            if asked is not None:
                found = " and ".join(dict.fromkeys(axis_word(flag in one.flags) for one in ram))
                yield qemu.proof(key, axis_word(asked), found, f"{what} in {SMAPS}")


def _pages_of(mapping: RamMapping) -> str:
    """In the scenario's words; a size that has none there as it is."""
    size = 1024 * mapping.kib("KernelPageSize")
    known = next((name for name, bytes_ in RESERVED_BYTES.items() if bytes_ == size), None)
    if known is not None or size > 2**16:
        return known or format_bytes(size)
    return _TRANSPARENT if mapping.kib("THPeligible") else "none"


class NumaLever(GuestLever):
    """`numa`: the node of the host whose memory a guest's RAM is taken from. libvirt's ``numatune``."""

    keys = ("numa",)

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """Strictly: where that node has none left, the guest does not get any from another one."""
        if asked.numa is not None:
            tune = etree.SubElement(domain, "numatune")
            etree.SubElement(tune, "memory", mode="strict", nodeset=str(asked.numa))

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the kernel's policy for the RAM, and by where its pages are now (numa_maps, numa(7))."""
        if qemu.asked.numa is None:
            return
        wanted, lines = str(qemu.asked.numa), _lines(qemu.process / "numa_maps")
        mapped = [lines.get(one.start, "") for one in ram_of(qemu)]
        found = " and ".join(dict.fromkeys(map(_bound, mapped)))
        elsewhere = sorted({node for line in mapped for node in _PAGES_ON.findall(line)} - {wanted})
        if found == wanted and elsewhere:
            found = f"{found}, with pages on {','.join(elsewhere)}"
        yield qemu.proof("numa", wanted, found, "/proc/PID/numa_maps of the guest's RAM")


def _lines(file: Path) -> dict[int, str]:
    """What is said of each mapping, by its first address."""
    parts = (line.partition(" ") for line in file.read_text().splitlines())
    return {int(address, 16): said for address, _, said in parts}


def _bound(line: str) -> str:
    """The nodes that a mapping is bound to; none where its pages may come from any."""
    match = _BOUND.match(line)
    return match[1] if match is not None else "none"
