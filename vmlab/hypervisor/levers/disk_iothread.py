"""`iothread`: the thread of QEMU that takes a disk's requests from the guest's queues; its main loop without one."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import DISK_DEVICES, GuestLever, RunningQemu
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_NONE = "none"
_BY = "QOM property iothread, query-iothreads, CPU time of the thread"


class IoThreadLever(GuestLever):
    """libvirt's ``iothreads`` of a domain, and the attribute ``iothread`` of a disk's driver."""

    keys = ("iothread", "data_iothread")

    def describe(self, domain: etree._Element, asked: GuestResources) -> None:
        """As many as the guest's disks need, those of a disk that is plugged in later too."""
        if asked.iothreads:
            etree.SubElement(domain, "iothreads").text = str(len(asked.iothreads))

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """By its number, which libvirt counts from 1."""
        if (name := asked.iothread_of(place)) is not None:
            for driver in disk.iterfind("driver"):
                driver.set("iothread", str(_number(asked, name)))

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """The iothread of each disk, which must have worked already where there is one."""
        threads = {one["id"]: int(one["thread-id"]) for one in qemu.monitor("query-iothreads")}
        for place in qemu.asked.disk_places:
            name = qemu.asked.iothread_of(place)
            wanted = _NONE if name is None else f"iothread{_number(qemu.asked, name)}"
            found = str(qemu.property(DISK_DEVICES[place], "iothread")).rpartition("/")[2] or _NONE
            if found in threads and not qemu.cpu_seconds(threads[found]):
                found = f"{found}, which never ran"
            own = place == "data" and qemu.asked.data_iothread is not None
            yield qemu.proof("data_iothread" if own else "iothread", wanted, found, _BY)


def _number(asked: GuestResources, name: str) -> int:
    return asked.iothreads.index(name) + 1


LEVER = IoThreadLever()
