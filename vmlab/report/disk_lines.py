"""The lines with which a disk gets the same settings elsewhere: for libvirt, for Proxmox VE, in the guest, on the host.

Names of options are those of libvirt's domain XML (disks, controllers, iothreads) and of Proxmox VE's qm.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from vmlab.model.quantities import parse_bytes

LIBVIRT, PROXMOX, GUEST, HOST = "libvirt", "proxmox", "guest", "host"


class CopiedLine(NamedTuple):
    """A line, and where it belongs: ``libvirt``, ``proxmox``, ``guest`` or ``host``."""

    where: str
    text: str


def disk_lines(keys: Mapping[str, Any]) -> list[CopiedLine]:
    """The lines for a data disk with these keys of a scenario; what is not among them is left as it is."""
    return [*_libvirt(keys), *_proxmox(keys), *_guest(keys), *_host(keys)]


def _libvirt(keys: Mapping[str, Any]) -> Iterator[CopiedLine]:
    is_scsi = keys.get("data_bus") == "scsi"
    queues = {"queues": keys.get("data_queues")}
    thread = {"iothread": 1 if keys.get("data_iothread") is True else None}
    of_disk = {"type": keys.get("data_format"), "cache": keys.get("data_cache"), "io": keys.get("data_io")}
    driver = {"name": "qemu", **of_disk, **({} if is_scsi else {**queues, **thread})}
    yield CopiedLine(LIBVIRT, f"<driver{_attributes(driver)}/>")
    if "data_bus" in keys:
        yield CopiedLine(LIBVIRT, f"<target dev='{'sdb' if is_scsi else 'vdb'}' bus='{keys['data_bus']}'/>")
    if is_scsi:
        inner = f"<driver{_attributes({**queues, **thread})}/>" if _attributes({**queues, **thread}) else ""
        yield CopiedLine(LIBVIRT, f"<controller type='scsi' model='virtio-scsi'>{inner}</controller>")
    if thread["iothread"]:
        yield CopiedLine(LIBVIRT, "<iothreads>1</iothreads> below <domain>")


def _attributes(values: Mapping[str, Any]) -> str:
    return "".join(f" {name}='{value}'" for name, value in values.items() if value is not None)


def _proxmox(keys: Mapping[str, Any]) -> Iterator[CopiedLine]:
    """`queues` is an option of SCSI disks alone there, and an iothread needs a controller of the disk's own."""
    is_scsi = keys.get("data_bus") == "scsi"
    thread = keys.get("data_iothread")
    options = {
        "format": keys.get("data_format"),
        "cache": keys.get("data_cache"),
        "aio": keys.get("data_io"),
        "iothread": None if thread is None else int(thread is True),
        "queues": keys.get("data_queues") if is_scsi else None,
    }
    given = ",".join(f"{name}={value}" for name, value in options.items() if value is not None)
    if given:
        hardware = "--scsihw virtio-scsi-single " if is_scsi else ""
        yield CopiedLine(PROXMOX, f"qm set VMID {hardware}--{'scsi' if is_scsi else 'virtio'}0 STORAGE:VOLUME,{given}")


def _guest(keys: Mapping[str, Any]) -> Iterator[CopiedLine]:
    if (ahead := keys.get("read_ahead")) is not None:
        disk = "sdX" if keys.get("data_bus") == "scsi" else "vdX"
        yield CopiedLine(GUEST, f"echo {parse_bytes(ahead) // 1024} > /sys/block/{disk}/queue/read_ahead_kb")


def _host(keys: Mapping[str, Any]) -> Iterator[CopiedLine]:
    if keys.get("allocation") == "full":
        yield CopiedLine(HOST, "fallocate --length SIZE FILE, before the disk is first used")
