"""What this host tells of the file or device below a disk: its size, what a qcow2 header says, and where it lies."""

from __future__ import annotations

import os
import re
import stat
import struct
from pathlib import Path
from typing import NamedTuple

from vmlab.model.domain import FILE, HOST_DEVICE, UNKNOWN, DomainDisk
from vmlab.model.errors import UsageError
from vmlab.model.quantities import exact_bytes
from vmlab.plan.copied_guest.found_guest import FoundDisk
from vmlab.system.file_system import filesystem_of
from vmlab.system.given_file import open_given
from vmlab.telemetry.domains.open_disks import path_seen_by
from vmlab.telemetry.place import whole_disk_of
from vmlab.telemetry.source import Roots

_MAGIC = b"QFI\xfb"
_HEADER = struct.Struct(">4sIQIIQ")
"""Magic, version, backing file and its length, bits of a cluster, size (docs/interop/qcow2.txt)."""
_HEADER_BYTES = 104
_FEATURES = struct.Struct(">Q")
_FEATURES_AT = 72
_EXTENDED_L2 = 1 << 4
_USUAL_CLUSTER = 1 << 16
_SECTOR = 512
_LVM = "LVM-"


class _Header(NamedTuple):
    size: int
    cluster: int
    extended_l2: bool


def look_below(disk: FoundDisk, named: DomainDisk, roots: Roots, seen_by: Path | None = None) -> None:
    """Note size and place of a disk, as far as they are to be had here; `seen_by` is the folder in /proc of the process
    that has it open. Nothing is opened but a regular file, to be read.
    """
    if named.protocol == "rbd":
        _in_a_pool(disk, named)
        return
    if named.protocol not in (FILE, HOST_DEVICE, UNKNOWN) or not named.file.startswith("/"):
        if named.protocol not in (FILE, UNKNOWN):
            disk.found.lack(f"{disk.target}: it is reached by {named.protocol}; the lab's disks lie on this host")
        return
    path = path_seen_by(seen_by, named.file) if seen_by is not None else Path(named.file)
    try:
        state = path.stat()
        if stat.S_ISBLK(state.st_mode):
            _on_a_device(disk, named, state, roots)
        elif stat.S_ISREG(state.st_mode):
            _in_a_file(disk, named, path, state, roots)
    except (OSError, ValueError):
        disk.found.lack(f"{disk.target}: {named.file} is not on this host, or this user may not see it")


def _in_a_pool(disk: FoundDisk, named: DomainDisk) -> None:
    """``pool/image``, or QEMU's ``rbd:pool/image:option=…``."""
    pool = named.file.removeprefix("rbd:").partition("/")[0]
    if pool:
        disk.found.say("backing", f"rbd:{pool}", f"{disk.target} is {named.file.partition(':mon')[0]}")


def _on_a_device(disk: FoundDisk, named: DomainDisk, state: os.stat_result, roots: Roots) -> None:
    folder = roots.sys / "dev/block" / f"{os.major(state.st_rdev)}:{os.minor(state.st_rdev)}"
    sectors = int((folder / "size").read_text())
    disk.found.say("size", sectors * _SECTOR, f"{named.file}, by the kernel")
    try:
        uuid, name = ((folder / "dm" / one).read_text().strip() for one in ("uuid", "name"))
    except OSError:
        uuid = name = ""
    group = re.split(r"(?<!-)-(?!-)", name)[0].replace("--", "-")
    if uuid.startswith(_LVM) and group:
        disk.found.say("backing", f"lvm:{group}", f"{named.file} is a logical volume; a thin one would be none here")
    else:
        disk.found.lack(f"{disk.target}: it is the device {named.file}; the lab's data disk is a file or a volume")


def _in_a_file(disk: FoundDisk, named: DomainDisk, path: Path, state: os.stat_result, roots: Roots) -> None:
    found = disk.found
    if named.format == "qcow2":
        if (header := _qcow2_header(path)) is not None:
            found.say("size", header.size, f"the qcow2 header of {named.file}")
            if header.cluster != _USUAL_CLUSTER:
                found.say("cluster", exact_bytes(header.cluster), f"the qcow2 header of {named.file}")
            if header.extended_l2:
                found.say("extended_l2", True, f"the qcow2 header of {named.file}")
    else:
        found.say("size", state.st_size, f"the size of {named.file}")
        if state.st_size and state.st_blocks * _SECTOR >= state.st_size:
            found.lack(f"{disk.target}: all blocks of {named.file} are allocated, as with allocation: full")
    kind = filesystem_of(path, roots.proc) or "a file system"
    holder = whole_disk_of(state.st_dev, roots)
    lies = f"{named.file} on {kind}" + (f" of {holder}" if holder else "")
    found.say("backing", f"folder:{Path(named.file).parent}", lies)


def _qcow2_header(path: Path) -> _Header | None:
    """Of a file that its owner calls qcow2; None where it cannot be read, or is none."""
    try:
        with open_given(path) as file:
            raw = file.read(_HEADER_BYTES)
    except (UsageError, OSError):
        return None
    if len(raw) < _HEADER.size or not raw.startswith(_MAGIC):
        return None
    _, version, _, _, bits, size = _HEADER.unpack_from(raw)
    extended = version >= 3 and len(raw) >= _FEATURES_AT + _FEATURES.size
    features = _FEATURES.unpack_from(raw, _FEATURES_AT)[0] if extended else 0
    return _Header(size, 1 << min(bits, 21), bool(features & _EXTENDED_L2))
