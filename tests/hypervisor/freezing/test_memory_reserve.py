"""Memory that is kept between the guests of two cells."""

from __future__ import annotations

import math
import mmap
from pathlib import Path

import pytest

from vmlab.hypervisor import frozen_guest
from vmlab.hypervisor.frozen_guest import MemoryReserve
from vmlab.system import kvm_device
from vmlab.system.host_size import HostMemory

MIB = 2**20


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_what_is_kept_is_in_memory_until_it_is_freed_in_part_and_whole() -> None:
    reserve, before = MemoryReserve(useful=True, slow=math.inf), resident()
    reserve.take(100 * MIB)
    assert reserve.size == 96 * MIB
    assert resident() - before > 90 * MIB
    reserve.free(33 * MIB)
    assert reserve.size == 32 * MIB
    assert 26 * MIB < resident() - before < 60 * MIB
    reserve.free()
    assert reserve.size == 0
    assert resident() - before < 26 * MIB


def test_a_second_taking_adds_to_the_first_and_more_can_be_freed_than_there_is() -> None:
    reserve = MemoryReserve(useful=True, slow=math.inf)
    reserve.take(32 * MIB)
    reserve.take(64 * MIB)
    assert reserve.size == 96 * MIB
    reserve.free(1000 * MIB)
    assert reserve.size == 0


def test_a_host_that_is_no_virtual_machine_keeps_nothing() -> None:
    reserve = MemoryReserve(useful=False)
    reserve.take(100 * MIB)
    assert reserve.size == 0


def test_taking_ends_where_the_kernel_has_to_get_the_memory_from_elsewhere() -> None:
    reserve = MemoryReserve(useful=True, slow=0.0)
    reserve.take(320 * MIB)
    assert reserve.size == 32 * MIB
    reserve.free()


def test_no_more_than_half_of_what_the_host_has_left_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen_guest, "host_memory", lambda: HostMemory(2**30, 140 * MIB, 0))
    reserve = MemoryReserve(useful=True, slow=math.inf)
    reserve.take(320 * MIB)
    assert reserve.size == 64 * MIB
    reserve.free()


@pytest.mark.parametrize(("flags", "virtual"), [("fpu vme hypervisor avx", True), ("fpu vme avx", False), ("", False)])
def test_a_virtual_machine_is_known_by_its_processor(
    flags: str, virtual: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text(f"processor\t: 0\nflags\t\t: {flags}\nprocessor\t: 1\nflags\t\t: {flags}\n")
    monkeypatch.setattr(kvm_device, "CPUINFO", described)
    assert kvm_device.in_virtual_machine() is virtual
