"""`limit_iops`, `limit_bandwidth`: how much QEMU takes from a disk in a second (its throttling, by leaky buckets)."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_LIMITS = {"limit_iops": ("total_iops_sec", "iops"), "limit_bandwidth": ("total_bytes_sec", "bps")}
"""By key libvirt's element and QMP's field."""
_NONE = "none"


class DiskLimitLever(GuestLever):
    """libvirt's ``iotune`` of a disk."""

    keys = ("limit_iops", "limit_bandwidth", "data_limit_iops", "data_limit_bandwidth")

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """Nothing for a disk without a limit."""
        given = {tag: asked.of_disk(key, place) for key, (tag, _) in _LIMITS.items()}
        if any(value is not None for value in given.values()):
            tuned = etree.SubElement(disk, "iotune")
            for tag, value in given.items():
                if value is not None:
                    etree.SubElement(tuned, tag).text = str(value)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the limits that QEMU says that it has."""
        for place in qemu.asked.disk_places:
            inserted = qemu.inserted(place)
            for key, (_, field) in _LIMITS.items():
                wanted = qemu.asked.of_disk(key, place)
                found = inserted.get(field) or None
                yield qemu.proof(qemu.asked.key_of(key, place), _words(wanted), _words(found), "query-block")


def _words(limit: int | None) -> str:
    return _NONE if limit is None else f"{limit}/s"


LEVER = DiskLimitLever()
