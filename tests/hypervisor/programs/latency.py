"""One real guest that reads and writes its data disk: tells what fio in it says, and what QEMU has counted.

``python -m … RUNTIME FOLDER``: once in cache mode writeback, and once more when it was switched to none.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tests.hypervisor.conftest import spec
from tests.hypervisor.programs.made import made
from vmlab.guests.agent import AgentCall, AgentShell, wait_for_agent
from vmlab.guests.image.building import ensure
from vmlab.hypervisor.domain_spec import BootImage

BLOCKS = 300
# On the disk itself, so that nobody else has requests there; a random order, so that none are merged.
LOAD = (
    *("fio", "--name=load", "--filename=/dev/vdb", "--size=64m", "--rw=randrw", "--bs=4k", f"--io_size={BLOCKS * 4}k"),
    *("--ioengine=libaio", "--iodepth=4", "--direct=1", "--end_fsync=1", "--allow_mounted_write=0", "--randseed=1"),
    *("--lat_percentiles=1", "--clat_percentiles=0", "--percentile_list=50:95:99", "--output-format=json"),
)

# udev looks at a disk again whenever somebody has written to it.
READY = "until [ -b /dev/vdb ]; do sleep 0.1; done; udevadm settle; udevadm control --stop-exec-queue"


async def work(shell: AgentShell) -> dict[str, Any]:
    """By operation how many requests fio had, and its percentiles in ms."""
    done = await shell.run(list(LOAD), deadline=240)
    (job,) = json.loads(done.stdout)["jobs"]
    return {
        name: {
            "requests": job[name]["total_ios"],
            "ms": [value / 1e6 for value in job[name]["lat_ns"]["percentile"].values()],
        }
        for name in ("read", "write")
    }


async def main(runtime: str, folder: str) -> None:
    """Print one line of JSON."""
    built = ensure(lambda _text: None)
    image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
    hypervisor = made(Path(runtime), Path(folder) / "disks", image.kernel)
    await hypervisor.open()
    one = spec("web-1", "writeback", data_bytes=2**27)
    await hypervisor.create(image, [one])
    call: AgentCall = partial(hypervisor.agent, one.name)
    await wait_for_agent(call, one.name, 400)
    shell = AgentShell(one.name, call)
    await hypervisor.plug_data_disks([one])
    await shell.run(["sh", "-c", READY], deadline=60)
    await hypervisor.guest_disks.begin_latency(one.name)
    told = []
    for switched in (False, True):
        if switched:
            await hypervisor.guest_disks.drain_disks([one], 60)
            await hypervisor.guest_disks.switch_cache([one], "none")
        fio = await work(shell)
        told.append({"fio": fio, "counted": await hypervisor.guest_disks.disk_latency(one.name)})
    await hypervisor.guest_disks.begin_latency(one.name)
    emptied = await hypervisor.guest_disks.disk_latency(one.name)
    await hypervisor.close()
    sys.stdout.write(json.dumps({"told": told, "emptied": emptied}) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
