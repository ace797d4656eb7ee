"""What each lever of a guest does, and the running QEMU that proves it.

A lever is a subclass of `GuestLever` in a module of this folder, for fields of `GuestAttributes`, and in no list.
The XML says only what was asked for, so a proof never reads it: it reads QEMU's monitor, and the kernel on its process.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from lxml import etree

from vmlab.hypervisor.open_files import opened_by
from vmlab.model.errors import MOST_LETTERS, HypervisorError
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources
from vmlab.model.visible import cut

SCSI_CONTROLLER = "scsi0"
_DEVICES = {"root": "virtio-disk0", "data": "virtio-disk1"}
_ON_SCSI = "scsi0-0-0-0"
DISK_DEVICES = {device: place for place, device in _DEVICES.items()} | {_ON_SCSI: "data"}
"""The disks by libvirt's aliases, which are the ids of QEMU's devices."""
_NANOSECONDS = 1e9
MISSING = "missing"
"""What is found where QEMU does not say what was asked, or has no such device."""
_IN_PATH = re.compile(r"/machine/peripheral/([^/]+)", re.ASCII)


def device_in(qdev: str) -> str:
    """The id of a device by QMP's ``qdev``, which is the path of one on PCI and the id of one on SCSI."""
    found = _IN_PATH.match(qdev)
    return qdev if found is None else found[1]


class Monitor(Protocol):
    """One QMP command with its arguments; its ``return`` value. Raises HypervisorError where QEMU refuses."""

    def __call__(self, command: str, arguments: dict[str, Any] | None = None) -> Any: ...


@dataclass(frozen=True, slots=True)
class RunningQemu:
    """The QEMU of a guest, whose `process` is its folder below a /proc, and what was `asked` of it. `described` is
    libvirt's XML of it, `capabilities` libvirt's of what this host can give it, `cpus` are those that guests may use
    here, `inside` is what files of the guest hold. `keys` are those that are proved, as any cell of the run sets them.
    """

    guest: str
    tile: int
    asked: GuestResources
    process: Path
    monitor: Monitor
    described: Callable[[], str] = str
    capabilities: Callable[[], str] = str
    cpus: frozenset[int] = frozenset()
    inside: Mapping[str, str] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()

    def key_of(self, key: str, disk: DiskPlace) -> str:
        """The key that a disk's value of `key` is proved by: that of the data disk alone where any cell sets that."""
        return own if disk == "data" and (own := f"data_{key}") in self.keys else self.asked.key_of(key, disk)

    def proof(self, lever: str, expected: str, found: str, by: str, *, agrees: bool | None = None) -> LeverProof:
        """A proof for it, which agrees where the words are equal unless `agrees` is given. Of what a guest's files
        hold it has a part only, where that is long.
        """
        is_right = expected == found if agrees is None else agrees
        shown, where = (cut(text, MOST_LETTERS) for text in (found, by))
        return LeverProof(self.guest, self.tile, lever, expected, shown, is_right, where)

    def device_of(self, disk: DiskPlace) -> str:
        """The id of a disk's device."""
        return _ON_SCSI if disk == "data" and self.asked.data_bus == "scsi" else _DEVICES[disk]

    def inserted(self, disk: DiskPlace) -> dict[str, Any]:
        """What ``query-block`` says of what is in a disk; {} where there is no such disk."""
        for one in self.monitor("query-block"):
            if device_in(one.get("qdev", "")) == self.device_of(disk) and "inserted" in one:
                return dict(one["inserted"])
        return {}

    def file_of(self, disk: DiskPlace) -> Path | None:
        """The file or device that a disk's lowest node has open; None where it has none."""
        name = opened_by(str(self.inserted(disk).get("file", ""))).get("filename")
        return None if name is None else Path(name)

    def property(self, device: str, name: str) -> Any:
        """The value of a property of one of the devices that libvirt has named; `MISSING` where it has none."""
        try:
            return self.monitor("qom-get", {"path": f"/machine/peripheral/{device}", "property": name})
        except HypervisorError:
            return MISSING

    def virtio_status(self, device: str) -> dict[str, Any]:
        """What QEMU says of a virtio device's state; {} from a QEMU before 7.2, and where there is no such device."""
        try:
            asked = {"path": f"/machine/peripheral/{device}/virtio-backend"}
            return dict(self.monitor("x-query-virtio-status", asked))
        except HypervisorError:
            return {}

    def descriptors(self) -> Iterator[str]:
        """What each descriptor of the process is open on. Raises OSError when the process is gone."""
        for descriptor in (self.process / "fd").iterdir():
            with suppress(FileNotFoundError):
                yield str(descriptor.readlink())

    def cpu_seconds(self, thread: int) -> float:
        """CPU time that a thread has used. Raises OSError when there is no such thread."""
        # schedstat(5) counts nanoseconds; stat counts ticks of 10 ms, of which a thread that works little has none.
        return int((self.process / "task" / str(thread) / "schedstat").read_text().split()[0]) / _NANOSECONDS


class GuestLever:
    """How the attributes `keys`, the scenario's words, become part of a guest's XML, and how they are proved."""

    keys: tuple[str, ...]
    early: bool = False
    """Whether it is proved before the guest makes a file system on its data disk."""
    reads: tuple[str, ...] = ()
    """The files of a guest with Linux that its proofs look at."""

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """Add to the XML of a domain, of which all else is there."""

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """Add to the XML of one disk, of which all else is there."""

    def describe_card(self, card: etree._Element, asked: GuestResources) -> None:
        """Add to the XML of the network card, of which all else is there."""

    def devices(self, asked: GuestResources) -> Iterator[etree._Element]:
        """Devices that are plugged in before the data disk."""
        yield from ()

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """A proof for each key that is given; blocks. Raises OSError when QEMU is gone, HypervisorError."""
        raise NotImplementedError


def child_of(place: etree._Element, tag: str) -> etree._Element:
    """The first child with this tag, which is made where there is none."""
    found = place.find(tag)
    return etree.SubElement(place, tag) if found is None else found


@cache
def all_levers() -> tuple[GuestLever, ...]:
    """The levers of all modules in this folder."""
    package = __name__.rpartition(".")[0]
    folder = importlib.import_module(package).__path__
    modules = [importlib.import_module(f"{package}.{one.name}") for one in pkgutil.iter_modules(folder)]
    kinds = {kind: None for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    return tuple(kind() for kind in kinds if issubclass(kind, GuestLever) and kind is not GuestLever)


def levers_among(keys: Collection[str]) -> list[str]:
    """Those of `keys` that are levers."""
    return [key for lever in all_levers() for key in lever.keys if key in keys]


def early_among(keys: Collection[str]) -> list[str]:
    """Those of `keys` that are proved on an empty data disk."""
    return [key for lever in all_levers() if lever.early for key in lever.keys if key in keys]


def files_inside(keys: Collection[str]) -> list[str]:
    """The files of a guest that the proofs of those of `keys` look at which are levers."""
    return [file for lever in all_levers() if not set(lever.keys).isdisjoint(keys) for file in lever.reads]


def proofs(qemu: RunningQemu, keys: Collection[str]) -> list[LeverProof]:
    """The proofs of those of `keys` that are levers, as `GuestLever.prove` gives them."""
    having = [lever for lever in all_levers() if not set(lever.keys).isdisjoint(keys)]
    qemu = replace(qemu, keys=frozenset(keys))
    return [proof for lever in having for proof in lever.prove(qemu) if proof.lever in keys]
