"""A lab whose guests die one after another, each in another way; tells how it heard of it as one line of JSON."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import libvirt
from lxml import etree

from tests.hypervisor.conftest import spec
from tests.hypervisor.programs.lab import answered
from tests.hypervisor.programs.made import made
from vmlab.guests.agent import run_program
from vmlab.guests.image.building import ensure
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.model.errors import GuestLost, HypervisorError
from vmlab.system import kernel
from vmlab.system.removal import remove_file

DISKS_BYTES = 2**30
FILLER = "filler"
LEFT_BYTES = 8 * 2**20
STOPPED_SECONDS = 2.0


def fill(disks: Path) -> None:
    """Leave next to nothing of the disk that guests' disks are on."""
    found = os.statvfs(disks)
    with (disks / FILLER).open("wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, found.f_bavail * found.f_frsize - LEFT_BYTES)


def pid_of(name: str) -> int:
    """The QEMU of a guest, by its command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"qemu-system" in words[0] and any(f"guest=test-{name},".encode() in word for word in words):
                return int(entry.name)
    raise LookupError(name)


async def heard(hypervisor: Hypervisor, name: str, act: Any) -> dict[str, Any]:
    """What is heard of guest `name`, and after how many seconds, when `act` is done to it."""
    began = time.monotonic()
    acting = asyncio.ensure_future(act)
    try:
        async with asyncio.timeout(60):
            await hypervisor.watch.until_lost([name, "somebody-else"])
    except GuestLost as lost:
        return {"guest": lost.guest, "cause": lost.cause, "seconds": time.monotonic() - began}
    except TimeoutError:
        return {"guest": "", "cause": "nothing was heard", "seconds": 60}
    finally:
        acting.cancel()
        await asyncio.gather(acting, return_exceptions=True)


async def kill(name: str, number: str) -> None:
    """A signal to the guest's QEMU, from another process: what this one sends is taken for libvirt's."""
    process = await asyncio.create_subprocess_exec("/bin/kill", f"-{number}", str(pid_of(name)))
    await process.wait()


async def within(hypervisor: Hypervisor, name: str, script: str) -> None:
    """A script in the guest; it may take the guest along."""
    await run_program(partial(hypervisor.agent, name), ["/bin/sh", "-c", script], b"", 60)


async def stand(hypervisor: Hypervisor, name: str) -> dict[str, float]:
    """How long a QEMU stood still, told while it does and afterwards, and once libvirt had paused it for as long."""
    pid = pid_of(name)
    before = (await hypervisor.watch.standstill([name]))[name]
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(STOPPED_SECONDS / 2)
    during = (await hypervisor.watch.standstill([name]))[name]
    await asyncio.sleep(STOPPED_SECONDS / 2)
    os.kill(pid, signal.SIGCONT)
    await asyncio.sleep(0.3)
    after = (await hypervisor.watch.standstill([name]))[name]
    domain = hypervisor._lookup(name)  # type: ignore[attr-defined]
    await asyncio.to_thread(domain.suspend)
    await asyncio.sleep(STOPPED_SECONDS)
    await asyncio.to_thread(domain.resume)
    await asyncio.sleep(0.3)
    paused = (await hypervisor.watch.standstill([name]))[name] - after
    return {"before": before, "during": during, "after": after, "paused": paused}


async def tuned(hypervisor: Hypervisor, name: str) -> dict[str, Any]:
    """What is seen of changes that somebody has libvirt make of a guest."""
    domain = hypervisor._lookup(name)  # type: ignore[attr-defined]
    before = (await hypervisor.live_settings([name]))[name]
    await asyncio.to_thread(domain.setBlockIoTune, "vda", {"total_iops_sec": 500}, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    card = etree.fromstring(domain.XMLDesc(0)).find("devices/interface")
    assert card is not None
    etree.SubElement(card, "link", state="down")
    down = etree.tostring(card, encoding="unicode")
    await asyncio.to_thread(domain.updateDeviceFlags, down, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    after = (await hypervisor.live_settings([name]))[name]
    await asyncio.sleep(0.3)
    asked = hypervisor.watch.tuned([name])[name]
    return {"changed": {path: after[path] for path in after if before.get(path) != after[path]}, "asked": asked}


async def main(runtime: str, folder: str) -> None:
    """Let them die; one line of JSON."""
    disks = Path(folder) / "disks"
    disks.mkdir()
    kernel.mount("none", str(disks), "tmpfs", options=f"size={DISKS_BYTES}")
    built = ensure(lambda _text: None)
    image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
    hypervisor = made(Path(runtime), disks, image.kernel)
    await hypervisor.open()
    names = ["killed", "ended", "off", "full"]
    specs = [spec(name, "writeback") for name in names]
    await hypervisor.create(image, specs)
    said: dict[str, Any] = {"killed": await heard(hypervisor, "killed", kill("killed", "KILL"))}
    said["late"] = await heard(hypervisor, "killed", asyncio.sleep(0))
    said["ended"] = await heard(hypervisor, "ended", kill("ended", "TERM"))
    await asyncio.gather(*(answered(hypervisor, name) for name in ("off", "full")))
    said["stood"] = await stand(hypervisor, "full")
    said["tuned"] = await tuned(hypervisor, "full")
    said["off"] = await heard(hypervisor, "off", within(hypervisor, "off", "systemctl poweroff --force --force"))
    fill(disks)
    said["full"] = await heard(
        hypervisor, "full", within(hypervisor, "full", "dd if=/dev/urandom of=/srv/much bs=1M count=50; sync")
    )
    remove_file(disks / FILLER)
    await hypervisor.destroy(names)
    await hypervisor.create(image, [spec("killed", "writeback")])
    quiet = asyncio.ensure_future(hypervisor.watch.until_lost(["killed"]))
    await hypervisor.destroy(["killed"])
    await asyncio.sleep(1)
    said["destroyed"] = "" if not quiet.done() else str(quiet.exception())
    quiet.cancel()
    try:
        await hypervisor.agent("killed", "guest-ping")
    except HypervisorError as error:
        said["gone"] = str(error)
    await hypervisor.close()
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
