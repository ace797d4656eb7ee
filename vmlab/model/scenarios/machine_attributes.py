"""The attributes of a guest's machine: virtual CPUs, memory, board and firmware, and the size of its disk."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vmlab.model.scenarios.cpu_levers import UNPINNED, Cpu, CpuSet, Pin, Vcpus, pin_conflict, queues_conflict
from vmlab.model.scenarios.lever import NOT_SEEN, Lever, NotWith, unless
from vmlab.model.scenarios.memory_levers import RESERVED_BYTES, HugePages, ksm_conflict, pages_conflict
from vmlab.model.scenarios.scenario_part import ScenarioPart
from vmlab.model.units import Bytes, number_or_percent

Machine = Literal["q35", "pc"]
Firmware = Literal["bios", "uefi"]


class MachineAttributes(ScenarioPart):
    """The first part of `GuestAttributes`."""

    vcpus: Vcpus = 1
    """Virtual CPUs, 1 to 256; ``host`` for as many as the (limited) host has."""
    memory_bytes: Annotated[Bytes, Field(alias="memory", ge=64 * 2**20, le=2**44)]
    """RAM, such as 512 MiB."""
    disk_bytes: Annotated[Bytes, Field(alias="disk", ge=2**30, le=2**46)] = 8 * 2**30
    """Size of the disk as the guest sees it, such as 8 GiB; only what is written takes room on the host."""
    queues: Annotated[int, Field(ge=1, le=64), Lever("queues of the disk"), NotWith(queues_conflict("queues"))] = 1
    """Queues of the virtio disk."""
    cpu_shares: Annotated[int | None, Field(ge=2, le=262144), NOT_SEEN, Lever("CPU share", within=5.0, each=15.0)] = (
        None
    )
    """Weight of the guest's CPU time against other guests (cgroup); a guest without it counts as 1024."""
    emulator_shares: Annotated[int | None, Field(ge=2, le=102400), NOT_SEEN] = None
    """Weight of QEMU's emulator threads: its main loop and all others but virtual CPUs, which have 1024 each."""
    cpu_quota: Annotated[
        float | None,
        *number_or_percent(10, optional=True),
        NOT_SEEN,
        Lever("CPU quota", within=5.0, unit="%", limit=True),
    ] = None
    """The most that each virtual CPU gets of a host CPU, such as 40 % or 40 (cgroup); no limit if left out."""
    cpu: Annotated[Cpu | None, Lever("CPU model")] = None
    """Its CPU model: host (KVM only), max, host-model, or a name such as EPYC; then features, as in max -avx2 +erms."""
    pin: Annotated[Pin, NOT_SEEN, Lever("CPU pinning"), NotWith(pin_conflict)] = UNPINNED
    """CPUs for virtual CPUs: any (none), a core each (spread), few cores (packed), 0-3 for all, or 0;1 for each."""
    emulator_pin: Annotated[CpuSet, NOT_SEEN, Lever("pinning of the emulator threads")] = UNPINNED
    """CPUs that QEMU's emulator threads may use, such as 0 or 0-1; with none, any CPUs."""
    huge_pages: Annotated[HugePages | None, NOT_SEEN, Lever("huge pages"), NotWith(pages_conflict)] = None
    """Pages of the RAM: 4 KiB (none), transparent, 2 MiB or 1 GiB (reserved for it); the host's thp if left out."""
    ksm: Annotated[bool | None, NOT_SEEN, Lever("KSM of the guest"), NotWith(ksm_conflict)] = None
    """Whether the host's KSM, if on, may merge its RAM; it may unless this is false."""
    numa: Annotated[int | None, Field(ge=0, le=1023), NOT_SEEN, Lever("NUMA node")] = None
    """NUMA node that its RAM is taken from, on a host with several; any if left out."""
    memory_lock: Annotated[bool | None, NOT_SEEN, Lever("memory lock")] = None
    """Whether all memory of its QEMU is taken at the start and locked, so that none is swapped; false by default."""
    machine: Annotated[Machine, unless("machine", "q35"), Lever("machine type")] = "q35"
    """The board that QEMU emulates: q35 with PCI Express, or pc (i440FX) with PCI only."""
    firmware: Annotated[Firmware, unless("firmware", "bios"), Lever("firmware")] = "bios"
    """What starts before its kernel: SeaBIOS (bios), or OVMF (uefi) if the host has it; only with vmlab's own image."""

    @property
    def page_bytes(self) -> int | None:
        """Bytes of the huge pages that are reserved for its RAM; None where none are."""
        return RESERVED_BYTES.get(self.huge_pages or "")
