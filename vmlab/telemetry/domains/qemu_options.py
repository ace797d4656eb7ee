"""What QEMU's arguments tell: name, processors, memory, accelerators and disks.

The rule: a value that was not read is unknown (`UNKNOWN`, 0 for a count), never QEMU's default, unless QEMU itself
takes that default where its arguments leave the value out. One vCPU and 128 MiB are the defaults of boards that are
known here. Which accelerator of several runs is known only from the process (`accelerator_of`), and of what a file of
``-readconfig`` may say nothing is known where the file could not be read.

Sources: QEMU's ``system/vl.c`` (memory, ``configure_accelerators``) and ``hw/core/machine-smp.c``.
"""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterator, Sequence
from typing import Any

from vmlab.model.domain import UNKNOWN, DomainDisk
from vmlab.telemetry.domains.qemu_arguments import Options, ReadConfig, node, options, pairs, strings_in
from vmlab.telemetry.domains.qemu_disks import QemuDisk, disks_of

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_DEFAULT_MEMORY = 128 << 20
_TOPOLOGY = ("drawers", "books", "sockets", "dies", "clusters", "modules", "cores", "threads")
_DIMMS = ("pc-dimm", "nvdimm")
_ASKED = {
    *("machine", "M", "cpu", "accel", "device", "object", "chardev", "netdev", "drive", "vga", "display", "audiodev"),
    "d",
}
"""Options that QEMU answers with a list of what it has."""
_X86 = re.compile(r"qemu(-system-(x86_64|i386).*)?")
_OF_HOST = re.compile(r"kvm.*|qemu-kvm.*")
_USUAL_BOARD = re.compile(r"(pc|q35|isapc|microvm)\b.*")
_ARM_OR_RISCV = re.compile(r"qemu-system-(aarch64|arm|riscv32|riscv64).*")


