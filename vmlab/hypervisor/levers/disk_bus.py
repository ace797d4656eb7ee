"""`data_bus`: what a guest sees its data disk on. On virtio-scsi the queues and the iothread are the controller's."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.disk_iothread import iothread_number
from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DATA_TARGETS, DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_TYPES = {"virtio-blk-pci": "virtio", "scsi-hd": "scsi"}
"""QEMU's types of the devices."""


class DataBusLever(GuestLever):
    """libvirt's bus of the disk, and the controller before it."""

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
            for target in disk.iterfind("target"):
                target.attrib.update({"dev": DATA_TARGETS["scsi"], "bus": "scsi"})
            for driver in disk.iterfind("driver"):
                driver.attrib.pop("queues", "")

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the device's type; `guest_setup` asks the guest."""
        if qemu.asked.data_bytes is not None:
            kind = str(qemu.property(qemu.device_of("data"), "type"))
            yield qemu.proof("data_bus", qemu.asked.data_bus, _TYPES.get(kind, kind), "QOM property type")


LEVER = DataBusLever()
