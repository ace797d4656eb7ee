"""Data disks on file systems that are made for them, and in a user's folder; each is opened, as QEMU would.

Prints what was found of each. With ``stay`` it waits then to be killed, else it releases all.
"""

import fcntl
import json
import os
import signal
import struct
import sys
from pathlib import Path
from typing import Any

from tests.hypervisor.conftest import spec
from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.disks.data_disks import DataDisk, DataDisks
from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.isolation.namespace import host_pids, host_proc
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.levers.disk_place import find_place
from vmlab.model.scenarios.data_backing import FILE_SYSTEMS, DataPlace

SIZE = 64 * 2**20
SET_FLAGS, NO_COPY_ON_WRITE = 0x40086602, 0x00800000
SELF = Path("/proc/self")
OPENED: list[int] = []
"""The descriptors of all disks that are open, as QEMU has them."""


def seen(disks: DataDisks, one: DomainSpec, folder: Path) -> dict[str, Any]:
    """Make the disk of a guest, open it as QEMU does, and tell where it is."""
    disk = disks.make(one)
    assert isinstance(disk, DataDisk)
    before = find_place(SELF, disk.file, folder, one.resources.backing)
    opened = opened_as_qemu(disk.file, os.O_DIRECT)
    found = find_place(SELF, disk.file, folder, one.resources.backing)
    loop = disk.loop
    return {
        "unopened": before,
        "found": found,
        "size": os.fstat(opened).st_size,
        "blocks": os.fstat(opened).st_blocks * 512,
        "below": None if loop is None else [loop[1].stat().st_size, loop[1].stat().st_blocks * 512],
        "direct": None if loop is None else loop_devices.is_direct(loop[0]),
        "host_sees": str(disk.file.parent) in (host_proc() / str(launcher()) / "mountinfo").read_text(),
        "lab_sees": str(disk.file.parent) in (SELF / "mountinfo").read_text(),
        "options": options_of(disk.file.parent),
        "block": os.statvfs(disk.file.parent).f_frsize,
    }


def opened_as_qemu(file: Path, flags: int = 0) -> int:
    """Open a file for as long as its guest would run."""
    OPENED.append(os.open(file, os.O_RDWR | os.O_CREAT | flags))
    return OPENED[-1]


def launcher() -> int:
    """The launcher's pid, as the host numbers it."""
    pids = host_pids()
    assert pids is not None
    return pids.launcher


def options_of(point: Path) -> str:
    """A mount's options of its file system; empty for what is no mount."""
    lines = [line.split() for line in (SELF / "mountinfo").read_text().splitlines()]
    return next((words[-1] for words in lines if words[4] == str(point)), "")


def other_places(folder: Path, user: Path) -> dict[str, Any]:
    """What is found of files that do not lie where they should."""
    found: dict[str, Any] = {}
    here = folder / "here.raw"
    opened_as_qemu(here)
    found["beside the run, for xfs"] = find_place(SELF, here, folder, "xfs")
    found["beside the run, for a folder"] = find_place(SELF, here, folder, f"folder:{user}")
    there = user / "there.raw"
    opened_as_qemu(there)
    found["in the folder, for a file"] = find_place(SELF, there, folder, "file")
    found["in the folder, for another one"] = find_place(SELF, there, folder, f"folder:{user.parent}")
    on_xfs = folder / "xfs.data/other.raw"
    opened_as_qemu(on_xfs)
    found["on xfs, for btrfs"] = find_place(SELF, on_xfs, folder, "btrfs")
    return found


def without_copying(folder: Path) -> list[str]:
    """What is found of a file of which copy-on-write was switched off."""
    file = folder / "btrfs.data/nocow.raw"
    opened = opened_as_qemu(file)
    fcntl.ioctl(opened, SET_FLAGS, struct.pack("l", NO_COPY_ON_WRITE))
    return list(find_place(SELF, file, folder, "btrfs"))


def lab_of(base: Path) -> str:
    """The lab of a test's folder: tests run side by side, and loop devices are found by their lab."""
    return f"places-{base.stat().st_ino}"


def main(base: Path, how: str) -> None:
    """Print one document."""
    lab = lab_of(base)
    folder, user = base / "disks", base / "nvme"
    disks = DataDisks(folder, lab, Journal(base / "journal.jsonl"))
    said: dict[str, Any] = {"runner": getattr(host_pids(), "runner", 0)}
    for kind in FILE_SYSTEMS:
        said[kind] = seen(disks, spec(kind, data_bytes=SIZE, backing=kind), folder)
        said[kind]["expected"] = DataPlace(kind).file_bytes(SIZE)
    said["folder"] = seen(disks, spec("folder", data_bytes=SIZE, backing=f"folder:{user}"), folder)
    if how == "stay":
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        signal.pause()
    said["full"] = seen(disks, spec("full", data_bytes=SIZE, backing="xfs", allocation="full"), folder)
    said["others"] = other_places(folder, user)
    said["nocow"] = without_copying(folder)
    for descriptor in OPENED:
        os.close(descriptor)
    for name in (*FILE_SYSTEMS, "folder", "full"):
        disks.release(name)
    said["marked"] = loop_devices.marked(loop_devices.mark_of(lab))
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
