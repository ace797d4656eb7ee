"""The files of a frozen guest, and the description of the machine that they fit.

RAM state loads only into a machine of exactly the same layout. QEMU detects some differences while it loads, but not
all: a guest that was saved with a write cache still assumes one. So everything that affects the layout is stored beside
the state and compared before anything starts.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vmlab.hypervisor.contract import BootImage, DomainSpec
from vmlab.hypervisor.libvirt.domain_xml import CHANNELS, possible_vcpus
from vmlab.integrity.long_work import copied
from vmlab.model.errors import OF_THIS_PROCESS, SnapshotError
from vmlab.model.names import DISK, FROZEN_FILES, MACHINE
from vmlab.system.removal import remove_file

_COMPARED_FACTS = ("qemu", "libvirt", "accelerator", "machine_type", "cpu_model", "host_cpu_flags")
_CPUINFO = Path("/proc/cpuinfo")


def layout(spec: DomainSpec, image: BootImage, facts: Mapping[str, Any]) -> dict[str, Any]:
    """All that must be equal for a saved state to load, as JSON values. `facts` are the hypervisor's own."""
    image, accelerator = spec.image or image, facts["accelerator"]
    return {
        **{name: facts[name] for name in _COMPARED_FACTS},
        **spec.resources.seen(),
        **({} if accelerator == "kvm" else {"possible_vcpus": possible_vcpus(spec.resources.vcpus, accelerator)}),
        "base": str(image.disk.resolve()),
        "kernel": _digest(image.kernel),
        "initrd": _digest(image.initrd),
        "command_line": image.command_line,
        "channels": list(CHANNELS),
    }


def host_cpu_flags() -> str:
    """Names the host's processor: twelve digits of the SHA-256 of its model and flags, which KVM hands to guests."""
    fields: dict[str, str] = {}
    for line in _CPUINFO.read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    known = "\n".join(fields.get(name, "") for name in ("vendor_id", "cpu family", "model", "stepping", "flags"))
    return hashlib.sha256(known.encode()).hexdigest()[:12]


def write_machine(folder: Path, described: Mapping[str, Any], libvirt: str, xml: str) -> None:
    """Keep the description: the layout, and for people libvirt's version and the whole domain XML."""
    text = json.dumps({"schema": "vmlab.machine/1", "layout": described, "libvirt": libvirt, "domain": xml}, indent=1)
    (folder / MACHINE).write_text(text + "\n", encoding="utf-8")


def require_fitting(folder: Path, expected: Mapping[str, Any]) -> None:
    """Raise SnapshotError unless the state in `folder` is complete and was saved from a machine like `expected`."""
    missing = [name for name in FROZEN_FILES if not (folder / name).is_file()]
    if missing:
        raise _useless(folder, f"is damaged: {' and '.join(missing)} missing")
    try:
        found = json.loads((folder / MACHINE).read_text(encoding="utf-8"))["layout"]
        differing = sorted(name for name in {*expected, *found} if found.get(name) != expected.get(name))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _useless(folder, f"is damaged: {MACHINE} is not one") from error
    if differing:
        raise _useless(folder, f"was saved from another machine: {', '.join(differing)} differ")


_OF_DATA = (
    "load of migration failed",
    "error while loading state",
    "Not a migration stream",
    "Unsupported migration stream",
    "Unknown savevm section",
    "Unknown ramblock",
    "Missing section footer",
    "Length mismatch",
    "is not in qcow2 format",
    "not in qcow2 format",
    "Image is corrupt",
    "Could not open backing",
)
"""Words of QEMU and qemu-img about what was saved."""
_OF_SURROUNDINGS = tuple(os.strerror(number) for number in (*OF_THIS_PROCESS, errno.ENOSPC, errno.EDQUOT))


def blames_data(words: str) -> bool:
    """Whether QEMU's or qemu-img's error says that what was saved cannot be used, and not that it could not start."""
    return any(part in words for part in _OF_DATA) and not any(part in words for part in _OF_SURROUNDINGS)


def _useless(folder: Path, why: str) -> SnapshotError:
    return SnapshotError(f"snapshot {folder.name} {why}", snapshot=folder.name)


def keep_disk(overlay: Path, folder: Path) -> None:
    """Move a stopped guest's overlay to its place in `folder`, also across file systems. Raises OSError."""
    try:
        overlay.rename(folder / DISK)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with overlay.open("rb") as file:
            copied(file, folder / DISK)
        remove_file(overlay)


def _digest(file: Path | None) -> str | None:
    if file is None:
        return None
    found = file.stat()
    return _digest_of(file, found.st_size, found.st_mtime_ns)


@functools.cache
def _digest_of(file: Path, _size: int, _changed: int) -> str:
    """Cached: all guests boot from one kernel, which is read once."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
