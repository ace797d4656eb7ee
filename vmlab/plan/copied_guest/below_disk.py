"""What this host tells of the file or device below a disk: its size and format by its header, and where it lies."""

from __future__ import annotations

import os
import re
import stat
import struct
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from vmlab.model.domain import FILE, HOST_DEVICE, UNKNOWN, DomainDisk
from vmlab.model.errors import UsageError
from vmlab.model.quantities import exact_bytes
from vmlab.plan.copied_guest.found_guest import NOTHING_BELOW, FoundDisk
from vmlab.system.descriptors import closed_after
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
_OTHERS = {
    b"QED\0": "qed",
    b"KDMV": "vmdk",
    b"COWD": "vmdk",
    b"# Disk DescriptorFile": "vmdk",
    b"vhdxfile": "vhdx",
    b"conectix": "vpc",
    b"LUKS\xba\xbe": "luks",
    b"QFI\xfb\0\0\0\1": "qcow",
}
_VDI, _VDI_AT = b"\x7f\x10\xda\xbe", 64
"""How files of other formats begin, for which QEMU looks where none is said (``bdrv_probe`` of block/)."""
_SECTOR = 512
_LVM = "LVM-"


class _Header(NamedTuple):
    size: int
    cluster: int
    extended_l2: bool
    has_backing: bool


def look_below(disk: FoundDisk, named: DomainDisk, here: Roots | None, seen_by: Path | None = None) -> None:
    """Note size and place of a disk, as far as they are to be had here; `seen_by` is the folder in /proc of the process
    that has it open. Nothing is opened but a regular file, and a logical volume in a format with a header, to be read.

    `here` are the files of the disk's host, None where that may be another one: a file of the same path here is another
    file then, and nothing of this host is read.
    """
    if named.protocol == "rbd":
        _in_a_pool(disk, named)
        return
    if seen_by is not None and named.protocol == FILE and named.file:
        named = replace(named, file=_whole_path(seen_by, named.file))
    if named.protocol not in (FILE, HOST_DEVICE, UNKNOWN) or not named.file.startswith("/"):
        if named.protocol not in (FILE, UNKNOWN):
            disk.found.lack(f"{disk.target}: it is reached by {named.protocol}; the lab's disks lie on this host")
        return
    if here is None:
        disk.found.lack(f"{disk.target}: {named.file} may be a file of another host: what lies there is not known here")
        return
    path = path_seen_by(seen_by, named.file) if seen_by is not None else Path(named.file)
    try:
        state = path.stat()
        if stat.S_ISBLK(state.st_mode):
            _on_a_device(disk, named, path, state, here)
        elif stat.S_ISREG(state.st_mode):
            _in_a_file(disk, named, path, state, here)
    except (OSError, ValueError):
        disk.found.lack(f"{disk.target}: {named.file} is not on this host, or this user may not see it")


def _whole_path(seen_by: Path, file: str) -> str:
    """The path from the root of the process with this folder of /proc, as far as that is to be had."""
    try:
        return str(Path(os.readlink(seen_by / "cwd"), file))  # noqa: PTH115 - it is the path in the other's namespace
    except OSError:
        return file


def _in_a_pool(disk: FoundDisk, named: DomainDisk) -> None:
    """``pool/image``, or QEMU's ``rbd:pool/image:option=…``."""
    pool = named.file.removeprefix("rbd:").partition("/")[0]
    if pool:
        disk.found.say("backing", f"rbd:{pool}", f"{disk.target} is {named.file.partition(':mon')[0]}")


