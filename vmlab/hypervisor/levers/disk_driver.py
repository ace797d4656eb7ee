"""What the driver of a guest's disk has: its interface, queues, a packed ring, what it does with zeroes, its image."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import MISSING, GuestLever, RunningQemu, child_of
from vmlab.model.axes import axis_word
from vmlab.model.quantities import format_bytes
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_BY = "query-block"
_PACKED = "VIRTIO_F_RING_PACKED"
_RING = "anon_inode:[io_uring]"
_COMPLETIONS = "/[aio]"
_BY_PROCESS = "/proc/PID/fd, /proc/PID/maps"
_RINGS_OF_LOOPS = (10, 2)
_NOT_OF_RINGS = "/proc/PID/maps; whether it is io_uring or threads, as QEMU was told"


class DiskIoLever(GuestLever):
    """`io`: the interface by which QEMU reads and writes the files and devices below a guest's disks.

    QMP does not name it, the kernel does. Linux AIO maps its ring of completions into the process, as ``/[aio]``, and
    io_uring has a descriptor. QEMU 10.2 and newer have such a descriptor for each event loop whatever their disks use
    (util/fdmon-io_uring.c), and show no more than whether it is Linux AIO. A process shows which interfaces it uses,
    not for which of its files: a guest is proved as a whole.
    """

    keys = ("io", "data_io")

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """Threads, which work in every cache mode, unless the scenario says otherwise."""
        if place in _of_host(asked):
            child_of(disk, "driver").set("io", asked.of_disk("io", place))

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """One of each key; all disks together use what the process shows."""
        asked = qemu.asked
        wanted = {asked.of_disk("io", place) for place in _of_host(asked)} - {"threads"}
        shown, by = set(_shown(qemu)), _BY_PROCESS
        if _has_rings_anyway(qemu):
            shown, by = {one for one in shown if one == "native"} | (wanted & {"io_uring"}), _NOT_OF_RINGS
        for key, own in {qemu.key_of("io", place): asked.of_disk("io", place) for place in _of_host(asked)}.items():
            found = own if shown == wanted else " and ".join(sorted(shown)) or "threads"
            yield qemu.proof(key, own, found, by, agrees=shown == wanted)


def _of_host(asked: GuestResources) -> list[DiskPlace]:
    """The disks that are files or devices of the host; Ceph's driver sends its requests itself."""
    return [place for place in asked.disk_places if place == "root" or asked.pool is None]


def _shown(qemu: RunningQemu) -> Iterator[str]:
    if _RING in qemu.descriptors():
        yield "io_uring"
    if any(_COMPLETIONS in line for line in (qemu.process / "maps").read_text().splitlines()):
        yield "native"


def _has_rings_anyway(qemu: RunningQemu) -> bool:
    version = qemu.monitor("query-version")["qemu"]
    return (version["major"], version["minor"]) >= _RINGS_OF_LOOPS


class RootQueuesLever(GuestLever):
    """`queues` of the first disk: libvirt's attribute ``queues`` of the driver, which `domain_xml` sets.

    Of the data disk's the guest itself says how many it uses (`guest_setup`).
    """

    keys = ("queues",)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the device's number; a guest of fewer CPUs uses as many of them as it has CPUs."""
        found = qemu.property(qemu.device_of("root"), "num-queues")
        yield qemu.proof("queues", str(qemu.asked.queues), str(found), "QOM property num-queues")


class DetectZeroesLever(GuestLever):
    """`detect_zeroes`: what QEMU does where a guest writes zeroes, by the driver's attribute ``detect_zeroes``."""

    keys = ("detect_zeroes", "data_detect_zeroes")

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """Said in any case, so that QEMU's own choice does not matter."""
        child_of(disk, "driver").set("detect_zeroes", asked.of_disk("detect_zeroes", place))

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By what QEMU says of the node that the device is on."""
        for place in qemu.asked.disk_places:
            key = qemu.key_of("detect_zeroes", place)
            found = str(qemu.inserted(place).get("detect_zeroes", MISSING))
            yield qemu.proof(key, qemu.asked.of_disk("detect_zeroes", place), found, _BY)


class PackedLever(GuestLever):
    """`data_packed`: virtqueues in one ring that both sides write (VIRTIO 1.1, section 2.7), in place of split ones."""

    keys = ("data_packed",)

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """Offered to the guest, which takes it where its driver knows it."""
        if place == "data" and asked.data_packed:
            child_of(disk, "driver").set("packed", "on")

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the features that guest and device have agreed on."""
        if qemu.asked.data_bytes is not None and qemu.asked.data_bus == "virtio":
            status = qemu.virtio_status(qemu.device_of("data"))
            taken = status.get("guest-features", {}).get("transports")
            found = MISSING if taken is None else axis_word(any(_PACKED in one for one in taken))
            yield qemu.proof("data_packed", axis_word(qemu.asked.data_packed), found, "x-query-virtio-status")


class DataFormatLever(GuestLever):
    """`data_format`, and a qcow2 data disk's clusters, extended L2 entries, and memory for its tables.

    libvirt's type of a disk's driver, and its ``metadata_cache``, QEMU's ``cache-size``.
    """

    keys = ("data_format", "data_cluster", "data_table_cache", "data_extended_l2")

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """How QEMU opens the data disk's file, which `data_disks` has made."""
        if place == "data":
            driver = child_of(disk, "driver")
            driver.set("type", asked.data_format)
            if asked.data_table_cache_bytes is not None:
                tables = etree.SubElement(driver, "metadata_cache")
                etree.SubElement(tables, "max_size", unit="bytes").text = str(asked.data_table_cache_bytes)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By what QEMU has read of the file, but for the tables' memory, which nothing shows."""
        asked = qemu.asked
        if asked.data_bytes is None:
            return
        inserted = qemu.inserted("data")
        found = str(inserted.get("drv", MISSING))
        yield qemu.proof("data_format", asked.data_format, found, _BY)
        if not asked.data_format == found == "qcow2":
            return
        image = inserted["image"]
        if asked.data_cluster_bytes is not None:
            found = format_bytes(image["cluster-size"])
            yield qemu.proof("data_cluster", format_bytes(asked.data_cluster_bytes), found, _BY)
        extended = bool(image["format-specific"]["data"].get("extended-l2", False))
        yield qemu.proof("data_extended_l2", axis_word(asked.data_extended_l2), axis_word(extended), _BY)
        if asked.data_table_cache_bytes is not None:
            told = format_bytes(asked.data_table_cache_bytes)
            yield qemu.proof("data_table_cache", told, told, "as QEMU was told: it does not say what it has")
