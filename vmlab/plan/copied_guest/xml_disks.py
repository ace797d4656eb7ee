"""The disks of libvirt's XML of a domain: each attribute of a driver as the key of a scenario."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from lxml import etree

from vmlab.model.domain import UNKNOWN, Domain, DomainDisk
from vmlab.model.grouping import grouped
from vmlab.model.quantities import exact_bytes, whole
from vmlab.plan.copied_guest.below_disk import look_below
from vmlab.plan.copied_guest.found_guest import (
    ABOVE,
    NOTHING_BELOW,
    OF_DRIVER,
    Findings,
    FoundDisk,
    limited,
    say_own_queues,
)
from vmlab.plan.copied_guest.left_over import attributes_of, is_usual, left_of, shown
from vmlab.telemetry.domains.libvirt_reader import scaled_bytes
from vmlab.telemetry.source import Roots

_BUSES = ("virtio", "scsi")
_FORMATS = ("raw", "qcow2")
_IO = ("threads", "native", "io_uring")
_SETTINGS = ("event_idx", "ioeventfd", "queue_size", "page_per_vq", "iommu", "ats")
"""Attributes of a virtio disk's driver that `libvirt` sets."""
_KEYS = (
    *("type", "cache", "io", "discard", "detect_zeroes", "packed", "iothread", "queues"),
    *("iothreads", "metadata_cache"),
)
_NO_TUNING = ("name", "error_policy", "rerror_policy")
"""Attributes and elements of a driver that are keys, and attributes that change nothing while all is well."""
_VIRTIO_SCSI = ("virtio-scsi", "virtio-transitional", "virtio-non-transitional")
_LIMIT = re.compile(r"(total|read|write)_(iops|bytes)_sec(_max|_max_length)?")


def found_disks(root: etree._Element, domain: Domain, guest: Findings, here: Roots | None) -> Iterator[FoundDisk]:
    """The disks of a domain whose XML is `root`; what is no disk that the lab has is noted of the `guest`. `here` are
    the files of the domain's host, None where that may be another.
    """
    known = {disk.target: disk for disk in domain.disks}
    for element in root.iterfind("devices/disk"):
        target = element.find("target")
        named = None if target is None else known.pop(target.get("dev", ""), None)
        if named is None:
            kind = element.get("device", "disk")
            if kind not in ("disk", "lun") and element.find("source") is not None:
                guest.lack(f"<disk device='{kind}'>: guests of the lab have disks alone")
            continue
        yield _disk(element, named, root, domain, here)


def _disk(
    element: etree._Element, named: DomainDisk, root: etree._Element, domain: Domain, here: Roots | None
) -> FoundDisk:
    if named.format == UNKNOWN and element.get("type") != "volume":
        named = replace(named, format="raw")
    boot = element.find("boot")
    order = 0 if boot is None else whole(boot.get("order"))
    disk = FoundDisk(named.target, named.file or named.protocol, order, named.protocol)
    driver = element.find("driver")
    said = attributes_of(driver)
    _drive(disk, named, driver, said)
    _bus(disk, element, root)
    _more_of_driver(disk, driver)
    machine = root.find("os/type")
    if "bus" in disk.found.said:
        version = "" if machine is None else machine.get("machine", "")
        say_own_queues(disk.found, disk.target, "queues", version, domain.vcpus)
    _limits(disk, element, root)
    _rest(disk, element, named)
    disk.is_chain_said = element.find("backingStore") is not None
    source = element.find("source")
    if element.get("type") == "volume" and source is not None:
        disk.pool = source.get("pool", "")
        words = f"it is volume {disk.file} of storage pool {disk.pool}: {vol_path(disk)} names it"
        disk.found.lack(f"{disk.target}: {words}")
    else:
        look_below(disk, named, here)
    return disk


def vol_path(disk: FoundDisk) -> str:
    """The command that names the file or device of a storage pool's volume."""
    return f"`virsh vol-path {shlex.quote(disk.file)} --pool {shlex.quote(disk.pool)}`"


def _drive(disk: FoundDisk, named: DomainDisk, driver: etree._Element | None, said: dict[str, str]) -> None:
    """What the driver says by attributes that are keys."""
    found, name = disk.found, disk.target

    def where(attribute: str) -> str:
        return f"{name}: {shown(driver, attribute)}" if driver is not None else f"{name}"

    if named.cache != UNKNOWN:
        is_said = said.get("cache", "default") != "default"
        usual = "QEMU's own mode" if named.cache == "writeback" else "libvirt's for a <shareable/> disk"
        found.say("cache", named.cache, where("cache") if is_said else f"{name} has no cache=: {usual}")
    if said.get("io") in _IO:
        found.say("io", said["io"], where("io"))
    if named.format in _FORMATS:
        found.say("format", named.format, where("type") if "type" in said else f"{name} has no type=: libvirt's raw")
    elif named.format != UNKNOWN:
        found.lack(f"{name}: {named.format}: the lab's data disks are raw or qcow2")
    discard = said.get("discard", "ignore")
    words = where("discard") if "discard" in said else f"{name} has no discard=: QEMU's ignore"
    found.say("discard", discard if discard == "unmap" else "ignore", words)
    if (zeroes := said.get("detect_zeroes")) == "unmap" and discard != "unmap":
        words = f"{where('detect_zeroes')} without discard='unmap', which libvirt takes for on"
        found.say("detect_zeroes", "on", words)
    elif zeroes in ("off", "on", "unmap"):
        found.say("detect_zeroes", zeroes, where("detect_zeroes"))
    if said.get("packed") in ("on", "off"):
        found.say("packed", said["packed"] == "on", where("packed"))
    found.say("iothread", said.get("iothread"), where("iothread"))
    found.say("queues", whole(said.get("queues")) or None, where("queues"))
    size = None if driver is None else driver.find("metadata_cache/max_size")
    if size is not None and (count := scaled_bytes(size.text, size.get("unit", "bytes"))):
        found.say("table_cache", exact_bytes(count), f"{name}: <metadata_cache>{shown(size)}")
    _several_threads(found, name, driver)


