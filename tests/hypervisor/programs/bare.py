"""Guests without a system, which end in their firmware: what a hypervisor does with them, as one line of JSON.

``python -m … RUNTIME FOLDER close|hang``. It takes no image and next to no CPU.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.hypervisor.conftest import Saved, spec
from tests.hypervisor.programs.made import WITH_KVM, made
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.hosts_hypervisor import HostsHypervisor
from vmlab.hypervisor.libvirt.domain_xml import domain_name
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.model.errors import HypervisorError
from vmlab.system.mounts import cgroups_in, hierarchies

NAMES = ("web-1", "db-1")
DISK_BYTES = 2**26


async def refused(attempt: Awaitable[None]) -> str:
    try:
        await attempt
    except HypervisorError as error:
        return str(error)
    return ""


async def switched(hypervisor: Hypervisor) -> dict[str, Any]:
    """A data disk on a block device is plugged in, and all disks are switched under a guest that runs."""
    one = spec("web-1", "writeback", data_bytes=2**26, backing="block")
    await hypervisor.plug_data_disks([one])
    before = await hypervisor.guest_disks.prove_cache([one])
    await hypervisor.guest_disks.begin_latency(one.name)
    await hypervisor.guest_disks.drain_disks([one], 60)
    await hypervisor.guest_disks.switch_cache([one], "none")
    after = await hypervisor.guest_disks.prove_cache([spec("web-1", "none", data_bytes=2**26, backing="block")])
    return {
        "before": [proof.o_direct for proof in before],
        "after": [proof.o_direct for proof in after],
        "counted": sorted(await hypervisor.guest_disks.disk_latency(one.name)),
        "merged": await hypervisor.make_mergeable([one.name], False),
    }


async def frozen(hypervisor: Hypervisor, image: BootImage, folder: Path) -> dict[str, Any]:
    """One guest is saved, and two are restored from that."""
    await hypervisor.create(image, [replace(spec("template"), network=False)])
    saved = folder / "saved"
    saved.mkdir()
    await hypervisor.save("template", saved)
    clones = [spec(f"clone-{at}") for at in (1, 2)]
    kept = Saved.now(saved)
    await hypervisor.restore(image, clones, {one.name: kept for one in clones})
    proofs = await hypervisor.guest_disks.prove_cache(clones)
    running = sorted((await hypervisor.statistics.domain_stats()).quick.found)
    await hypervisor.destroy([one.name for one in clones])
    return {"files": [Path(proof.file).name for proof in proofs], "running": running}


def emulator_weight(hypervisor: EmbeddedHypervisor | HostsHypervisor, name: str) -> str:
    """What the kernel has, after the name of its file."""
    places = hypervisor._places
    listed = (places.proc / str(places.pid_of(domain_name("test", name))) / "cgroup").read_bytes()
    groups = [inner for _, inner in cgroups_in(listed) if inner.name == "emulator"]
    files = (
        mount.root / group / file
        for mount in hierarchies()
        for group in groups
        for file in ("cpu.shares", "cpu.weight")
    )
    return next(f"{file.name} {file.read_text().strip()}" for file in files if file.exists())


async def main(runtime: str, folder: str, end: str) -> None:
    """Print one line of JSON while guests run; with ``close`` as the end, go on to close."""
    place = Path(folder)
    disk = place / "root.raw"
    with disk.open("wb") as file:
        file.truncate(DISK_BYTES)
    image = BootImage(disk, None, None, "")
    hypervisor = made(Path(runtime), place / "disks")
    hypervisor._platform_facts._accelerator = "kvm" if WITH_KVM in os.environ else "tcg"
    await hypervisor.open()
    specs = [spec(name, "writeback", guest=name, emulator_shares=2) for name in NAMES]
    said: dict[str, Any] = {"facts": await hypervisor.facts()}
    bad = [spec("good-1"), replace(spec("bad-1"), mac="not-a-mac")]
    said["refused"] = await refused(hypervisor.create(image, bad))
    await hypervisor.create(image, specs)
    said["network"] = {"bridge": hypervisor.network.bridge, "range": str(hypervisor.network.addresses)}
    said["host_pids"] = len(hypervisor.watch.host_pids())
    said["cpu"] = await hypervisor.statistics.cpu_seconds(list(NAMES))
    said["emulator_weights"] = [emulator_weight(hypervisor, name) for name in NAMES]
    said["stats"] = sorted((await hypervisor.statistics.domain_stats()).quick.found)
    said["proofs"] = [asdict(proof) for proof in await hypervisor.guest_disks.prove_cache(specs)]
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    if end == "hang":
        await asyncio.sleep(120)
    helpers = [hypervisor.helper_socket(name) for name in NAMES]
    told = {
        "helpers": [helper is not None and helper.is_socket() for helper in helpers],
        "switched": await switched(hypervisor),
        "frozen": await frozen(hypervisor, image, place),
        "decoy": await refused(hypervisor.agent("decoy", "guest-ping")),
    }
    await hypervisor.destroy([NAMES[0], "decoy", "never-there"])
    await hypervisor.close()
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