def _on_a_device(disk: FoundDisk, named: DomainDisk, path: Path, state: os.stat_result, roots: Roots) -> None:
    folder = roots.sys / "dev/block" / f"{os.major(state.st_rdev)}:{os.minor(state.st_rdev)}"
    sectors = int((folder / "size").read_text())
    try:
        uuid, name, suspended = ((folder / "dm" / one).read_text().strip() for one in ("uuid", "name", "suspended"))
    except OSError:
        uuid = name = suspended = ""
    group = re.split(r"(?<!-)-(?!-)", name)[0].replace("--", "-")
    is_volume = uuid.startswith(_LVM) and group != ""
    # A volume that is suspended would be waited for.
    kind = _by_header(disk, named, path if is_volume and suspended == "0" else None)
    if kind in ("raw", UNKNOWN):
        disk.found.say("size", sectors * _SECTOR, f"{named.file}, by the kernel")
    if is_volume:
        disk.found.say("backing", f"lvm:{group}", f"{named.file} is a logical volume; a thin one would be none here")
    else:
        disk.found.lack(f"{disk.target}: it is the device {named.file}; the lab's data disk is a file or a volume")


def _in_a_file(disk: FoundDisk, named: DomainDisk, path: Path, state: os.stat_result, roots: Roots) -> None:
    found = disk.found
    if _by_header(disk, named, path) == "raw":
        found.say("size", state.st_size, f"the size of {named.file}")
        if state.st_size and state.st_blocks * _SECTOR >= state.st_size:
            found.lack(f"{disk.target}: all blocks of {named.file} are allocated, as with allocation: full")
    kind = filesystem_of(path, roots.proc) or "a file system"
    holder = whole_disk_of(state.st_dev, roots)
    lies = f"{named.file} on {kind}" + (f" of {holder}" if holder else "")
    if _is_here(named.file, state):
        found.say("backing", f"folder:{Path(named.file).parent}", lies)
    else:
        found.lack(f"{disk.target}: {lies}, as its QEMU sees it: here this path is another file, or none")


def _is_here(file: str, state: os.stat_result) -> bool:
    """Whether this process sees the same file by this path: a QEMU may be in another mount namespace."""
    try:
        return os.path.samestat(Path(file).stat(), state)
    except OSError:
        return False


def _by_header(disk: FoundDisk, named: DomainDisk, path: Path | None) -> str:
    """Note what the header tells, and give the format: where none is said, that which the file begins like."""
    found, kind = disk.found, named.format
    raw = None if path is None or kind not in ("qcow2", UNKNOWN) else _first_bytes(path)
    if raw is None:
        return kind
    header, where = _qcow2_header(raw), f"the qcow2 header of {named.file}"
    if kind == UNKNOWN:
        other = "vdi" if raw[_VDI_AT:].startswith(_VDI) else None
        other = next((name for magic, name in _OTHERS.items() if raw.startswith(magic)), other)
        kind = other or ("raw" if header is None else "qcow2")
        if other is None:
            found.say("format", kind, f"{disk.target}: no format is said, and {named.file} begins like {kind}")
        else:
            words = f"no format is said, and {named.file} begins like {kind}"
            found.lack(f"{disk.target}: {words}: the lab's data disks are raw or qcow2")
    if kind == "qcow2" and header is not None:
        found.say("size", header.size, where)
        if header.cluster != _USUAL_CLUSTER:
            found.say("cluster", exact_bytes(header.cluster), where)
        if header.extended_l2:
            found.say("extended_l2", True, where)
        if header.has_backing and not disk.is_chain_said:
            found.lack(f"{disk.target}: it reads another file below it, by {where}; {NOTHING_BELOW}")
    return kind


def _first_bytes(path: Path) -> bytes | None:
    """Of a file or a device; None where it cannot be read."""
    try:
        if not path.is_block_device():
            with open_given(path) as file:
                return file.read(_HEADER_BYTES)
        with closed_after(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)) as device:
            return os.read(device, _HEADER_BYTES)
    except (UsageError, OSError):
        return None


def _qcow2_header(raw: bytes) -> _Header | None:
    """None where the bytes are those of another format."""
    if len(raw) < _HEADER.size or not raw.startswith(_MAGIC):
        return None
    _, version, backing_at, _, bits, size = _HEADER.unpack_from(raw)
    extended = version >= 3 and len(raw) >= _FEATURES_AT + _FEATURES.size
    features = _FEATURES.unpack_from(raw, _FEATURES_AT)[0] if extended else 0
    return _Header(size, 1 << min(bits, 21), bool(features & _EXTENDED_L2), backing_at != 0)