def _more_of_driver(disk: FoundDisk, driver: etree._Element | None) -> None:
    """What else the driver says: settings of a virtio disk, and what has no key."""
    settings = _SETTINGS if disk.found.value("bus") == "virtio" else ()
    for key, value in attributes_of(driver).items():
        if driver is not None and key in settings and not is_usual(key, value):
            disk.found.say(f"{OF_DRIVER}{key}", value, f"{disk.target}: {shown(driver, key)}")
    disk.found.lack_key(f"{disk.target}: ", left_of(driver, (*_KEYS, *_NO_TUNING, *settings)))


def _several_threads(found: Findings, name: str, driver: etree._Element | None) -> None:
    """The iothreads among which the queues of a disk, or of its controller, are divided: one is the nearest."""
    if threads := [] if driver is None else driver.findall("iothreads/iothread"):
        words = f"{name}: <iothreads> of {len(threads)}"
        found.say("iothread", ",".join(thread.get("id", "") for thread in threads), words)
        found.lack(f"{words}: the lab's disk has one iothread")


def _bus(disk: FoundDisk, element: etree._Element, root: etree._Element) -> None:
    target = element.find("target")
    bus = "" if target is None else target.get("bus", "")
    if target is None or bus not in _BUSES:
        disk.found.lack(f"{disk.target}: bus '{bus or 'not said'}': the lab's disks are virtio or scsi")
        return
    where = f"{disk.target}: {shown(target, 'bus')}"
    if bus == "virtio":
        disk.found.say("bus", bus, where)
        return
    address = element.find("address")
    index = "0" if address is None else address.get("controller", "0")
    for controller in root.iterfind("devices/controller"):
        if controller.get("type") != "scsi" or controller.get("index", "0") != index:
            continue
        model = controller.get("model", "")
        if model not in _VIRTIO_SCSI:
            disk.found.lack(f"{disk.target}: <controller type='scsi' model='{model}'>: the lab's is virtio-scsi")
            return
        if (driver := controller.find("driver")) is not None:
            words = f"{disk.target}: <controller type='scsi'>{shown(driver, 'queues', 'iothread')}"
            disk.found.say("queues", whole(driver.get("queues")) or None, words)
            disk.found.say("iothread", driver.get("iothread"), words)
            _several_threads(disk.found, disk.target, driver)
            left = left_of(driver, ("name", "queues", "iothread", "iothreads"))
            disk.found.lack_key(f"{disk.target}: <controller type='scsi'>", left)
    disk.found.say("bus", bus, where)


def _limits(disk: FoundDisk, element: etree._Element, root: etree._Element) -> None:
    """``iotune``; libvirt names what is of reads and writes together ``total``."""
    tune = element.find("iotune")
    limits = ((one.findtext("iotune/group_name"), one.find("target")) for one in root.iterfind("devices/disk"))
    sharing = grouped((name, target.get("dev", "")) for name, target in limits if name and target is not None)
    values: dict[str, int] = {}
    for limit in () if tune is None else tune:
        match = _LIMIT.fullmatch(str(limit.tag))
        if match is None:
            continue
        name = {"iops": "iops", "bytes": "bps"}[match[2]] + ("" if match[1] == "total" else f"-{match[1]}")
        values[name + (match[3] or "").replace("_", "-")] = whole(limit.text)
    values["iops-size"] = whole(element.findtext("iotune/size_iops_sec"))
    shared = {group: sharing[group]} if (group := element.findtext("iotune/group_name")) else {}
    limited(disk.found, disk.target, values, f"{disk.target}: <iotune>", shared)


def _rest(disk: FoundDisk, element: etree._Element, named: DomainDisk) -> None:
    name, found = disk.target, disk.found
    if element.get("device") == "lun":
        found.lack(f"{name}: device='lun': the guest's own SCSI commands go to the device")
    if named.backing:
        below = ", ".join(one.file for one in named.backing)
        found.lack(f"{name}: it reads {below} below it; {NOTHING_BELOW}")
    if groups := [one.get("group", "") for one in element.iterfind("throttlefilters/throttlefilter")]:
        found.lack(f"{name}: <throttlefilters> of {', '.join(groups)}: the lab's disks have limits of their own")
    disk.is_written = element.find("readonly") is None
    for tag, words in (
        ("readonly", "the lab's disks are written"),
        ("transient", ABOVE),
        ("shareable", "the lab's disks are of one guest"),
        ("encryption", "the lab's disks are not encrypted"),
        ("blockio", "the lab's disks have QEMU's own block sizes"),
        ("source/slices", "the lab's disks are whole files"),
        ("source/encryption", "the lab's disks are not encrypted"),
    ):
        if (one := element.find(tag)) is not None:
            found.lack(f"{name}: {shown(one)}: {words}")
