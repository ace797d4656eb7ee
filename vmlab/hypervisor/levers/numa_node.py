"""`numa`: the node of the host whose memory a guest's RAM is taken from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.hypervisor.levers.guest_ram import ram_of
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.guest import GuestResources

_PAGES_ON = re.compile(r" N([0-9]+)=[1-9]")
_BOUND = re.compile(r"bind(?:=static|=relative)?:([0-9,-]+)")


class NumaLever(GuestLever):
    """libvirt's ``numatune``, by which QEMU binds the guest's RAM."""

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


LEVER = NumaLever()
