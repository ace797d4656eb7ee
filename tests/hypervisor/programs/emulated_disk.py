"""Opens an emulated disk below a folder of dummies, and tells what is seen; the last argument says how it ends."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.emulated_disk import disk_process
from vmlab.hypervisor.emulated_disk.disk_model import ProofFigure
from vmlab.hypervisor.emulated_disk.disk_process import PATIENCE
from vmlab.hypervisor.emulated_disk.emulated_disk import EmulatedDisk
from vmlab.hypervisor.journal import Journal
from vmlab.model.errors import VmlabError
from vmlab.model.scenarios.disk_profiles import HDD_7200
from vmlab.system.removal import mounts_below

SIZE = 2**30


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def proved(*_: object) -> list[ProofFigure]:
    """In place of the proof: how long a read takes depends on how busy the machine of the test is."""
    return [ProofFigure("a read", "reads/s", 1.0, 1.0)]


def refuted(*_: object) -> list[ProofFigure]:
    """A disk that is twice as fast as it should be."""
    return [*proved(), ProofFigure("4 KiB at random, 1 at a time", "reads/s", 160.0, 80.0)]


async def run(folder: Path, end: str) -> None:
    disks, journal = folder / "disks", Journal(folder / "journal.jsonl")
    name, proof = f"test-{folder.stat().st_ino}", refuted if end == "refute" else proved
    patience = 1.5 if end.startswith("stop") else PATIENCE
    disk = EmulatedDisk(HDD_7200, SIZE, 1, disks, folder / "runtime", name, journal, proof, patience, (0.0,))
    base = folder / "base.raw"
    try:
        await disk.open()
        (disks / "guest.qcow2").write_bytes(b"on the emulated disk")
        os.sync()
        async with disk.covering([base]):
            device = disks.stat().st_dev
            node = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
            say(
                loop=node.startswith("loop"),
                direct=loop_devices.is_direct(Path("/dev", node)),
                base_on_it=base.stat().st_dev == device,
                base=base.read_bytes() == b"base" * 1000,
                pid=disk.pid is not None,
            )
            if end == "hang":
                # What waits to be written when all is killed must not keep anything alive.
                await disk.set_limits()
                (disks / "guest.qcow2").write_bytes(os.urandom(2**23))
                say()
                await asyncio.sleep(600)
            if end == "kill the disk":
                assert disk.pid is not None
                os.kill(disk.pid, signal.SIGKILL)
                await disk.until_dead()
            if end == "stop the disk":
                assert disk.pid is not None
                os.kill(disk.pid, signal.SIGSTOP)
                # The event loop itself waits for the disk.
                try:
                    (disks / "guest.qcow2").write_bytes(b"more")
                    os.sync()
                finally:
                    await disk.until_dead()
            await disk.set_limits()
            await disk.lift_limits()
            if end == "stop while it is closed":
                (disks / "guest.qcow2").write_bytes(os.urandom(2**20))
                assert disk.pid is not None
                os.kill(disk.pid, signal.SIGSTOP)
                disk_process.PATIENCE = 1.5
        say(base_on_it=base.stat().st_dev == device)
    except VmlabError as error:
        say(error=str(error))
    finally:
        await disk.close()
    say(left=sorted(path.name for path in disks.iterdir()), mounts=[str(one) for one in mounts_below(folder)])


if __name__ == "__main__":
    place, end = sys.argv[1:]
    asyncio.run(run(Path(place), end))
