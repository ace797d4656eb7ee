"""`detect_zeroes`: what QEMU does where a guest writes zeroes."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources


class DetectZeroesLever(GuestLever):
    """The attribute ``detect_zeroes`` of a disk's driver."""

    keys = ("detect_zeroes", "data_detect_zeroes")

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """Said in any case, so that QEMU's own choice does not matter."""
        for driver in disk.iterfind("driver"):
            driver.set("detect_zeroes", asked.of_disk("detect_zeroes", place))

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By what QEMU says of the node that the device is on."""
        for place in qemu.asked.disk_places:
            key = qemu.key_of("detect_zeroes", place)
            found = str(qemu.inserted(place).get("detect_zeroes", "missing"))
            yield qemu.proof(key, qemu.asked.of_disk("detect_zeroes", place), found, "query-block")


LEVER = DetectZeroesLever()
