"""Data disks plugged into guests whose processors stand: tells what QEMU has open, and what is left at the end."""

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import libvirt

from tests.hypervisor.conftest import spec
from vmlab.guests.image.building import ensure
from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.model.errors import HypervisorError
from vmlab.model.run import CACHE_MODES, CacheMode


class Standing(EmbeddedHypervisor):
    """Its guests never run: what is plugged into them needs nobody who drives it."""

    async def open(self) -> None:
        await super().open()
        self._connection = Paused(self._connection)


class Paused:
    """libvirt's connection, which starts every domain paused."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def createXML(self, text: str, flags: int) -> Any:
        return self._connection.createXML(text, flags | libvirt.VIR_DOMAIN_START_PAUSED)


def kinds(modes: list[CacheMode]) -> list[DomainSpec]:
    """Every cache mode, on a file or a block device, thin or full."""
    data: list[dict[str, Any]] = [{"backing": "file"}, {"backing": "block"}]
    sizes: dict[str, Any] = {"data_bytes": 2**26, "data_queues": 2}
    made = [
        spec(f"{mode}-{one['backing']}", "writeback", guest=mode, data_cache=mode, **one, **sizes)
        for mode in modes
        for one in data
    ]
    return [*made, spec("full", "none", guest="full", allocation="full", backing="block", **sizes)]


async def main(runtime: str, folder: str, *modes: CacheMode) -> None:
    """Print one document."""
    built = ensure(lambda _text: None)
    image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
    disks = Path(folder) / "disks"
    hypervisor = Standing(Path(runtime), disks, "test", kernel=image.kernel)
    await hypervisor.open()
    said: dict[str, Any] = {}
    for one in kinds(list(modes)):
        await hypervisor.create(image, [one])
        await hypervisor.plug_data_disks([one])
        (file,) = disks.glob("*.data.raw")
        said[one.name] = {
            "proofs": [asdict(proof) for proof in (await hypervisor.guest_disks.prove_cache([one]))[2:]],
            "allocated": file.stat().st_blocks * 512,
        }
        try:
            await hypervisor.plug_data_disks([one])
        except HypervisorError as error:
            said[one.name]["again"] = str(error)
        await hypervisor.destroy([one.name])
        said[one.name]["left"] = [path.name for path in disks.iterdir()]
    await hypervisor.close()
    said["loops"] = [str(path) for path in Path("/dev").glob("loop[0-9]*") if folder in loop_devices.file_of(path)]
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], *(mode for mode in CACHE_MODES if mode in sys.argv[3:])))