class QemuOptions:
    """The arguments of one QEMU process; `program` is the name that it was started by, which they do not have."""

    def __init__(
        self,
        arguments: Sequence[str],
        program: str = "qemu-system-x86_64",
        read_config: ReadConfig = lambda path: None,
    ) -> None:
        self._program = program
        self._given = list(options(arguments, read_config))
        self._all_read = not self.all("readconfig")

    def all(self, *names: str) -> list[str]:
        """Every value of an option, in their order."""
        return [one.value for one in self._given if one.name in names]

    def merged(self, first: str, *names: str) -> Options:
        """All values of an option as pairs, of which later ones replace earlier ones; `first` is the key of a value
        without one.
        """
        return {key: text for value in self.all(*names) for key, text in pairs(value, first).items()}

    @property
    def name(self) -> str:
        """The guest's name; empty where it has none."""
        return self.merged("guest", "name").get("guest", "")

    @property
    def uuid(self) -> str:
        """As given, or empty."""
        return next(reversed(self.all("uuid")), "")

    @property
    def vcpus(self) -> int:
        """How many processors the guest starts with; 0 where that is not understood."""
        of_machine = {key.removeprefix("smp."): text for key, text in self.machine.items() if key.startswith("smp.")}
        given = {key: _count(text) for key, text in {**of_machine, **self.merged("cpus", "smp")}.items()}
        if not self._all_read or not all(given.values()) or given.keys() - {"cpus", "maxcpus", *_TOPOLOGY}:
            return 0
        if not given:
            count = 1 if self._has_usual_defaults else 0
        else:
            product = math.prod(given.get(part, 1) for part in _TOPOLOGY)
            count = given.get("cpus") or given.get("maxcpus") or product
        if not 0 < count <= given.get("maxcpus", count):
            return 0
        drivers = [str(device.get("driver", "")) for device in self._devices]
        plugged = sum(driver.endswith("-cpu") for driver in drivers)
        return count + plugged + given.get("threads", 1) * sum(driver.endswith("-cpu-core") for driver in drivers)

    @property
    def memory_bytes(self) -> int:
        """The guest's memory with that of its memory devices; 0 where one of them is not understood."""
        parts = [self._base_memory(), *self._plugged_memory()] if self._all_read else []
        return sum(parts) if all(parts) else 0

    def _base_memory(self) -> int:
        size = self.merged("size", "m").get("size") or self.machine.get("memory.size")
        if size is None and (backend := self.machine.get("memory-backend")) is not None:
            return self._backends.get(backend, 0)
        if size is None or re.fullmatch("0+[a-z]?", size, re.IGNORECASE):
            # Without a size, or with that of 0, QEMU takes its board's.
            return _DEFAULT_MEMORY if self._has_usual_defaults else 0
        is_legacy = "size" in self.merged("size", "m") and size[-1].isdigit()
        return size_in_bytes(f"{size}M" if is_legacy else size)

    def _plugged_memory(self) -> Iterator[int]:
        for device in self._devices:
            driver = str(device.get("driver", ""))
            if driver in _DIMMS:
                yield self._backends.get(str(device.get("memdev")), 0)
            elif driver.startswith("virtio-mem-"):
                # Its backend is as large as it may become.
                requested = str(device.get("requested-size", 0))
                if not re.fullmatch("0+", requested):
                    yield size_in_bytes(requested)
            elif driver == "cxl-type3":
                yield 0

    @property
    def accelerators(self) -> tuple[str, ...]:
        """Those that QEMU tries in this order; it runs with the first that works. Empty where that is not known."""
        if not self._all_read:
            return ()
        if asked := [pairs(value, "accel").get("accel", "") for value in self.all("accel")]:
            return tuple(part for one in asked for part in one.split(":"))
        chosen = "xen" if self.machine.get("type", "").startswith("xen") else ""
        for name, value in self._given:
            if name in ("machine", "M"):
                chosen = pairs(value, "type").get("accel", chosen)
            elif name in ("enable-kvm", "no-kvm"):
                chosen = "kvm" if name == "enable-kvm" else "tcg"
        if chosen:
            return tuple(chosen.split(":"))
        return ("kvm", "tcg") if self._program.endswith("kvm") else ("tcg", "kvm")

    @property
    def accelerator(self) -> str:
        """The one that is sure by the arguments alone: the only one, or tcg, which works everywhere."""
        tried = self.accelerators
        return tried[0] if len(tried) == 1 or tried[:1] == ("tcg",) else UNKNOWN

    @property
    def is_a_guest(self) -> bool:
        """Whether it runs a guest: QEMU is also started to ask what it can do, by libvirt without a machine."""
        asks = {"h", "help", "version"} & {one.name for one in self._given}
        lists = any(one.name in _ASKED and pairs(one.value, "?").get("?") in ("help", "?") for one in self._given)
        return not asks and not lists and self.machine.get("type") != "none"

    def has_port(self, name: str) -> bool:
        """Whether the guest has a virtio-serial port of this name."""
        return any(device.get("name") == name for device in self._devices)

    def disks(self) -> list[DomainDisk]:
        """The disks that the arguments name; see `disks_of`."""
        return [one.disk for one in self.found_disks()]

    def found_disks(self) -> list[QemuDisk]:
        """The same with all that the arguments say of them."""
        return disks_of(self._given)

    def nodes(self, name: str, first: str = "driver") -> list[dict[str, Any]]:
        """Every value of an option as a dictionary; `first` is the key of a value without one."""
        return [node(value, first) for value in self.all(name)]

    def words(self) -> set[str]:
        """All values, each of which may be the name of a file."""
        found = {one.value for one in self._given}
        for value in list(found):
            found |= set(strings_in(node(value)))
        return {one.removeprefix("file:") for one in found if one}

    @property
    def machine(self) -> Options:
        """What is said of the board; ``type`` is its name."""
        return self.merged("type", "machine", "M")

    @property
    def _devices(self) -> list[dict[str, Any]]:
        return self.nodes("device")

    @property
    def _backends(self) -> dict[str, int]:
        """The size of each memory backend by its id; 0 where it is not understood."""
        return {
            str(one.get("id")): size_in_bytes(str(one.get("size", "")))
            for one in self.nodes("object", "qom-type")
            if str(one.get("qom-type", "")).startswith("memory-backend-")
        }

    @property
    def _has_usual_defaults(self) -> bool:
        """Whether the board is one of those that have one CPU and 128 MiB where nothing else is said."""
        program, board = os.path.basename(self._program), self.machine.get("type", "")  # noqa: PTH119
        is_x86 = _X86.fullmatch(program) or (_OF_HOST.fullmatch(program) and platform.machine() == "x86_64")
        if is_x86:
            return not board or _USUAL_BOARD.fullmatch(board) is not None
        return _ARM_OR_RISCV.fullmatch(program) is not None and re.fullmatch(r"virt(-.*)?", board) is not None


def size_in_bytes(text: str) -> int:
    """``1.5G`` as QEMU's sizes are written, by the powers of 1,024; 0 for what it would refuse."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([bkmgtp]?)", text.lower(), re.ASCII)
    return int(float(match[1]) * _UNITS[match[2]]) if match else 0


def _count(text: str) -> int:
    """A whole number, or 0 for what is none."""
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,5}", text, re.ASCII) else 0
