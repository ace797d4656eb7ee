"""`data_format`, and a qcow2 data disk's clusters, extended L2 entries, and memory for its tables."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.axes import axis_word
from vmlab.model.quantities import format_bytes
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_BY = "query-block"


class DataFormatLever(GuestLever):
    """The type of a disk's driver, and libvirt's ``metadata_cache`` of it, QEMU's ``cache-size``."""

    keys = ("data_format", "data_cluster", "data_table_cache", "data_extended_l2")

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """How QEMU opens the data disk's file, which `data_disks` has made."""
        for driver in disk.iterfind("driver") if place == "data" else ():
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
        found = str(inserted.get("drv", "missing"))
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


LEVER = DataFormatLever()
