"""Tells how libvirt would define the disks of a guest with a data disk; no guest is started."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.hypervisor.conftest import spec
from tests.hypervisor.libvirt.test_domain_xml import DATA, FROZEN, IMAGE, ON_BLOCK, ON_FILE, TCG
from vmlab.hypervisor.disks.cache_switch import definitions_in
from vmlab.hypervisor.disks.running_disks import with_disk
from vmlab.hypervisor.embedded import EmbeddedHypervisor
from vmlab.hypervisor.libvirt.domain_xml import data_disk_xml, domain_xml


async def main(runtime: str, folder: str) -> None:
    """Print one line of JSON."""
    hypervisor = EmbeddedHypervisor(Path(runtime), Path(folder) / "disks", "test")
    await hypervisor.open()
    said = {}
    for name, source in (("file", ON_FILE), ("block", ON_BLOCK)):
        one = spec(**{**DATA, "data_cache": "none"})
        described = with_disk(domain_xml(one, "test", IMAGE, FROZEN, TCG), data_disk_xml(one, source))
        said[name] = definitions_in(hypervisor._connection.domainXMLToNative("qemu-argv", described, 0))
    await hypervisor.close()
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
