"""`limit_iops`, `limit_bandwidth` and their bursts: how much QEMU takes from a disk in a second (its throttling).

QEMU says what is set (`query-block`). Whether the limit held is seen by what the disk has done (`query-blockstats`): no
more than the limit times the time, what a burst allows besides, and one request (util/throttle.c).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lxml import etree

from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.hypervisor.protocols import DiskRequests
from vmlab.model.quantities import format_bytes
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_LIMITS = {"limit_iops": ("total_iops_sec", "iops"), "limit_bandwidth": ("total_bytes_sec", "bps")}
"""By key libvirt's element and QMP's field; those of its burst end in ``_max``."""
_LENGTH = "limit_burst_length"
_KEYS = (*_LIMITS, *(f"{key}_burst" for key in _LIMITS), _LENGTH)
_NONE = "none"
_USUAL_LENGTH = 1
_PART = 10
"""Without a burst QEMU takes a tenth of what the limit allows in a second at once."""
_LARGEST_REQUEST = 64 * 2**20
"""Bytes of a disk's request at most: QEMU merges up to 32 of a guest's (VIRTIO_BLK_MAX_MERGE_REQS), each of which Linux
limits to 1,280 KiB by default (max_sectors_kb); and half as much besides, as other systems' may be larger.
"""


class DiskLimitLever(GuestLever):
    """libvirt's ``iotune`` of a disk."""

    keys = (*_KEYS, *(f"data_{key}" for key in _KEYS))

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """Nothing for a disk without a limit."""
        given: dict[str, int | None] = {}
        for key, (tag, _) in _LIMITS.items():
            given[tag], burst = asked.of_disk(key, place), asked.of_disk(f"{key}_burst", place)
            given[f"{tag}_max"] = burst
            given[f"{tag}_max_length"] = None if burst is None else asked.of_disk(_LENGTH, place)
        if any(value is not None for value in given.values()):
            tuned = etree.SubElement(disk, "iotune")
            for tag, value in given.items():
                if value is not None:
                    etree.SubElement(tuned, tag).text = str(value)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the limits that QEMU says that it has."""
        asked = qemu.asked
        for place in asked.disk_places:
            inserted, lengths = qemu.inserted(place), set[int]()
            for key, (_, field) in _LIMITS.items():
                for each, name in ((key, field), (f"{key}_burst", f"{field}_max")):
                    found = inserted.get(name) or None
                    wanted = asked.of_disk(each, place)
                    yield qemu.proof(qemu.key_of(each, place), _words(wanted), _words(found), "query-block")
                if inserted.get(f"{field}_max"):
                    lengths.add(inserted.get(f"{field}_max_length", _USUAL_LENGTH))
            found_lengths = " and ".join(f"{one} s" for one in sorted(lengths)) or _NONE
            yield qemu.proof(qemu.key_of(_LENGTH, place), _length_words(asked, place), found_lengths, "query-block")


def is_limited(asked: GuestResources) -> bool:
    """Whether any of the guest's disks has a limit."""
    return any(asked.of_disk(key, place) is not None for place in asked.disk_places for key in _LIMITS)


def limits_kept(
    spec: DomainSpec, before: Mapping[str, DiskRequests], after: Mapping[str, DiskRequests], seconds: float
) -> Iterator[LeverProof]:
    """Whether the disks of a guest did no more than their limits allow in the `seconds` from `before` until `after`."""
    asked = spec.resources
    for place in asked.disk_places:
        if place not in before or place not in after:
            continue
        requests = after[place].limited - before[place].limited
        moved = after[place].limited_bytes - before[place].limited_bytes
        for key, done, unit in (("limit_iops", requests, 1), ("limit_bandwidth", moved, _LARGEST_REQUEST)):
            limit, burst = asked.of_disk(key, place), asked.of_disk(f"{key}_burst", place)
            if limit is None:
                continue
            at_once = limit / _PART if burst is None else burst * (asked.of_disk(_LENGTH, place) or _USUAL_LENGTH)
            most = int(limit * seconds + at_once) + unit
            expected, found = (f"{_amount(key, one)} in {seconds:.1f} s" for one in (most, done))
            yield LeverProof(
                spec.guest,
                spec.tile,
                asked.key_of(key, place),
                f"at most {expected}",
                found,
                done <= most,
                "query-blockstats while the workloads ran",
            )


def _amount(key: str, count: int) -> str:
    return f"{count} requests" if key == "limit_iops" else format_bytes(count)


def _words(limit: int | None) -> str:
    return _NONE if limit is None else f"{limit}/s"


def _length_words(asked: GuestResources, place: DiskPlace) -> str:
    bursts = [asked.of_disk(f"{key}_burst", place) for key in _LIMITS]
    if all(one is None for one in bursts):
        return _NONE
    return f"{asked.of_disk(_LENGTH, place) or _USUAL_LENGTH} s"
