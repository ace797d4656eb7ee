"""`data_packed`: virtqueues in one ring that both sides write (VIRTIO 1.1, section 2.7), in place of split ones."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_PACKED = 34
"""VIRTIO_F_RING_PACKED, the number of the feature's bit."""
_BACKEND = "virtio-backend"


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
            features = int(qemu.property(f"{qemu.device_of('data')}/{_BACKEND}", "guest_features") or 0)
            taken = bool(features >> _PACKED & 1)
            by = "QOM property guest_features"
            yield qemu.proof("data_packed", _word(qemu.asked.data_packed), _word(taken), by)


def _word(on: bool) -> str:
    return "on" if on else "off"


LEVER = PackedLever()
