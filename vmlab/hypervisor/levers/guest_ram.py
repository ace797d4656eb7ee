"""The memory of QEMU's process that is the RAM of its guest, as the kernel tells of it (proc_pid_smaps(5))."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vmlab.hypervisor.levers.guest_lever import RunningQemu
from vmlab.model.errors import HypervisorError

SMAPS = "smaps of the guest's RAM"
_RANGE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) ")
_AT = re.compile(r" is 0x([0-9a-f]+)")


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
