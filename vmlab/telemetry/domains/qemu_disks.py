"""The disks among QEMU's options: ``-drive`` and its short forms, ``-blockdev`` with ``-device``, and vhost-user.

A disk is a chain of nodes: filters (``throttle``), a format (``qcow2``) and below it the driver that reaches the data
(``file``, ``rbd``). The format is that of the first node that is no filter, and data without such a node are raw; the
cache mode is that of the lowest node, as its flags are those of the open file, with the write cache of the device.
Drives of CD-ROMs, floppies and flash memory are no disks. What is not understood is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from vmlab.model.domain import UNKNOWN, DomainDisk
from vmlab.model.run import CACHE_FLAGS, CacheFlags
from vmlab.telemetry.domains.qemu_arguments import POSITIONAL, Option, dictionaries_in, nested, node, pairs, strings_in

Node = Mapping[str, Any]
_SHORT_DISKS = {POSITIONAL: "hda", "hda": "hda", "hdb": "hdb", "hdc": "hdc", "hdd": "hdd", "sd": "sd"}
_NO_DISKS = ("pflash", "floppy", "mtd")
_CD_ROMS = ("ide-cd", "scsi-cd")
_FLOPPIES = ("floppy", "isa-fdc", "sysbus-fdc", "SUNW,fdtwo", "swim-drive")
_FILTER_NAMES = """
    throttle copy-on-read copy-before-write compress preallocate blkdebug blklogwrites blkreplay blkverify
    snapshot-access alloc-track zeroinit
"""
_FORMAT_NAMES = "raw qcow2 qcow qed vdi vmdk vhdx vpc luks parallels cloop dmg bochs replication"
_PROTOCOL_NAMES = """
    file host_device host_cdrom rbd nbd iscsi nfs ssh http https ftp ftps gluster sheepdog vxhs nvme vvfat null-co
    null-aio io_uring nvme-io_uring pbs virtio-blk-vhost-user virtio-blk-vhost-vdpa virtio-blk-vfio-pci
