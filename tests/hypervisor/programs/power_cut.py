"""QEMU writes to a disk image that lies on a disk with a cache, and the power fails; tells what is in the image then.

``FOLDER MODE``: the folder of dummies, and QEMU's cache mode. Two MiB are written: the first is flushed, the other not.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.hypervisor.programs.emulated_disk import proved
from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.emulated_disk.disk_process import DiskProcess
from vmlab.hypervisor.emulated_disk.emulated_disk import EmulatedDisk
from vmlab.hypervisor.journal import Journal
from vmlab.model.scenarios.disk_profiles import HDD_7200
from vmlab.system import kernel
from vmlab.system.removal import mounts_below

SIZE = 2**28
MIB = 2**20
FLUSHED, NOT_FLUSHED = 0x5A, 0xA5
WORDS = (f"write -P {FLUSHED} 0 1M", "flush", f"write -P {NOT_FLUSHED} 1M 1M")
PROMPT = b"qemu-io> "
_start = DiskProcess.start


class Held:
    """The file in which the disk keeps its bytes, by a descriptor that outlives the disk."""

    descriptor = -1

    async def start(self, arguments: Sequence[str], kept: int) -> DiskProcess:
        """In place of `DiskProcess.start`."""
        self.descriptor = os.dup(kept)
        return await _start(arguments, kept, "tests.hypervisor.programs.losing_disk")


async def write(image: Path, mode: str, disk: int) -> None:
    """Have QEMU write to the image, and kill the process `disk` while it has it open; then QEMU itself."""
    program = await asyncio.create_subprocess_exec(
        # qemu-io flushes the image when its input ends, so that it has to say while it runs what it has done.
        *("stdbuf", "-o0", "qemu-io", "-f", "raw", "-t", mode, str(image)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert program.stdin is not None and program.stdout is not None
    async with asyncio.timeout(60):
        await program.stdout.readuntil(PROMPT)
        for word in WORDS:
            program.stdin.write(f"{word}\n".encode())
            said = await program.stdout.readuntil(PROMPT)
            assert word == "flush" or b"wrote 1048576/1048576 bytes" in said, said
    os.kill(disk, signal.SIGKILL)
    program.kill()
    await program.wait()


def bytes_of(image: Path, place: int) -> list[int]:
    """The different bytes in the MiB from `place` on."""
    with image.open("rb") as opened:
        opened.seek(place)
        return sorted(set(opened.read(MIB)))


def after(folder: Path, descriptor: int, name: str) -> dict[str, list[int]]:
    """What a host that starts again finds in the image."""
    copy, place = folder / "after.img", folder / "after"
    with os.fdopen(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY), "rb") as kept, copy.open("wb") as written:
        shutil.copyfileobj(kept, written, MIB)
    place.mkdir()
    device = loop_devices.attach(copy, loop_devices.mark_of(name), writable=True)
    try:
        kernel.mount(str(Path(f"/proc/self/fd/{device}").readlink()), str(place), "ext4")
        try:
            image = place / "disks/guest.raw"
            return {"flushed": bytes_of(image, 0), "not flushed": bytes_of(image, MIB)}
        finally:
            kernel.unmount(str(place))
    finally:
        loop_devices.detach(device)


async def run(folder: Path, mode: str) -> None:
    held = Held()
    DiskProcess.start = held.start  # type: ignore[method-assign, assignment]
    name = f"test-{folder.stat().st_ino}"
    disks, journal = folder / "disks", Journal(folder / "journal.jsonl")
    disk = EmulatedDisk(HDD_7200, SIZE, 1, disks, folder / "runtime", name, journal, proved)
    try:
        await disk.open()
        image = disks / "guest.raw"
        with image.open("wb") as opened:
            opened.truncate(2 * MIB)
        os.sync()
        assert disk.pid is not None
        await write(image, mode, disk.pid)
    finally:
        await disk.close()
    found = after(folder, held.descriptor, name)
    left = [str(one) for one in mounts_below(folder)]
    sys.stdout.write(json.dumps({**found, "mounts": left}) + "\n")


if __name__ == "__main__":
    place, mode = sys.argv[1:]
    asyncio.run(run(Path(place), mode))
