"""The lines with which a disk gets the same settings elsewhere: for libvirt, for Proxmox VE, in the guest, on the host.

Names of options are those of libvirt's domain XML (disks, controllers, iothreads) and of Proxmox VE's qm.conf(5). A
line of a shell that begins with # says what must be known of the one below.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from vmlab.model.scenarios.guest import GuestAttributes

LIBVIRT, PROXMOX, GUEST, HOST = "libvirt", "proxmox", "guest", "host"


class CopiedLine(NamedTuple):
    """A line, and where it belongs: ``libvirt``, ``proxmox``, ``guest`` or ``host``."""

    where: str
    text: str


def disk_lines(guest: GuestAttributes, changed: Collection[str]) -> list[CopiedLine]:
    """The lines for the data disk of a guest that was measured, of which the keys that were `changed` are new.

    Limits are not among them, nor is the format of a disk that keeps its own.
    """
    return [*_libvirt(guest, changed), *_proxmox(guest, changed), *_guest(guest), *_host(guest, changed)]


def _libvirt(guest: GuestAttributes, changed: Collection[str]) -> Iterator[CopiedLine]:
    is_scsi = guest.data_bus == "scsi"
    thread = guest.iothread_of("data")
    of_queues = {"queues": guest.data_queues, "iothread": 1 if thread else None}
    driver = {
        "name": "qemu",
        "type": guest.data_format if "data_format" in changed else None,
        "cache": guest.data_mode,
        "io": _io(guest),
        "discard": guest.data_discards,
        "detect_zeroes": guest.of_disk("detect_zeroes", "data"),
        **({} if is_scsi else {**of_queues, "packed": "on" if guest.data_packed else None}),
    }
    yield CopiedLine(LIBVIRT, f"<driver{_attributes(driver)}/>")
    yield CopiedLine(LIBVIRT, f"<target dev='{'sdb' if is_scsi else 'vdb'}' bus='{guest.data_bus}'/>")
    if is_scsi:
        inner = f"<driver{_attributes(of_queues)}/>"
        yield CopiedLine(LIBVIRT, f"<controller type='scsi' model='virtio-scsi'>{inner}</controller>")
    if thread:
        yield CopiedLine(LIBVIRT, f"<iothreads>1</iothreads> below <domain>{_shared(guest)}")


def _attributes(values: Mapping[str, Any]) -> str:
    return "".join(f" {name}='{value}'" for name, value in values.items() if value is not None)


def _io(guest: GuestAttributes) -> str | None:
    """How QEMU does I/O for the disk; None in a pool, whose requests are Ceph's."""
    return None if guest.pool is not None else str(guest.of_disk("io", "data"))


def _shared(guest: GuestAttributes) -> str:
    """That both disks have the same iothread, where they do; empty otherwise."""
    return ", which the first disk has too" if guest.iothread_of("data") == guest.iothread_of("root") else ""


def _proxmox(guest: GuestAttributes, changed: Collection[str]) -> Iterator[CopiedLine]:
    """`queues` is an option of SCSI disks alone there, and an iothread needs a controller of the disk's own."""
    is_scsi, thread = guest.data_bus == "scsi", guest.iothread_of("data")
    slot = "scsiN" if is_scsi else "virtioN"
    options = {
        "cache": guest.data_mode,
        "aio": _io(guest),
        "iothread": int(bool(thread)),
        "discard": "on" if guest.data_discards == "unmap" else "ignore",
        "detect_zeroes": int(guest.of_disk("detect_zeroes", "data") != "off"),
        "queues": guest.data_queues if is_scsi else None,
    }
    if "data_format" in changed:
        yield CopiedLine(PROXMOX, f"qm disk move VMID DISK STORAGE --format {guest.data_format}")
    if "data_bus" in changed:
        yield CopiedLine(PROXMOX, "qm set VMID --delete DISK")
    if is_scsi:
        yield CopiedLine(PROXMOX, "# this gives every SCSI disk of the guest a virtio controller of its own")
        yield CopiedLine(PROXMOX, "qm set VMID --scsihw virtio-scsi-single")
    if thread and _shared(guest):
        yield CopiedLine(PROXMOX, "# each disk has an iothread of its own here; one that both disks share was measured")
    yield CopiedLine(PROXMOX, f"# {slot} is the data disk's slot; repeat its other options from `qm config VMID`")
    given = ",".join(f"{name}={value}" for name, value in options.items() if value is not None)
    yield CopiedLine(PROXMOX, f"qm set VMID --{slot} STORAGE:VOLUME,{given}")


def _guest(guest: GuestAttributes) -> Iterator[CopiedLine]:
    if guest.read_ahead_bytes is not None:
        disk = "sdX" if guest.data_bus == "scsi" else "vdX"
        yield CopiedLine(GUEST, f"echo {guest.read_ahead_bytes // 1024} > /sys/block/{disk}/queue/read_ahead_kb")


def _host(guest: GuestAttributes, changed: Collection[str]) -> Iterator[CopiedLine]:
    if "data_format" in changed:
        yield CopiedLine(HOST, f"qemu-img convert -O {guest.data_format} FILE NEW, for libvirt, while the guest is off")
    if guest.allocation == "full":
        yield CopiedLine(HOST, "fallocate --length SIZE FILE, before the disk is first used")