"""
_FILTERS, _FORMATS = frozenset(_FILTER_NAMES.split()), frozenset(_FORMAT_NAMES.split())
_PROTOCOLS = frozenset(_PROTOCOL_NAMES.split())
_CHILD = {"blkdebug": "image", "blkverify": "test"}
"""The key of the node below where it is another one than ``file``."""
_DRIVE_ONLY = {"if", "bus", "unit", "index", "media", "id", "cache", "snapshot", "readonly", "format", "serial"}
_MODES: dict[str, CacheFlags] = {**dict(CACHE_FLAGS.items()), "off": CACHE_FLAGS["none"]}
_SCHEMES = {"fat": "vvfat", "iser": "iscsi", "nbds": "nbd"}
_NO_DEVICES = ("/dev/shm/", "/dev/fd/", "/dev/fdset/", "/dev/hugepages")
_MOST_LAYERS = 32
_SWITCHES = {True: True, "on": True, "yes": True, "true": True, "y": True}
_SWITCHES |= {False: False, "off": False, "no": False, "false": False, "n": False}


class _Chain(NamedTuple):
    """What a chain of nodes comes to; the flags are None where they are not understood."""

    format: str
    protocol: str
    file: str
    direct: bool | None
    no_flush: bool | None
    layers: tuple[Node, ...] = ()


class QemuDisk(NamedTuple):
    """A disk with what the arguments say of it: the nodes from the top down to the one that opens the data, the options
    of its device, and the interface of a drive (``virtio``, ``ide``, ``scsi``); empty where nothing says so.

    The options of a ``-drive`` stand in the first of its nodes, as far as they are none of the drive's alone, and so do
    ``readonly`` and ``snapshot``.
    """

    disk: DomainDisk
    layers: tuple[Node, ...] = ()
    device: Node = MappingProxyType({})
    interface: str = ""


def disks_of(given: Sequence[Option]) -> list[QemuDisk]:
    """The disks in the order of the short forms, the drives, the nodes and vhost-user; each target is unique."""
    devices = [node(one.value) for one in given if one.name == "device"]
    found = [*_drives(given, devices), *_block_nodes(given, devices), *_of_vhost_user(given, devices)]
    taken: dict[str, int] = {}
    for place, one in enumerate(found):
        target = one.disk.target
        count = taken[target] = taken.get(target, 0) + 1
        if count > 1:
            found[place] = one._replace(disk=replace(one.disk, target=f"{target}#{count}"))
    return found


def _drives(given: Sequence[Option], devices: Sequence[Node]) -> Iterator[QemuDisk]:
    users = {str(device["drive"]): device for device in devices if "drive" in device}
    of_floppies = {str(one.get(key)) for one in devices for key in ("driveA", "driveB")}
    snapshot = any(one.name == "snapshot" for one in given)
    for option in given:
        if option.name in _SHORT_DISKS:
            said = {"file": option.value, "snapshot": snapshot}
            yield _of_drive(_SHORT_DISKS[option.name], said, {})
    later = [one.value.partition("=") for one in given if one.name == "set"]
    for place, option in enumerate(one for one in given if one.name == "drive"):
        said = {"snapshot": snapshot, **pairs(option.value, "file")}
        id_ = str(said.get("id", ""))
        said |= {key.removeprefix(f"drive.{id_}."): value for key, _, value in later if key.startswith(f"drive.{id_}.")}
        target = str(said.get("id") or said.get("node-name") or f"drive{said.get('index', place)}")
        device = users.get(target, {})
        is_other = said.get("if") in _NO_DISKS or said.get("media") == "cdrom" or target in of_floppies
        if not is_other and not _is_removable(device) and _has_medium(said):
            yield _of_drive(target, said, device)


def _is_removable(device: Node) -> bool:
    return device.get("driver") in (*_CD_ROMS, *_FLOPPIES)


def _has_medium(said: Node) -> bool:
    """Whether the drive has data at all: an empty one has no more than a format."""
    top = str(said.get("driver", said.get("format", "")))
    return bool(said.get("file")) or any(key.startswith("file.") for key in said) or top not in {"", *_FORMATS}


def _of_drive(target: str, said: Node, device: Node) -> QemuDisk:
    """A drive as the chain of nodes that QEMU makes of it."""
    flags: dict[str, Any] = {}
    mode = _MODES.get(said["cache"]) if "cache" in said else _MODES["writeback"]
    if mode is not None:
        flags = {"writeback": mode.writeback, "direct": mode.direct, "no-flush": mode.no_flush}
    top = nested({key: value for key, value in said.items() if key not in _DRIVE_ONLY and key != "file"})
    top |= {key: said[key] for key in ("readonly", "snapshot") if key in said}
    top["driver"] = said.get("driver", said.get("format", ""))
    # Single flags go before the mode.
    top["cache"] = flags | (top["cache"] if isinstance(top.get("cache"), dict) else {})
    if file := said.get("file"):
        named = {"filename": file}
        is_above = top["driver"] in {"", *_FORMATS, *_FILTERS}
        below = top.get("file")
        top |= {"file": {**named, **(below if isinstance(below, dict) else {})}} if is_above else named
    chain = _chain(top, {})
    disk = DomainDisk(target, chain.file, chain.format, protocol=chain.protocol)
    found = QemuDisk(disk, chain.layers, device, str(said.get("if", "ide")))
    if mode is None or switch(said.get("snapshot", False)) is not False:
        # Of a snapshot the image is only read, and what is written goes to a temporary file with another mode.
        return found
    return found._replace(disk=replace(disk, cache=_mode(switch(top["cache"]["writeback"]), chain, device)))


def _block_nodes(given: Sequence[Option], devices: Sequence[Node]) -> Iterator[QemuDisk]:
    """The nodes that devices use, and those that nothing uses: they are open, and wait for a device."""
    tops = [one for option in given if option.name == "blockdev" if _name_of(one := node(option.value))]
    nodes = {_name_of(one): one for top in tops for one in _with_inner(top)}
    used = {name for top in tops for name in strings_in(top, but="node-name")}
    for option in given:
        if option.name in ("machine", "M"):
            used |= {value for key, value in pairs(option.value, "type").items() if key.startswith("pflash")}
    for device in devices:
        used |= {str(device.get(key)) for key in ("drive", "driveA", "driveB")}
        top = nodes.get(str(device.get("drive", "")))
        if top is not None and not _is_removable(device):
            yield _of_node(str(device.get("id") or _name_of(top)), top, nodes, device)
    for top in tops:
        if (name := _name_of(top)) not in used:
            yield _of_node(name, top, nodes, {})


def _of_node(target: str, top: Node, nodes: Mapping[str, Node], device: Node) -> QemuDisk:
    chain = _chain(top, nodes)
    disk = DomainDisk(target, chain.file, chain.format, _mode(True, chain, device), protocol=chain.protocol)
    return QemuDisk(disk, chain.layers, device)


def _of_vhost_user(given: Sequence[Option], devices: Sequence[Node]) -> Iterator[QemuDisk]:
    sockets = {one.get("id"): one for option in given if option.name == "chardev" for one in [pairs(option.value)]}
    for place, device in enumerate(devices):
        if str(device.get("driver", "")).startswith("vhost-user-blk"):
            target = str(device.get("id") or f"vhost-user{place}")
            socket = sockets.get(device.get("chardev"), {}).get("path", "")
            yield QemuDisk(DomainDisk(target, socket, protocol="vhost-user"), device=device)


def _with_inner(top: Node) -> Iterator[Node]:
    """The node, and those in it that have a name of their own."""
    for one in dictionaries_in(top):
        if _name_of(one):
            yield one


def _name_of(one: Node) -> str:
    name = one.get("node-name")
    return name if isinstance(name, str) else ""


def _chain(top: Node, nodes: Mapping[str, Node]) -> _Chain:
    """Down from the node to the one that opens the data. One within another takes over its flags, which one that is
    only named there does not.
    """
    flags: dict[str, Any] = {}
    form, one = "", top
    layers: list[Node] = []
    for _ in range(_MOST_LAYERS):
        layers.append(one)
        own = one.get("cache")
        flags |= own if isinstance(own, dict) else {}
        driver = str(one.get("driver", ""))
        below = one.get(_CHILD.get(driver, "file"))
        if not below and driver not in _FORMATS | _FILTERS:
            ended = _ended(form, one, flags)
            return ended._replace(layers=(*layers, *ended.layers))
        if driver not in _FILTERS:
            form = form or (driver if driver in _FORMATS else UNKNOWN)
        if isinstance(below, str):
            below, flags = nodes.get(below), {}
        if not isinstance(below, dict):
            break
        one = below
    return _Chain(form or UNKNOWN, UNKNOWN, "", None, None, tuple(layers))


def _ended(form: str, leaf: Node, flags: Mapping[str, Any]) -> _Chain:
    name, driver = str(leaf.get("filename", "")), str(leaf.get("driver", ""))
    if name.startswith("json:"):
        chain = _chain({"cache": flags, **node(name.removeprefix("json:"))}, {})
        return chain._replace(format=form) if form not in ("", UNKNOWN) else chain
    protocol, file = _protocol_of(name) if not driver else (driver, name)
    if protocol not in _PROTOCOLS:
        form = form or UNKNOWN
    if protocol in _FILTERS:
        protocol = UNKNOWN
    direct, no_flush = (switch(flags.get(key, False)) for key in ("direct", "no-flush"))
    # Data that no format lies above are raw, but a drive without a format is probed for one.
    return _Chain(form or "raw", protocol or UNKNOWN, file or _named(driver, leaf), direct, no_flush)


def _protocol_of(name: str) -> tuple[str, str]:
    """The driver that QEMU takes for a file by its name, and the file: a colon before any slash ends a protocol."""
    scheme, colon, rest = name.partition(":")
    if not colon or "/" in scheme:
        is_device = name.startswith("/dev/") and not name.startswith(_NO_DEVICES)
        return ("host_device" if is_device else "file") if name else "", name
    if scheme == "file":
        return "file", rest
    scheme = scheme.partition("+")[0]
    return _SCHEMES.get(scheme, scheme), name


def _named(driver: str, leaf: Node) -> str:
    """What a node without a file name reads, as far as one word says it."""
    if driver == "rbd":
        return f"{leaf.get('pool', '')}/{leaf.get('image', '')}"
    key = {"nvme": "device", "vvfat": "dir"}.get(
        driver, "path" if "io_uring" in driver or "virtio-blk" in driver else ""
    )
    return str(leaf.get(key, ""))


def _mode(write_cache: bool | None, chain: _Chain, device: Node) -> str:
    own = device.get("write-cache", "auto")
    write_cache = write_cache if own == "auto" else switch(own)
    if write_cache is None or chain.direct is None or chain.no_flush is None:
        return UNKNOWN
    flags = CacheFlags(write_cache, chain.direct, chain.no_flush)
    return next((mode for mode, known in CACHE_FLAGS.items() if known == flags), UNKNOWN)


def switch(value: object) -> bool | None:
    """``on``, ``off`` and QEMU's other words for them, or JSON's; None for anything else."""
    return _SWITCHES.get(value) if isinstance(value, (bool, str)) else None
