"""What guests' QEMUs hold in memory, from /proc, and KSM switched on for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

_KSM = Path("/sys/kernel/mm/ksm")
_SCAN = {"run": "1", "pages_to_scan": "4000", "sleep_millisecs": "10"}
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class GuestMemory:
    """Bytes of one QEMU: resident of the guest's own RAM, resident in all, private in all, merged by KSM."""

    ram: int
    resident: int
    private: int
    merged: int


def memory_of_guests(ram_bytes: int) -> list[GuestMemory]:
    """Of every QEMU in this PID namespace; each guest has `ram_bytes` of RAM, by which its mapping is known."""
    qemus = [one for one in psutil.process_iter(["name"]) if one.info["name"].startswith("qemu-system")]
    return [_memory_of(Path(f"/proc/{one.pid}"), ram_bytes) for one in qemus]


def _memory_of(process: Path, ram_bytes: int) -> GuestMemory:
    resident = private = ram = size = 0
    for line in (process / "smaps").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "Size":
            size = _bytes(value)
        elif name == "Rss":
            resident += _bytes(value)
            ram += _bytes(value) if size == ram_bytes else 0
        elif name in ("Private_Clean", "Private_Dirty"):
            private += _bytes(value)
    merged = int((process / "ksm_merging_pages").read_text()) * _PAGE
    return GuestMemory(ram, resident, private, merged)


def _bytes(value: str) -> int:
    return int(value.split()[0]) * 1024


@contextmanager
def ksm_scanning() -> Iterator[None]:
    """KSM at work while the block runs; then as it was, with what was merged taken apart where it was off."""
    before = {name: (_KSM / name).read_text().strip() for name in _SCAN}
    try:
        for name, value in _SCAN.items():
            (_KSM / name).write_text(value)
        yield
    finally:
        for name, value in before.items():
            (_KSM / name).write_text("2" if name == "run" and value == "0" else value)
        if before["run"] == "0":
            (_KSM / "run").write_text("0")
