"""What a guest's disks are on, and the threads of QEMU that take their requests from the guest's queues.

On virtio-scsi the queues and the iothread are the controller's.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import SCSI_CONTROLLER, GuestLever, RunningQemu, child_of
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DATA_TARGETS, DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_TYPES = {"virtio-blk-pci": "virtio", "scsi-hd": "scsi"}
"""QEMU's types of the devices."""
_NONE = "none"
_WORKED = 0.001
"""Seconds of CPU time: a thread that has started and waits used 0.0001, one whose disk a guest boots from 0.09."""
_BY = "QOM property iothread, query-iothreads, CPU time of the thread"


class DataBusLever(GuestLever):
    """`data_bus`: what a guest sees its data disk on. libvirt's bus of the disk, and the controller before it."""

    keys = ("data_bus",)

    def devices(self, asked: GuestResources) -> Iterator[etree._Element]:
        """The controller of a disk on virtio-scsi."""
        if asked.data_bus == "scsi":
            controller = etree.Element("controller", type="scsi", index="0", model="virtio-scsi")
            driver = etree.SubElement(controller, "driver", queues=str(asked.data_queues))
            if (name := asked.iothread_of("data")) is not None:
                driver.set("iothread", str(iothread_number(asked, name)))
            yield controller

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """The disk behind the controller."""
        if place == "data" and asked.data_bus == "scsi":
            child_of(disk, "target").attrib.update({"dev": DATA_TARGETS["scsi"], "bus": "scsi"})
            child_of(disk, "driver").attrib.pop("queues", "")

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the device's type; `guest_setup` asks the guest."""
        if qemu.asked.data_bytes is not None:
            kind = str(qemu.property(qemu.device_of("data"), "type"))
            yield qemu.proof("data_bus", qemu.asked.data_bus, _TYPES.get(kind, kind), "QOM property type")


class IoThreadLever(GuestLever):
    """`iothread`: the thread that takes a disk's requests; QEMU's main loop without one.

    libvirt's ``iothreads`` of a domain, and the attribute ``iothread`` of a disk's driver.
    """

    keys = ("iothread", "data_iothread")

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """As many as the guest's disks need, those of a disk that is plugged in later too."""
        if asked.iothreads:
            etree.SubElement(domain, "iothreads").text = str(len(asked.iothreads))

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """By its number, which libvirt counts from 1; a disk on virtio-scsi has that of its controller."""
        on_controller = place == "data" and asked.data_bus == "scsi"
        if (name := asked.iothread_of(place)) is not None and not on_controller:
            child_of(disk, "driver").set("iothread", str(iothread_number(asked, name)))

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """The iothread of each disk, which must have worked already where there is one."""
        threads = {one["id"]: int(one["thread-id"]) for one in qemu.monitor("query-iothreads")}
        for place in qemu.asked.disk_places:
            name = qemu.asked.iothread_of(place)
            wanted = _NONE if name is None else f"iothread{iothread_number(qemu.asked, name)}"
            device = SCSI_CONTROLLER if place == "data" and qemu.asked.data_bus == "scsi" else qemu.device_of(place)
            found = str(qemu.property(device, "iothread")).rpartition("/")[2] or _NONE
            if found in threads and qemu.cpu_seconds(threads[found]) < _WORKED:
                found = f"{found}, which has not worked"
            yield qemu.proof(qemu.key_of("iothread", place), wanted, found, _BY)


def iothread_number(asked: GuestResources, name: str) -> int:
    """libvirt's number of an iothread of the guest."""
    return asked.iothreads.index(name) + 1
