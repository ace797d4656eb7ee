"""A lab on a limited host, without a guest: tells its partition and the cgroups' files for programs."""

import asyncio
import json
import sys
from pathlib import Path

from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.isolation.cgroups import prefix_of
from vmlab.hypervisor.isolation.host_cgroups import OrderedHost, programs_of
from vmlab.hypervisor.libvirt.libvirt_root import root_folder
from vmlab.model.scenarios.host_settings import HostSize


async def main(runtime: Path, folder: Path, end: str) -> None:
    """With ``close`` as the end, go on to close; else wait to be killed."""
    prefix = prefix_of(root_folder(runtime))
    ordered = OrderedHost(prefix, HostSize(1, 256 * 2**20))
    hypervisor = EmbeddedHypervisor(runtime, folder / "disks", "test", ordered=ordered)
    await hypervisor.open()
    said = {"partition": ordered.partition, "programs": [str(file) for file in programs_of(prefix)]}
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    if end != "close":
        await asyncio.Event().wait()
    await hypervisor.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
