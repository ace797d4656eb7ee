"""`data_packed`: virtqueues in one ring that both sides write (VIRTIO 1.1, section 2.7), in place of split ones."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import MISSING, GuestLever, RunningQemu
from vmlab.model.axes import axis_word
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_PACKED = "VIRTIO_F_RING_PACKED"


class PackedLever(GuestLever):
    """libvirt's attribute ``packed`` of the driver."""

    keys = ("data_packed",)

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """Offered to the guest, which takes it where its driver knows it."""
        for driver in disk.iterfind("driver"):
            if place == "data" and asked.data_packed:
                driver.set("packed", "on")

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the features that guest and device have agreed on."""
        if qemu.asked.data_bytes is not None and qemu.asked.data_bus == "virtio":
            status = qemu.virtio_status(qemu.device_of("data"))
            taken = status.get("guest-features", {}).get("transports")
            found = MISSING if taken is None else axis_word(any(_PACKED in one for one in taken))
            yield qemu.proof("data_packed", axis_word(qemu.asked.data_packed), found, "x-query-virtio-status")


LEVER = PackedLever()
