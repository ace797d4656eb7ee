"""`pin` and `emulator_pin`: the CPUs of the host that QEMU's threads may use.

libvirt sets the affinity of each thread; the kernel's list of the CPUs that each may use is the proof. QEMU has a
thread for each virtual CPU under emulation as well (MTTCG). A processor that a guest may have and has not has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu, child_of
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.cpu_levers import UNPINNED, WAYS, pin_sets
from vmlab.model.scenarios.guest import GuestResources
from vmlab.system.mounts import cpu_list, read_cpu_list

_LAST_CPU = 39
"""Which field of /proc/PID/stat is the CPU that a thread was last on; the third is the first after its name."""
_BY = "Cpus_allowed_list"
_WORKERS = ("worker", "iou-wrk-")
"""How the names of threads begin that work for another one: QEMU's, and the kernel's for an io_uring."""


class PinningLever(GuestLever):
    """libvirt's ``vcpupin`` and ``emulatorpin``."""

    keys = ("pin", "emulator_pin")

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """A pinning of each virtual CPU that the guest has."""
        sets = _sets(asked)
        if not sets and asked.emulator_pin == UNPINNED:
            return
        tune = child_of(domain, "cputune")
        for number, cpus in enumerate(sets):
            etree.SubElement(tune, "vcpupin", vcpu=str(number), cpuset=cpus)
        if asked.emulator_pin != UNPINNED:
            etree.SubElement(tune, "emulatorpin", cpuset=asked.emulator_pin)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """The virtual CPUs, in their order, and QEMU's other threads, which are alike."""
        every = sorted(qemu.monitor("query-cpus-fast"), key=lambda one: int(one["cpu-index"]))
        vcpus = [int(one["thread-id"]) for one in every]
        ran = ";".join(_last_cpu(qemu.process, thread) for thread in vcpus)
        by = f"{_BY} of the virtual CPUs' threads, which were last on CPUs {ran}"
        # A word of which no plan has made sets is never what is found.
        wanted = _sets(qemu.asked) or [qemu.asked.pin] * len(vcpus)
        found = [_allowed(qemu, *one) for one in zip(vcpus, wanted, strict=True)]
        yield qemu.proof("pin", _joined(map(_in_full, wanted)), _joined(found), by)
        emulator = qemu.asked.emulator_pin
        others = [_allowed(qemu, thread, emulator) for thread in _emulator_threads(qemu, vcpus)]
        yield qemu.proof("emulator_pin", _in_full(emulator), _joined(others), f"{_BY} of QEMU's other threads")


def _sets(asked: GuestResources) -> list[str]:
    """The set of each virtual CPU; none where any CPU will do."""
    sets = pin_sets(asked.pin)
    return sets * asked.vcpus if len(sets) == 1 else sets


def _emulator_threads(qemu: RunningQemu, vcpus: list[int]) -> Iterator[int]:
    """Those that are no virtual CPUs and no iothreads; an iothread's own workers have its CPUs.

    The kernel's are named after the thread that they work for, by its id outside of the lab, which QEMU does not know.
    """
    iothreads = [int(one["thread-id"]) for one in qemu.monitor("query-iothreads")]
    for task in (qemu.process / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            name, thread = (task / "comm").read_text().strip(), int(task.name)
            if thread not in (*vcpus, *iothreads) and not (iothreads and name.startswith(_WORKERS)):
                yield thread


def _allowed(qemu: RunningQemu, thread: int, wanted: str) -> str:
    """The CPUs of a thread; where none are `wanted` and it has all that guests may use, it is not pinned."""
    text = (qemu.process / "task" / str(thread) / "status").read_text()
    allowed = read_cpu_list(next(line for line in text.splitlines() if line.startswith(f"{_BY}:")).partition(":")[2])
    return UNPINNED if wanted == UNPINNED and qemu.cpus <= {*allowed} else cpu_list(allowed)


def _in_full(cpus: str) -> str:
    return cpus if cpus in (UNPINNED, *WAYS) else cpu_list(read_cpu_list(cpus))


def _joined(sets: Iterable[str]) -> str:
    """One set for each, or one where all are equal."""
    every = [*sets]
    return every[0] if len({*every}) == 1 else ";".join(every)


def _last_cpu(process: Path, thread: int) -> str:
    stat = (process / "task" / str(thread) / "stat").read_text()
    return stat.rpartition(")")[2].split()[_LAST_CPU - 3]
