"""The files of a frozen guest, and the description of the machine that they fit.

RAM state loads into a machine of exactly the same layout alone. QEMU finds out some differences while it loads, and
others never: a guest saved with its write cache on goes on believing in it. So what decides about the layout is
written down beside the state and compared before anything starts.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vmlab.hypervisor.cache_proof import EXPECTED
from vmlab.hypervisor.contract import BootImage, DomainSpec
from vmlab.model.errors import SnapshotError

RAM = "ram"
DISK = "disk.qcow2"
MACHINE = "machine.json"
FILES = (RAM, DISK, MACHINE)
"""What `contract.Hypervisor.save` leaves in a folder: RAM and devices as QEMU streams them, the overlay, this module's
description as JSON."""

_COMPARED_FACTS = ("qemu", "libvirt", "accelerator", "machine_type", "cpu_model", "host_cpu_flags")
_CPUINFO = Path("/proc/cpuinfo")


def layout(spec: DomainSpec, image: BootImage, facts: Mapping[str, Any]) -> dict[str, Any]:
    """All that must be equal for a saved state to load, as JSON values. `facts` are the hypervisor's own."""
    return {
        **{name: facts[name] for name in _COMPARED_FACTS},
        "vcpus": spec.vcpus,
        "memory_bytes": spec.memory_bytes,
        "disk_bytes": spec.disk_bytes,
        "queues": spec.queues,
        "write_cache": EXPECTED[spec.cache].writeback,
        "base": str(image.disk.resolve()),
        "kernel": _digest(image.kernel),
        "initrd": _digest(image.initrd),
        "command_line": image.command_line,
    }


def host_cpu_flags() -> str:
    """Names the host's processor: twelve digits of the SHA-256 of its model and flags, which KVM hands to guests."""
    said: dict[str, str] = {}
    for line in _CPUINFO.read_text().splitlines():
        name, _, value = line.partition(":")
        said.setdefault(name.strip(), value.strip())
    known = "\n".join(said.get(name, "") for name in ("vendor_id", "cpu family", "model", "stepping", "flags"))
    return hashlib.sha256(known.encode()).hexdigest()[:12]


def write_machine(folder: Path, described: Mapping[str, Any], libvirt: str, xml: str) -> None:
    """Keep the description: the layout, and for people libvirt's version and the whole domain XML."""
    text = json.dumps({"schema": "vmlab.machine/1", "layout": described, "libvirt": libvirt, "domain": xml}, indent=1)
    (folder / MACHINE).write_text(text + "\n", encoding="utf-8")


def require_fitting(folder: Path, expected: Mapping[str, Any]) -> None:
    """Raise SnapshotError unless the state in `folder` is all there and was saved from a machine like `expected`."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise SnapshotError(f"snapshot {folder.name} is damaged: {' and '.join(missing)} missing")
    try:
        found = json.loads((folder / MACHINE).read_text(encoding="utf-8"))["layout"]
        differing = sorted(name for name in {*expected, *found} if found.get(name) != expected.get(name))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SnapshotError(f"snapshot {folder.name} is damaged: {MACHINE} is not one") from error
    if differing:
        raise SnapshotError(f"snapshot {folder.name} was saved from another machine: {', '.join(differing)} differ")


def keep_disk(overlay: Path, folder: Path) -> None:
    """Move a stopped guest's overlay to its place in `folder`, also across file systems. Raises OSError."""
    try:
        overlay.rename(folder / DISK)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.copyfile(overlay, folder / DISK)
        overlay.unlink()


def _digest(file: Path) -> str:
    found = file.stat()
    return _digest_of(file, found.st_size, found.st_mtime_ns)


@functools.cache
def _digest_of(file: Path, _size: int, _changed: int) -> str:
    """Twelve guests boot from one kernel, which is read once."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
