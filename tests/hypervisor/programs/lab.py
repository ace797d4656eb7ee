"""A lab on real guests: tells what it sees as JSON, then closes, or waits to be killed."""

import asyncio
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil

from tests.hypervisor.conftest import spec
from tests.hypervisor.programs.made import made
from tests.processes import named
from vmlab.guests.image.building import ensure
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.model.errors import DeadlineExceeded, HypervisorError
from vmlab.model.run import CACHE_MODES, CacheMode


async def answered(hypervisor: Hypervisor, name: str) -> None:
    """Return when the guest's agent does."""
    async with asyncio.timeout(400):
        while True:
            try:
                await hypervisor.agent(name, "guest-ping", deadline=5)
                return
            except (HypervisorError, DeadlineExceeded):
                await asyncio.sleep(0.2)


async def refused_creation(hypervisor: Hypervisor, image: BootImage, good: DomainSpec) -> dict[str, Any]:
    """A guest that libvirt refuses beside one that starts."""
    bad = replace(good, name="bad-1", mac="not-a-mac")
    try:
        await hypervisor.create(image, [replace(good, name="good-1"), bad])
    except HypervisorError as error:
        return {"error": str(error), "running": sorted((await hypervisor.statistics.domain_stats()).quick.found)}
    return {"error": "", "running": []}


async def whole_stats(hypervisor: Hypervisor) -> dict[str, dict[str, int]]:
    """Statistics with those of the disks, which are waited for."""
    quick, disks = await hypervisor.statistics.domain_stats(whole=True)
    assert disks is not None
    return {name: {**figures, **disks.found[name]} for name, figures in quick.found.items()}


async def main(runtime: str, folder: str, end: str, modes: list[CacheMode]) -> None:
    """Print one line of JSON while all guests run; with ``close`` as the end, once they answer, and go on to close."""
    built = ensure(lambda _text: None)
    image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
    hypervisor = made(Path(runtime), Path(folder) / "disks", image.kernel)
    await hypervisor.open()
    specs = [spec(f"{mode}-1", mode, guest=mode, shares=100 * (at + 1)) for at, mode in enumerate(modes)]
    said: dict[str, Any] = {"facts": await hypervisor.facts()}
    if end == "close":
        said["refused"] = await refused_creation(hypervisor, image, specs[0])
    await hypervisor.create(image, specs)
    if end == "close":
        await asyncio.gather(*(answered(hypervisor, one.name) for one in specs))
    said["proofs"] = [asdict(proof) for proof in await hypervisor.guest_disks.prove_cache(specs)]
    said["cpu"] = await hypervisor.statistics.cpu_seconds([one.name for one in specs])
    said["stats"] = await whole_stats(hypervisor)
    said["shares"] = shares()
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    if end == "hang":
        await asyncio.sleep(120)
    await hypervisor.destroy([specs[0].name, "never-there-1"])
    await hypervisor.close()
    names = [process.info["name"] for process in psutil.process_iter(["name"])]
    sys.stdout.write(json.dumps({"left": [name for name in names if "qemu" in name]}) + "\n")


def shares() -> list[int]:
    """CPU weights of this lab's guests, as the kernel has them: version 1's shares, or version 2's weights."""
    found = []
    for process in named("qemu-system"):
        lines = Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()
        path = next(line.split(":", 2)[2] for line in lines if ":cpu:" in line or line.startswith("0::/machine"))
        group = path.rpartition("/")[0]
        files = (Path(f"/sys/fs/cgroup/cpu{group}/cpu.shares"), Path(f"/sys/fs/cgroup{group}/cpu.weight"))
        found.append(next(int(file.read_text()) for file in files if file.exists()))
    return sorted(found)


if __name__ == "__main__":
    place, record, ending, *wanted = sys.argv[1:]
    asyncio.run(main(place, record, ending, [mode for mode in CACHE_MODES if mode in wanted]))
