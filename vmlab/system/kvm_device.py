"""KVM's device: what is known of it before a kernel has booted under KVM, and what one that does not work costs."""

from __future__ import annotations

import os
from pathlib import Path

DEVICE = Path("/dev/kvm")
START_SECONDS = 120.0
"""Within which libvirt has to have started a guest."""
CPUINFO = Path("/proc/cpuinfo")
_MODULES = Path("/sys/module")
_OF_PROCESSOR = ("kvm_intel", "kvm_amd")
_FOR_ITS_KERNELS = "kvm_pvm"


def opens() -> bool:
    """Whether this user may open it, which does not prove that KVM works."""
    return os.access(DEVICE, os.R_OK | os.W_OK)


def may_work() -> bool:
    """Whether KVM can work as far as can be told without a kernel: the device opens, and on x86 the processor has its
    own extension, without which no ordinary kernel runs.
    """
    if not opens():
        return False
    if os.uname().machine != "x86_64":
        return True
    return bool({"vmx", "svm"} & set(CPUINFO.read_text(errors="replace").split()))


def processor_fields(cpuinfo: str) -> dict[str, str]:
    """What /proc/cpuinfo, given as text, says of the first processor."""
    lines = (line.partition(":") for line in cpuinfo.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def in_virtual_machine() -> bool:
    """Whether this host is a virtual machine, as its processor says."""
    return "hypervisor" in processor_fields(CPUINFO.read_text(errors="replace")).get("flags", "").split()


def for_its_kernels() -> str | None:
    """What is wrong with KVM where it needs no extension of the processor, and guests made for that instead; else None.

    It takes the device and a virtual machine, and QEMU aborts or hangs with any other kernel.
    """
    if not (_MODULES / _FOR_ITS_KERNELS).exists():
        return None
    return f"this host's KVM ({_FOR_ITS_KERNELS}) runs only kernels built for it (CONFIG_PVM_GUEST)"


def no_boot_words() -> str:
    """Why guests are emulated where the device opens and a kernel was seen not to boot."""
    return for_its_kernels() or f"{DEVICE} opens, but no guest boots with it"


def slow_start_words() -> str:
    """What a device that opens, without a KVM that works, makes of starts in the host's own libvirt.

    libvirt keeps what it has found out about a QEMU, and does not trust it where KVM was not among it and may be opened
    now.
    """
    return (
        f"{DEVICE} opens and KVM does not work: the host's libvirt queries QEMU again at every start of a guest, and a "
        f"start is given up after {START_SECONDS:.0f} s"
    )


def removal_command() -> str:
    """What takes the device away until the host boots again, for root."""
    # What is built into the kernel has no state of loading and cannot be unloaded.
    loaded = next((name for name in _OF_PROCESSOR if (_MODULES / name / "initstate").exists()), None)
    return f"modprobe -r {loaded}" if loaded else f"rm {DEVICE}"
